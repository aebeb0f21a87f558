package layout

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A document is written in the bytes that encoding/json gives, and a new record in those that a document of it is,
// whatever stands in it.
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
		doc, err := toDocument(v)
		if err != nil {
			t.Fatal(err)
		}
		var of bytes.Buffer
		e := json.NewEncoder(&of)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(doc); err != nil || !bytes.Equal(of.Bytes(), want) {
			t.Fatalf("%v: by encoding/json\n%s\nby hand\n%s", err, of.Bytes(), want)
		}
		if got, err := encodeNew(v); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v: new\n%s\nas a document\n%s", err, got, want)
		}
	})
}

func toAny[V any](v V) any { return v }

// A manifest is written in the bytes that a document of it is, whatever stands in it; one of a registered object
// without a document of it.
func TestManifestsAsDocuments(t *testing.T) {
	text := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[a-z<&>/ é.]{0,9}`), rapid.SampledFrom([]string{"\\", `"`, "\u2028", "é\u2029", "\x00", "\x7f", "é\n", "é\"", "\xff", "é\xff", "\ufffd"}))
	texts := rapid.MapOfN(text, text, 0, 4)
	at := rapid.Custom(func(t *rapid.T) time.Time {
		zone := rapid.SampledFrom([]*time.Location{time.UTC, time.FixedZone("", 5400), time.FixedZone("", 90_000)}).Draw(t, "zone")
		return rapid.SampledFrom([]time.Time{{}, time.Date(2026, 11, 27, 1, 2, 3, 4e6, zone), time.Date(10_000, 1, 1, 0, 0, 0, 0, zone), time.Date(999, 1, 1, 0, 0, 0, 1, zone)}).Draw(t, "at")
	})
	one := func(t *rapid.T) string { return text.Draw(t, "text") }
	some := func(t *rapid.T) bool { return rapid.Bool().Draw(t, "some") }
	number := rapid.IntRange(-1, 1<<40)
	rapid.Check(t, func(t *rapid.T) {
		m := Manifest{Schema: manifestSchema, Item: ItemID(one(t)), Version: number.Draw(t, "n"), Collection: Name(one(t)), Label: one(t), Lane: Name(one(t)), Batch: one(t),
			Created: at.Draw(t, "created"), Since: at.Draw(t, "since"), Metadata: map[string]any{},
			Source: Source{Name: one(t), Kind: one(t), Files: number.Draw(t, "n"), Bytes: int64(number.Draw(t, "n")), Digest: one(t), Taken: at.Draw(t, "taken"), By: one(t), Rule: one(t),
				DuplicateOf: ItemID(one(t)), Drop: ItemID(one(t))}}
		m.Type, m.Identifiers = one(t), texts.Draw(t, "identifiers")
		if some(t) {
			m.Source.Place = &Place{Catalog: Name(one(t)), Path: one(t), Stamp: one(t), With: rapid.SliceOfN(text, 0, 2).Draw(t, "with")}
		}
		if some(t) {
			m.Metadata = map[string]any{"b": one(t), "a": map[string]any{"z": 1.5, "y": []any{one(t), nil}}}
		}
		if some(t) {
			m.Inventory = &InventorySummary{Digest: one(t), Files: number.Draw(t, "n"), Bytes: int64(number.Draw(t, "n"))}
		}
		if some(t) {
			m.Recognition = &Recognition{Verdict: one(t), Rule: one(t), Tried: texts.Draw(t, "tried"), More: number.Draw(t, "n")}
		}
		if some(t) {
			m.Quality = &QualitySummary{Result: one(t), Levels: texts.Draw(t, "levels"), Counts: map[string]int{"pass": 1}}
		}
		switch rapid.IntRange(0, 9).Draw(t, "remains") {
		case 0:
			m.Parent = &Parent{Name: one(t)}
		case 1:
			m.Originals = map[string]Original{"a": {File: one(t)}}
		case 2:
			m.Disposed = &Disposed{At: at.Draw(t, "at"), By: one(t)}
		}
		want, wantErr := EncodeJSON(m)
		if got, err := m.Encode(nil); (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
			t.Fatalf("%v: written as\n%s\nas a document, %v,\n%s", err, got, wantErr, want)
		}
	})
	m := Manifest{Item: "3fa9c0d2e1b7a45", Label: "scan é.tif", Created: time.Unix(1, 0).UTC(), Metadata: map[string]any{},
		Source: Source{Name: "scan.tif", Kind: "file", Taken: time.Unix(1, 0).UTC(), Place: &Place{Catalog: "c", Path: "a/b", Stamp: "sha256:0"}}}
	m.Recognition = &Recognition{Verdict: "yes", Rule: "default/all", Tried: map[string]string{"images/all": "no: the extension is none of tif", "a/b": "no"}}
	if _, ok := appendManifest(nil, &m); !ok {
		t.Error("it is not appended")
	}
}

// A member that a manifest is given one day is not forgotten where it is appended.
func TestNoMemberOfAManifestIsLeftOut(t *testing.T) {
	var m Manifest
	fillAll(reflect.ValueOf(&m).Elem())
	m.Parent, m.Originals, m.Disposed = nil, nil, nil // with these it is not appended
	want, err := EncodeJSON(m)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := appendManifest(nil, &m); !ok || !bytes.Equal(got, want) {
		t.Errorf("appended (%v)\n%s\nas a document\n%s", ok, got, want)
	}
}

// fillAll gives every member a value that is written.
func fillAll(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1, 0).UTC()))
	case v.Kind() == reflect.String:
		v.SetString("x")
	case v.CanInt():
		v.SetInt(7)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.Kind() == reflect.Interface:
		v.Set(reflect.ValueOf("y"))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAll(v.Elem())
	case v.Kind() == reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillAll(key)
		fillAll(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillAll(v.Field(i))
			}
		}
	}
}
