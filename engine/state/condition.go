package state

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// Condition is asked of manifest.json; the package comment has the operators, of
// which exactly one is given.
type Condition struct {
	Path    string   `yaml:"path"`
	Equals  any      `yaml:"equals"`
	Differs any      `yaml:"differs"`
	In      []any    `yaml:"in"`
	NotIn   []any    `yaml:"notIn"`
	Exists  *bool    `yaml:"exists"`
	Above   *float64 `yaml:"above"`
	Below   *float64 `yaml:"below"`
	Matches string   `yaml:"matches"`
}

const maxPath = 200

// checkPath takes gjson's plain paths: its modifiers, queries and pipes are a
// language of their own.
func checkPath(p string) error {
	if p == "" || len(p) > maxPath {
		return fmt.Errorf("expected a path such as metadata.sheets, of at most %d characters", maxPath)
	}
	for name := range strings.SplitSeq(p, ".") {
		if name == "" || strings.ContainsAny(name, "@!|{}[]()*?\\\"") || strings.Contains(name, "#") && name != "#" {
			return fmt.Errorf("path %q: expected names with dots between them, such as metadata.sheets", p)
		}
	}
	return nil
}

func (c *Condition) check(y *layout.YAML, at string) error {
	if err := checkPath(c.Path); err != nil {
		return y.Errorf(at+".path", "%v", err)
	}
	given := 0
	for _, has := range []bool{c.Equals != nil, c.Differs != nil, c.In != nil, c.NotIn != nil, c.Exists != nil, c.Above != nil, c.Below != nil, c.Matches != ""} {
		if has {
			given++
		}
	}
	if given != 1 {
		return y.Errorf(at, "expected path and exactly one of equals, differs, in, notIn, exists, above, below, matches")
	}
	for key, v := range map[string]any{"equals": c.Equals, "differs": c.Differs} {
		if v != nil && !isScalar(v) {
			return y.Errorf(at+"."+key, "expected text, a number, true or false")
		}
	}
	for key, list := range map[string][]any{"in": c.In, "notIn": c.NotIn} {
		if list != nil && (len(list) == 0 || !allScalars(list)) {
			return y.Errorf(at+"."+key, "expected a list of texts, numbers, true or false")
		}
	}
	if _, err := path.Match(c.Matches, "x"); err != nil {
		return y.Errorf(at+".matches", "expected a pattern such as *.tif, not %q", c.Matches)
	}
	return nil
}

func isScalar(v any) bool {
	switch v.(type) {
	case string, bool, int, int64, uint64, float64:
		return true
	}
	return false
}

func allScalars(list []any) bool {
	return !slices.ContainsFunc(list, func(v any) bool { return !isScalar(v) })
}

// holds asks the condition of a manifest.
func (c *Condition) holds(manifest []byte) bool {
	v := gjson.GetBytes(manifest, c.Path)
	there := v.Exists() && v.Type != gjson.Null
	switch {
	case c.Exists != nil:
		return there == *c.Exists
	case c.Differs != nil:
		return !there || !sameOrHas(v, c.Differs)
	case c.NotIn != nil:
		return !there || !slices.ContainsFunc(c.NotIn, func(w any) bool { return sameOrHas(v, w) })
	case c.Equals != nil:
		return there && sameOrHas(v, c.Equals)
	case c.In != nil:
		return there && slices.ContainsFunc(c.In, func(w any) bool { return sameOrHas(v, w) })
	case c.Above != nil:
		return v.Type == gjson.Number && v.Num > *c.Above
	case c.Below != nil:
		return v.Type == gjson.Number && v.Num < *c.Below
	}
	fits, _ := path.Match(c.Matches, v.Str) // the pattern was checked
	return v.Type == gjson.String && fits
}

// sameOrHas compares a value, or the members of a list, with a scalar.
func sameOrHas(v gjson.Result, want any) bool {
	if v.IsArray() {
		return slices.ContainsFunc(v.Array(), func(m gjson.Result) bool { return same(m, want) })
	}
	return same(v, want)
}

func same(v gjson.Result, want any) bool {
	switch w := want.(type) {
	case string:
		return v.Type == gjson.String && v.Str == w
	case bool:
		return v.IsBool() && v.Bool() == w
	}
	n, err := strconv.ParseFloat(fmt.Sprint(want), 64)
	return err == nil && v.Type == gjson.Number && v.Num == n
}

// String words the condition as a reason.
func (c *Condition) String() string {
	word := func(v any) string {
		data, _ := json.Marshal(v) // scalars always encode
		return string(data)
	}
	switch {
	case c.Exists != nil && *c.Exists:
		return c.Path + " exists"
	case c.Exists != nil:
		return "there is no " + c.Path
	case c.Equals != nil:
		return c.Path + " is " + word(c.Equals)
	case c.Differs != nil:
		return c.Path + " is not " + word(c.Differs)
	case c.In != nil:
		return c.Path + " is one of " + word(c.In)
	case c.NotIn != nil:
		return c.Path + " is none of " + word(c.NotIn)
	case c.Above != nil:
		return c.Path + " is above " + word(*c.Above)
	case c.Below != nil:
		return c.Path + " is below " + word(*c.Below)
	}
	return c.Path + " matches " + c.Matches
}
