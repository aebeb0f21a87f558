package condition

import (
	"fmt"
	"slices"
	"strings"

	"bagpipe/layout"
)

// kind is what a path leads to. Below quality all names and values are known: one that is misspelt would fit nothing but !=,
// unsaid.
type kind int

const (
	anything kind = iota // elsewhere
	section              // quality, quality.levels, quality.counts
	result               // of all checks, or of a level
	count                // of the checks that ended so
)

// Lead is a path as it stands in a record, where names with dots in them have a backslash before each: the levels of quality
// may be written without.
func Lead(path string) string {
	if at, _, err := lead(path); err == nil {
		return at
	}
	return path
}

func lead(path string) (at string, to kind, err error) {
	if path != "quality" && !strings.HasPrefix(path, "quality.") {
		return path, anything, nil
	}
	_, rest, _ := strings.Cut(path, ".")
	part, name, of := strings.Cut(rest, ".")
	name = strings.ReplaceAll(name, `\.`, ".")
	switch {
	case rest == "" || !of && (part == "levels" || part == "counts"):
		return path, section, nil
	case !of && part == "result":
		return path, result, nil
	case part == "levels" && slices.Contains(layout.AllQualityLevels(), name):
		return "quality.levels." + strings.ReplaceAll(name, ".", `\.`), result, nil
	case part == "counts" && layout.IsQualityResult(name):
		return path, count, nil
	}
	return "", 0, fmt.Errorf("path %s: expected quality.result, quality.levels. with one of %s, or quality.counts. with one of %s",
		path, strings.Join(layout.AllQualityLevels(), ", "), strings.Join(layout.QualityResults(), ", "))
}

// check refuses a comparison that no value there can fit.
func (to kind) check(path, op string, v value) error {
	switch {
	case to == section:
		return fmt.Errorf("path %s: expected exists, or a path below it, as it has no value of its own", path)
	case to == count && (op == "~" || !v.isNumber):
		return fmt.Errorf("path %s: expected a number, not %q", path, v.text)
	case to == result && op != "=" && op != "!=" && op != "in" && op != "~":
		return fmt.Errorf("path %s: expected = or != or in, as results are no numbers", path)
	case to == result && !slices.ContainsFunc(layout.QualityResults(), func(r string) bool { return r == v.text || op == "~" && layout.MatchPattern(v.text, r) }):
		return fmt.Errorf("path %s: expected one of %s, not %q", path, strings.Join(layout.QualityResults(), ", "), v.text)
	}
	return nil
}

// CheckQuality refuses a comparison with what quality cannot be; at is its place in y.
func (c *Keys) CheckQuality(y *layout.YAML, at string) error {
	_, to, err := lead(c.Path)
	if err != nil {
		return y.Errorf(at+".path", "%v", err)
	}
	asked := c.comparison()
	for _, v := range asked.values {
		if err := to.check(c.Path, asked.op, v); err != nil {
			return y.Errorf(at, "%v", err)
		}
	}
	return nil
}
