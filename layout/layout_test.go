package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestItemIDFindsTypos(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 1000 {
		id, err := NewItemID(random)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseItemID(string(id)); err != nil {
			t.Fatal(err)
		}
		for i := range len(id) {
			for _, d := range hexDigits {
				if byte(d) == id[i] {
					continue
				}
				typo := string(id[:i]) + string(d) + string(id[i+1:])
				if _, err := ParseItemID(typo); err == nil {
					t.Fatalf("%s passed for %s", typo, id)
				}
			}
		}
	}
}

func TestItemDirRoundTrip(t *testing.T) {
	id, _ := NewItemID(rand.New(rand.NewSource(2)))
	dir := ItemDir(id)
	if want := "items/" + string(id[0]) + "/" + string(id[1]) + "/" + string(id[2]) + "/" + string(id[3]) + "/" + string(id); dir != want {
		t.Fatalf("ItemDir = %s, want %s", dir, want)
	}
	got, rest, ok := ItemOfPath(dir + "/manifest.json")
	if !ok || got != id || rest != "manifest.json" {
		t.Fatalf("ItemOfPath = %q %q %v", got, rest, ok)
	}
	for _, p := range []string{"items", "items/3/f", "workflows/a.yaml", "items/0/0/0/0/" + string(id)} {
		if _, _, ok := ItemOfPath(p); ok {
			t.Errorf("%s passed for an item's path", p)
		}
	}
}

func TestEncodePathRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := string(rapid.SliceOf(rapid.Byte()).Draw(t, "path"))
		e := EncodePath(p)
		if strings.ContainsAny(e, "\n\r\x00") {
			t.Fatalf("%q is not one line", e)
		}
		d, err := DecodePath(e)
		if err != nil || d != p {
			t.Fatalf("%q -> %q -> %q, %v", p, e, d, err)
		}
	})
}

func TestAttemptKeysOrder(t *testing.T) {
	a, err := ParseAttemptKey("2-5c1e9a70")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := ParseAttemptKey("10-00000000")
	if a.Compare(b) >= 0 {
		t.Error("attempts must order by number, not by text")
	}
	for _, s := range []string{"", "1", "0-5c1e9a70", "01-5c1e9a70", "1-5c1e9a7", "1-5C1E9A70", "x-5c1e9a70"} {
		if _, err := ParseAttemptKey(s); err == nil {
			t.Errorf("%q passed", s)
		}
	}
}

func TestIntentKeysOrderByTime(t *testing.T) {
	random := rand.New(rand.NewSource(3))
	t0 := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	a, _ := NewIntentKey(t0, random, "5c1e9a70")
	b, _ := NewIntentKey(t0.Add(time.Millisecond), random, "00000000")
	if a >= b || len(a) != 26+1+8 {
		t.Errorf("%s, %s", a, b)
	}
}

func TestNames(t *testing.T) {
	for _, ok := range []string{"default", "reading-room", "2026.v1", "A_b"} {
		if _, err := ParseName(ok); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", ".x", "-x", "a/b", "a b", "é", strings.Repeat("x", 65)} {
		if _, err := ParseName(bad); err == nil {
			t.Errorf("%q passed", bad)
		}
	}
}

func TestManifestKeepsUnknownFields(t *testing.T) {
	id, _ := NewItemID(rand.New(rand.NewSource(4)))
	old := []byte(`{"item":"` + string(id) + `","schema":1,"later":{"x":[1,2]},"source":{"name":"a","colour":"red"}}`)
	m, err := DecodeManifest(old)
	if err != nil {
		t.Fatal(err)
	}
	m.Label = "new <label>"
	out, err := m.Encode(old)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"later": {`, `"colour": "red"`, `"label": "new <label>"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is missing in\n%s", want, out)
		}
	}
	_, err = DecodeManifest([]byte(`{"schema":2}`))
	if newer := (*SchemaError)(nil); !errors.As(err, &newer) {
		t.Errorf("a newer schema: %v", err)
	}
}

