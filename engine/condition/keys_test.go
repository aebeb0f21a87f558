package condition

import "testing"

func TestKeys(t *testing.T) {
	manifest := []byte(`{"label": "map 7", "metadata": {"sheets": 12, "open": true, "kind": "thesis", "nothing": null, "authors": [{"name": "Ada"}, {"name": "Bo"}], "tags": ["a", "b", 3]}}`)
	yes, no := true, false
	twelve, thirteen := 12.0, 13.0
	for _, c := range []struct {
		c    Keys
		want bool
		text string
	}{
		{Keys{Path: "metadata.sheets", Equals: uint64(12)}, true, "metadata.sheets is 12"},
		{Keys{Path: "metadata.sheets", Equals: 12.5}, false, "metadata.sheets is 12.5"},
		{Keys{Path: "metadata.sheets", Equals: "12"}, false, `metadata.sheets is "12"`},
		{Keys{Path: "metadata.open", Equals: true}, true, "metadata.open is true"},
		{Keys{Path: "metadata.open", Differs: false}, true, "metadata.open is not false"},
		{Keys{Path: "metadata.absent", Differs: "x"}, true, `metadata.absent is not "x"`},
		{Keys{Path: "metadata.absent", Equals: "x"}, false, `metadata.absent is "x"`},
		{Keys{Path: "metadata.kind", In: []any{"book", "thesis"}}, true, `metadata.kind is one of ["book","thesis"]`},
		{Keys{Path: "metadata.kind", NotIn: []any{"book", "thesis"}}, false, `metadata.kind is none of ["book","thesis"]`},
		{Keys{Path: "metadata.absent", NotIn: []any{"book"}}, true, `metadata.absent is none of ["book"]`},
		{Keys{Path: "metadata.nothing", Exists: &yes}, false, "metadata.nothing exists"},
		{Keys{Path: "metadata.nothing", Exists: &no}, true, "there is no metadata.nothing"},
		{Keys{Path: "metadata.sheets", Above: &twelve}, false, "metadata.sheets is above 12"},
		{Keys{Path: "metadata.sheets", Below: &thirteen}, true, "metadata.sheets is below 13"},
		{Keys{Path: "metadata.kind", Below: &thirteen}, false, "metadata.kind is below 13"},
		{Keys{Path: "label", Matches: "map *"}, true, "label matches map *"},
		{Keys{Path: "metadata.sheets", Matches: "*"}, false, "metadata.sheets matches *"},
		{Keys{Path: "metadata.authors.0.name", Equals: "Ada"}, true, `metadata.authors.0.name is "Ada"`},
		{Keys{Path: "metadata.authors.#", Equals: int64(2)}, true, "metadata.authors.# is 2"},
		{Keys{Path: "metadata.authors.#.name", Equals: "Bo"}, true, `metadata.authors.#.name is "Bo"`},
		{Keys{Path: "metadata.tags", In: []any{"b"}}, true, `metadata.tags is one of ["b"]`},
		{Keys{Path: "metadata.tags", Differs: "b"}, false, `metadata.tags is not "b"`},
	} {
		if got := c.c.Holds(manifest); got != c.want || c.c.String() != c.text {
			t.Errorf("%s: %v, want %v: %s", c.c.String(), got, c.want, c.text)
		}
	}
}
