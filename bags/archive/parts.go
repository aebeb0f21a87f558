package archive

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// PartSet is one archive in several files that lie side by side.
type PartSet struct {
	Name  string   // of the archive, without a part's number: x.7z
	Files []string // in order; the one that opens the archive comes first
	Lacks string   // the name of a part that is missing before others; "": none is
}

// The names of parts: stem, number, rest. An old rar begins with x.rar, which r00 follows, and
// a split zip ends with x.zip.
var (
	numberedPart = regexp.MustCompile(`(?i)^(.+\.(?:7z|zip)\.)([0-9]{3})()$`)
	rarPart      = regexp.MustCompile(`(?i)^(.+\.part)([0-9]{1,5})(\.rar)$`)
	oldRarPart   = regexp.MustCompile(`(?i)^(.+\.r)([0-9]{2})()$`)
	oldZipPart   = regexp.MustCompile(`(?i)^(.+\.z)([0-9]{2})()$`)
)

// IsPart reports whether a file of this name may be one of several that are one archive.
func IsPart(name string) bool {
	lower := strings.ToLower(name)
	return len(familyOf(name).stem) > 0 || strings.HasSuffix(lower, ".rar") || strings.HasSuffix(lower, ".zip")
}

// family is what the names of an archive's parts have in common.
type family struct {
	stem, rest string
	digits     int
	first      int    // the number of the first of them
	head       string // the extension of the file without a number that opens the archive; "": the first opens it
}

func familyOf(name string) family {
	for _, form := range []struct {
		names *regexp.Regexp
		first int
		head  string
	}{{numberedPart, 1, ""}, {rarPart, 1, ""}, {oldRarPart, 0, "ar"}, {oldZipPart, 1, "ip"}} {
		if m := form.names.FindStringSubmatch(name); m != nil {
			return family{m[1], m[3], len(m[2]), form.first, form.head}
		}
	}
	return family{}
}

func (f family) part(n int) string { return fmt.Sprintf("%s%0*d%s", f.stem, f.digits, n, f.rest) }

// Parts finds the archives in several files among the names of one folder's files, by name. A
// file without others beside it is in none.
func Parts(names []string) (sets []PartSet) {
	there, families := map[string]bool{}, map[family]int{} // the highest number of each
	for _, name := range names {
		there[name] = true
		f := familyOf(name)
		if f.stem == "" {
			continue
		}
		if n, err := strconv.Atoi(name[len(f.stem) : len(f.stem)+f.digits]); err == nil && n >= f.first {
			families[f] = max(families[f], n)
		}
	}
	for f, last := range families {
		s := PartSet{Name: strings.TrimSuffix(f.stem, ".")}
		if f.rest != "" {
			s.Name = f.stem[:len(f.stem)-len(".part")] + f.rest
		}
		if f.head != "" { // x.r, x.z
			s.Name = f.stem + f.head
			s.add(s.Name, there)
		}
		for n := f.first; n <= last; n++ {
			s.add(f.part(n), there)
		}
		if len(s.Files) > 1 {
			sets = append(sets, s)
		}
	}
	slices.SortFunc(sets, func(a, b PartSet) int { return strings.Compare(a.Name, b.Name) })
	return sets
}

func (s *PartSet) add(name string, there map[string]bool) {
	switch {
	case there[name]:
		s.Files = append(s.Files, name)
	case s.Lacks == "":
		s.Lacks = name
	}
}