func TestYAMLSaysWhereAndWhat(t *testing.T) {
	type step struct {
		Name    string        `yaml:"name"`
		Timeout time.Duration `yaml:"timeout"`
		Retries int           `yaml:"retries"`
	}
	type file struct {
		Steps []step `yaml:"steps"`
	}
	for _, c := range []struct{ text, want string }{
		{"steps:\n  - name: a\n    retrys: 3\n", `f.yaml:3:5: unknown key "retrys"; did you mean retries?`},
		{"steps:\n  - name: a\n    whenever: 3\n", `f.yaml:3:5: unknown key "whenever"; expected one of: name, retries, timeout`},
		{"steps:\n  - name: a\n    retries: many\n", "f.yaml:3:14: expected a whole number"},
		{"steps:\n  - name: a\n    name: b\n", "f.yaml:3:5: "},
		{"steps: [\n", "f.yaml:"},
		{"steps: 3\n", "f.yaml:1:8: expected a list"},
		{"", "f.yaml:1:1: is empty"},
		{"a: 1\n---\nb: 2\n", "f.yaml:3:1: a second document"},
		{"steps: &x []\n", "f.yaml:1:8: anchors"},
	} {
		var v file
		y, err := ParseYAML("f.yaml", []byte(c.text))
		if err == nil {
			err = y.Decode(&v)
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	y, err := ParseYAML("f.yaml", []byte("steps:\n  - name: a\n  - name: b\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := y.Errorf("$.steps[1].requires", "no step %q", "x").Error(); got != `f.yaml:3:5: no step "x"` {
		t.Error(got)
	}
}

// The parser takes gigabytes for nesting that a file of 200 KB can hold.
func TestYAMLNestingIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"brackets": "steps: " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"braces":   "steps: " + strings.Repeat("{a: ", 100_000) + strings.Repeat("}", 100_000),
		"lists":    "steps:\n  " + strings.Repeat("- ", 60_000) + "x",
		"tags":     "steps: " + strings.Repeat("! ", 60_000) + "x",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseYAML("f.yaml", []byte(text))
			if err == nil || !strings.Contains(err.Error(), "nested deeper than 100 levels") {
				t.Errorf("ParseYAML: %v; want a refusal for its depth", err)
			}
		})
	}
	rule := "# " + strings.Repeat("-", 200) + "\nname: x # [ { -\n"
	if _, err := ParseYAML("f.yaml", []byte(rule)); err != nil {
		t.Errorf("ParseYAML of a file with a rule in a comment: %v", err)
	}
}

func TestItemIDAsANumber(t *testing.T) {
	random := rand.New(rand.NewSource(3))
	for range 1000 {
		id, err := NewItemID(random)
		if err != nil {
			t.Fatal(err)
		}
		if back := ItemIDOf(id.Bits()); back != id {
			t.Fatalf("%s became %s", id, back)
		}
	}
	if id := ItemIDOf(0); len(id) != ItemIDLen || id.Bits() != 0 {
		t.Errorf("0 is %q", id)
	}
}

// A record is not written that could not be read again.
func TestManifestRefusesNumbers(t *testing.T) {
	m := Manifest{Item: "3fa9c0d2e1b7a49", Metadata: map[string]any{"a": map[string]any{"b": []any{json.Number("1"), json.Number("1e400")}}}}
	if _, err := m.Encode(nil); err == nil || !strings.Contains(err.Error(), "metadata.a.b.1: the number is out of range") {
		t.Errorf("a manifest with 1e400 is written: %v", err)
	}
	m.Metadata["a"] = json.Number("1e300")
	if data, err := m.Encode(nil); err != nil {
		t.Error(err)
	} else if _, err := DecodeManifest(data); err != nil {
		t.Error(err)
	}
}

