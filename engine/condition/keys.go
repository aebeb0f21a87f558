package condition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// Keys is one comparison, written as the keys of a YAML mapping, of which exactly one is
// given beside path.
type Keys struct {
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

// Check refuses a comparison that cannot be asked; at is its place in y. One that no record can fit is refused by CheckQuality:
// what was once accepted is read for good.
func (c *Keys) Check(y *layout.YAML, at string) error {
	if err := checkForm(c.Path); err != nil {
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
	if !layout.ValidPattern(c.Matches) {
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

// Holds asks the comparison of a JSON document.
func (c *Keys) Holds(doc []byte) bool {
	asked := c.comparison()
	is, _ := asked.holds(func(path string) gjson.Result { return gjson.GetBytes(doc, path) }, time.Time{})
	return is != (c.Exists != nil && !*c.Exists)
}

// comparison is the same in the terms of conditions.
func (c *Keys) comparison() comparison {
	ask := func(op string, wanted ...any) comparison {
		out := comparison{path: Lead(c.Path), op: op}
		for _, w := range wanted {
			out.values = append(out.values, exactly(w))
		}
		return out
	}
	switch {
	case c.Differs != nil:
		return ask("!=", c.Differs)
	case c.NotIn != nil:
		return ask("!=", c.NotIn...)
	case c.Equals != nil:
		return ask("=", c.Equals)
	case c.In != nil:
		return ask("in", c.In...)
	case c.Above != nil:
		return ask(">", *c.Above)
	case c.Below != nil:
		return ask("<", *c.Below)
	case c.Matches != "":
		return ask("~", c.Matches)
	}
	return ask("exists")
}

// exactly is a scalar of a YAML file as a value.
func exactly(scalar any) value {
	v := value{text: fmt.Sprint(scalar), exact: true}
	switch scalar.(type) {
	case string:
	case bool:
		v.isBool = true
	default:
		v.number, _ = strconv.ParseFloat(v.text, 64) // numbers print as numbers
		v.isNumber = true
	}
	return v
}

// String words the condition as a reason.
func (c *Keys) String() string {
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
