package layout

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// A new record is written in the bytes that a document of it is, whatever stands in it.
func TestNewRecordsAsDocuments(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a", "\\", `\"`, `"`, "<&>", "\u2028", "\x00", "\t", "é", "\xff", " ", "{", "],", "a,\n  b"}))
	leaf := rapid.OneOf(rapid.Map(text, toAny), rapid.Map(rapid.Float64Range(-1e30, 1e30), toAny), rapid.Map(rapid.Int64(), toAny), rapid.Map(rapid.Bool(), toAny), rapid.Just[any](nil))
	value := leaf
	for range 3 {
		value = rapid.OneOf(leaf, rapid.Map(rapid.SliceOfN(value, 0, 4), toAny), rapid.Map(rapid.MapOfN(text, value, 0, 5), toAny))
	}
	rapid.Check(t, func(t *rapid.T) {
		var v any = struct {
			Z any    `json:"z,omitempty"`
			B []any  `json:"b"`
			A string `json:"a<"`
		}{value.Draw(t, "z"), rapid.SliceOfN(value, 0, 3).Draw(t, "b"), text.Draw(t, "a")}
		if rapid.Bool().Draw(t, "plain") {
			v = value.Draw(t, "v")
		}
		want, err := EncodeJSON(v)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := encodeNew(v); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v: new\n%s\nas a document\n%s", err, got, want)
		}
	})
}

func toAny[V any](v V) any { return v }