// ManifestHead says what DecodeManifest says, or that it does not know.
func TestManifestHead(t *testing.T) {
	m := Manifest{Item: "3fa9c0d2e1b7a45", Version: 2, Collection: "maps", Label: "a \"map\"", Lane: "normal", Batch: "b",
		Created: time.Date(2026, 11, 20, 10, 0, 0, 5e6, time.UTC), Source: Source{Name: "x", Kind: "file", Files: 1, Bytes: 2, Taken: time.Unix(1, 0).UTC()},
		Metadata: map[string]any{"a": []any{1.0}}, Inventory: &InventorySummary{Files: 1},
		Recognised: Recognised{Type: "map", Identifiers: map[string]string{"barcode": "35112"},
			Recognition: &Recognition{Verdict: "yes", Rule: "a/b", Tried: map[string]string{"a/a": "no: the name"}}}}
	m.Item = ItemIDOf(m.Item.Bits())
	data, err := m.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := DecodeManifest(data)
	if err != nil {
		t.Fatal(err)
	}
	head, ok := ManifestHead(data)
	whole.Source, whole.Metadata, whole.Inventory, whole.Recognition = Source{}, nil, nil, nil
	if !ok || !reflect.DeepEqual(head, whole) {
		t.Errorf("%+v, %v\n%+v", head, ok, whole)
	}
	for _, change := range [][2]string{{`"version": 2`, `"version": "2"`}, {`"schema": 1`, `"schema": 9`}, {`"label"`, `"Label"`},
		{`"files": 1`, `"files": 1.5`}, {`"lane": "normal"`, `"lane": 3`}, {"{", "["}, {`"created": "2026`, `"created": "x`},
		{`"type": "map"`, `"type": 1`}, {`"35112"`, `35112`}, {`"verdict": "yes"`, `"verdict": true`}, {`"no: the name"`, `["no"]`}} {
		bad := []byte(strings.Replace(string(data), change[0], change[1], 1))
		if string(bad) == string(data) {
			t.Fatalf("%s is not in it", change[0])
		}
		if _, ok := ManifestHead(bad); ok {
			t.Errorf("%s was taken", change[1])
		}
	}
	r, taken := rand.New(rand.NewSource(9)), 0
	for range 50_000 {
		bad := bytes.Clone(data)
		at := r.Intn(len(bad))
		bits := []string{`"`, `\"`, `\u0041`, "0", ".", "-", "e999", "null", "{}", "[", ",", " ", `"x": 1,`, "9999", "é", "\xff", "\x00"}
		switch bit := bits[r.Intn(len(bits))]; r.Intn(3) {
		case 0:
			bad[at] = byte(r.Intn(256))
		case 1:
			bad = slices.Concat(data[:at], []byte(bit), data[at:])
		case 2:
			bad = slices.Concat(data[:at], data[min(at+1+r.Intn(20), len(data)):])
		}
		head, ok := ManifestHead(bad)
		if !ok {
			continue
		}
		taken++
		whole, err := DecodeManifest(bad)
		whole.Source, whole.Metadata, whole.Inventory, whole.Recognition = head.Source, nil, nil, nil
		if err != nil || !reflect.DeepEqual(head, whole) {
			t.Fatalf("taken, and DecodeManifest says %v:\n%+v\n%+v\n%s", err, head, whole, bad)
		}
	}
	if taken < 1000 {
		t.Errorf("only %d were taken", taken)
	}
}

func TestStoreFileOfNoWorkspace(t *testing.T) {
	for _, text := range []string{"", "{}", `{"schema": 1, "workspaces": null}`} {
		s, err := DecodeStore([]byte(text))
		if err != nil || s.Workspaces == nil || len(s.Workspaces) > 0 {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
	for _, text := range []string{"x", `{"schema": 2}`} {
		if s, err := DecodeStore([]byte(text)); err == nil {
			t.Errorf("%q was read: %v", text, s)
		}
	}
}

func TestAManifestLosesWhatWasTakenOutOfItsMetadata(t *testing.T) {
	old := []byte(`{"item": "` + string(ItemIDOf(1)) + `", "collection": "c", "label": "l", "created": "2026-01-01T00:00:00Z", "source": {}, "metadata": {"tags": {"a": [1], "b": [2]}, "gone": 1}, "later": {"x": 1}, "schema": 1}`)
	m, err := DecodeManifest(old)
	if err != nil {
		t.Fatal(err)
	}
	delete(m.Metadata, "gone")
	delete(m.Metadata["tags"].(map[string]any), "a")
	data, err := m.Encode(old)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(data); strings.Contains(text, `"gone"`) || strings.Contains(text, `"a"`) || !strings.Contains(text, `"b"`) || !strings.Contains(text, `"later"`) {
		t.Errorf("rewritten as %s", text)
	}
}

func TestAppendTime(t *testing.T) {
	at := time.Date(2026, 11, 24, 3, 4, 5, 678_912_345, time.FixedZone("", 3600))
	if got, want := string(AppendTime([]byte("at "), at)), "at "+FormatTime(at); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
