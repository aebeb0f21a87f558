package recognise

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	asking "bagpipe/engine/condition"
	"bagpipe/layout"
)

// QualityRule says how objects are checked.
type QualityRule struct {
	For    string  `yaml:"for"` // a condition on the item
	Checks []Check `yaml:"checks"`

	where *asking.Where // of For; nil: all
}

// Check is one check of an object; exactly one of Raster, Regexp, Path and Match says which.
type Check struct {
	ID     string `yaml:"id"`
	Level  string `yaml:"level"`
	Raster string `yaml:"raster"` // opens
	Regexp string `yaml:"regexp"` // of the object's name
	Path   string `yaml:"path"`   // of the manifest, or below its metadata
	After  any    `yaml:"after"`
	Before any    `yaml:"before"`
	Match  *Match `yaml:"match"` // as in a rule, of the content
	Else   string `yaml:"else"`  // fail (default), warn
	Stop   bool   `yaml:"stop"`  // where it fails, nothing after it is asked

	regexp        *regexp.Regexp
	after, before time.Time
}

// quality checks what a file says of quality.
func (c *checker) quality() error {
	f, seen := c.file, map[string]bool{}
	for i := range f.Quality {
		q, at := &f.Quality[i], fmt.Sprintf("$.quality[%d]", i)
		var err error
		if q.where, err = parseCondition(q.For); err != nil {
			return f.Errorf(at+".for", "%v", err)
		}
		if i := slices.IndexFunc(q.where.Paths(), isOfExecution); i >= 0 { // the checks are asked for while the steps go on
			return f.Errorf(at+".for", "path %s: checks are asked for by what an item is: by its manifest, not by what was done with it", q.where.Paths()[i])
		}
		for k := range q.Checks {
			one, at := &q.Checks[k], fmt.Sprintf("%s.checks[%d]", at, k)
			if _, err := layout.ParseName(one.ID); err != nil || seen[one.ID] {
				return f.Errorf(at+".id", "expected a name that no other check of the file has, not %q", one.ID)
			}
			seen[one.ID] = true
			if err := c.qualityCheck(one, at); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *checker) qualityCheck(one *Check, at string) (err error) {
	f := c.file
	if !slices.Contains(layout.QualityLevels(), one.Level) {
		return f.Errorf(at+".level", "expected one of %s, not %q", strings.Join(layout.QualityLevels(), ", "), one.Level)
	}
	if one.Else == "" {
		one.Else = layout.QualityFail
	}
	if one.Else != layout.QualityFail && one.Else != layout.QualityWarn {
		return f.Errorf(at+".else", "expected fail or warn, not %q", one.Else)
	}
	asked := 0
	for _, is := range []bool{one.Raster != "", one.Regexp != "", one.Path != "", one.Match != nil} {
		if is {
			asked++
		}
	}
	switch {
	case asked != 1:
		return f.Errorf(at, "expected one of raster, regexp, path and match, not %d of them", asked)
	case one.Raster != "" && one.Raster != "opens":
		return f.Errorf(at+".raster", "expected opens, not %q", one.Raster)
	case (one.After != nil || one.Before != nil) && one.Path == "":
		return f.Errorf(at, "after: and before: are of path")
	}
	if one.Path == "quality" || strings.HasPrefix(one.Path, "quality.") {
		if err := asking.CheckPath(one.Path); err != nil {
			return f.Errorf(at+".path", "%v; what the metadata says lies below metadata.quality", err)
		}
	}
	if one.Regexp != "" {
		if one.regexp, err = regexp.Compile(one.Regexp); err != nil {
			return f.Errorf(at+".regexp", "%v", err)
		}
	}
	for key, bound := range map[string]struct {
		from any
		to   *time.Time
	}{"after": {one.After, &one.after}, "before": {one.Before, &one.before}} {
		if bound.from == nil {
			continue
		}
		var ok bool
		if *bound.to, ok = momentOf(fmt.Sprint(bound.from)); !ok {
			return f.Errorf(at+"."+key, "expected a year, a day or a time, not %q", fmt.Sprint(bound.from))
		}
	}
	if one.After != nil && one.Before != nil && !one.before.After(one.after) {
		return f.Errorf(at+".before", "expected a time after that of after:, %v, not %v", one.After, one.Before)
	}
	if one.Match != nil {
		c.known = map[string]bool{}
		for _, v := range builtinVars() {
			c.known[v] = true
		}
		return c.match(one.Match, at+".match", 0)
	}
	return nil
}

// momentOf reads a time, or the beginning of a day, month or year.
func momentOf(text string) (time.Time, bool) {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly, "2006-01", "2006"} {
		if t, err := time.Parse(form, strings.TrimSpace(text)); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// isOfExecution reports whether a path leads into what was done with an item.
func isOfExecution(path string) bool {
	return path == "execution" || strings.HasPrefix(path, "execution.")
}
