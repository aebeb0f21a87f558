package recognise

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bagpipe/layout"
)

// inSets groups the files inside by the one that names them, and tells whether every
// group is whole. With one group its named groups become variables.
func (f *facts) inSets(s *Sets, v vars) answer {
	l, no1 := f.look()
	if no1 != nil {
		return *no1
	}
	if l.cut {
		return unknown("more than %d names inside", maxNames)
	}
	there := make(map[string]string, len(l.files)) // in lower case: as named
	for _, name := range l.files {
		there[strings.ToLower(name)] = name
	}
	used, mains, found := map[string]bool{}, []string(nil), []map[string]string(nil)
	seen := map[string]bool{}
	for _, name := range l.files {
		groups, ok := s.main.match(layout.EncodePath(name))
		if !ok {
			continue
		}
		used[name] = true
		in, key := v.with(groups), name
		if s.By != "" {
			key = in.text(s.By)
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		mains, found = append(mains, key), append(found, groups)
		for _, glob := range s.Required {
			if !take(l, there, in.glob(glob), used) {
				return no("%s lacks %s", layout.EncodePath(key), short(in.text(glob)))
			}
		}
		for _, glob := range s.Optional {
			take(l, there, in.glob(glob), used)
		}
	}
	if a := s.bounds(len(mains)); a != nil {
		return *a
	}
	if i := slices.IndexFunc(l.files, func(name string) bool { return !used[name] }); s.Alone && i >= 0 {
		return no("%s belongs to none of the sets", layout.EncodePath(l.files[i]))
	}
	v = v.with(map[string]string{"sets": strconv.Itoa(len(mains))})
	if len(mains) == 1 {
		return yes(v.with(found[0]), fmt.Sprintf("one set of %d files: %s", len(used), layout.EncodePath(mains[0])))
	}
	f.objects = mains
	return yes(v, fmt.Sprintf("%d sets of files, the first is %s", len(mains), firstName(mains)))
}

func firstName(mains []string) string {
	if len(mains) == 0 {
		return "none"
	}
	return layout.EncodePath(mains[0])
}

// take marks what fits as belonging to a set. A pattern without signs is one name,
// which needs no search: there may be thousands of sets.
func take(l *listing, there map[string]string, globs string, used map[string]bool) (any bool) {
	for glob := range strings.SplitSeq(globs, "|") {
		any = takeOne(l, there, glob, used) || any
	}
	return any
}

func takeOne(l *listing, there map[string]string, glob string, used map[string]bool) (any bool) {
	if !strings.ContainsAny(glob, `*?[\`) {
		name, ok := there[strings.ToLower(glob)]
		if ok {
			used[name] = true
		}
		return ok
	}
	fixed, _, _ := strings.Cut(strings.ToLower(glob), "*")
	if strings.ContainsAny(fixed, `?[\`) || strings.HasPrefix(glob, anyDepth) {
		fixed = ""
	}
	for _, name := range l.from(fixed) {
		if inside(glob, name) {
			used[name], any = true, true
		}
	}
	return any
}

func (s *Sets) bounds(n int) *answer {
	least := 1
	if s.Min != nil {
		least = *s.Min
	}
	if n < least {
		a := no("%d sets of files, fewer than %d", n, least)
		return &a
	}
	if s.Max != nil && n > *s.Max {
		a := no("%d sets of files, more than %d", n, *s.Max)
		return &a
	}
	return nil
}

// from gives the names that begin so, whatever their case.
func (l *listing) from(beginning string) []string {
	if beginning == "" {
		return l.files
	}
	if l.folded == nil {
		l.folded = slices.Clone(l.files)
		slices.SortFunc(l.folded, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	}
	i, _ := slices.BinarySearchFunc(l.folded, beginning, func(name, want string) int { return strings.Compare(strings.ToLower(name), want) })
	j := i
	for j < len(l.folded) && strings.HasPrefix(strings.ToLower(l.folded[j]), beginning) {
		j++
	}
	return l.folded[i:j]
}
