package screen

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// What is printed is what encoding/json would print.
func TestIndented(t *testing.T) {
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		some := []*rapid.Generator[any]{rapid.String().AsAny(), rapid.Float64Range(-1e9, 1e9).AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil),
			rapid.SampledFrom([]string{`\`, `"`, `\"`, "a\\\"b", "{}", "[,:]", "<&>", "\n"}).AsAny()}
		if depth > 0 {
			some = append(some, rapid.SliceOfN(value(depth-1), 0, 4).AsAny(), rapid.MapOfN(rapid.String(), value(depth-1), 0, 4).AsAny())
		}
		return rapid.OneOf(some...)
	}
	rapid.Check(t, func(t *rapid.T) {
		v := value(4).Draw(t, "value")
		var want, got bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		if err := (&Screen{Out: &Output{W: &got}}).JSON(v); err != nil || got.String() != Plain(want.String()) {
			t.Fatalf("%s\nwant\n%s: %v", got.String(), want.String(), err)
		}
	})
}
