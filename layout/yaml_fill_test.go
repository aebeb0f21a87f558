package layout

import (
	"reflect"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

// filled has a field of each kind that settings have.
type filled struct {
	Text    string            `yaml:"text"`
	Name    Name              `yaml:"name"`
	Number  int               `yaml:"number"`
	Large   int64             `yaml:"large"`
	Part    float64           `yaml:"part"`
	Yes     bool              `yaml:"yes"`
	Texts   []string          `yaml:"texts"`
	Deep    [][]string        `yaml:"deep"`
	By      map[string]string `yaml:"by"`
	Any     any               `yaml:"any"`
	With    map[string]any    `yaml:"with"`
	Long    Duration          `yaml:"long"`
	Least   *int              `yaml:"least"`
	Most    *Duration         `yaml:"most"`
	Inner   *inner            `yaml:"inner"`
	Inners  []inner           `yaml:"inners"`
	Named   map[string]*inner `yaml:"named"`
	Secret  Secret            `yaml:"secret"`
	Outline `yaml:",inline"`
}

type Outline struct {
	Kind string `yaml:"kind"`
}

type inner struct {
	Label string  `yaml:"label"`
	More  []inner `yaml:"more"`
}

// A document gives what the library makes of it, whatever stands in it, or its error.
func TestDocumentsAreFilledAsTheLibraryFillsThem(t *testing.T) {
	for _, text := range []string{
		"text: a\nname: b\nnumber: 5\nlarge: 0x10\npart: 1e3\nyes: true\nkind: x\n",
		"text: 5\nname: true\npart: 5\n", "text: 2026-11-01\n", "text: 0644\n", "text: ~\nname:\n", "text: 'a: b'\nname: \"\\u00e9\"\n",
		"text: |\n  one\n  two\n", "text: >-\n  one\n  two\n", "text: [a]\n", "text: {a: b}\n",
		"texts: [a, 5, ~, 'c']\ndeep: [[a], [], [b, c]]\n", "texts: []\n", "texts:\n", "texts: ~\n", "texts: a\n", "texts: [[a]]\n", "deep: [a]\n",
		"by: {a: b, c: 5}\nwith: {a: [1, {b: c}], d: 1.5}\nany: [1, a]\n", "by: {}\nwith: ~\n", "by: a\n", "any: {a: {b: c}}\n",
		"long: 5m\nleast: 0\nsecret: {env: X}\n", "most: 0s\n", "most: ~\n", "least: ~\n", "least: many\n", "number: 1.5\n", "number: a\n", "yes: 5\n",
		"inner: {label: a, more: [{label: b}, {label: c, more: [{label: d}]}]}\n", "inner: ~\n", "inner: {}\n", "inner: a\n", "inner: [a]\n",
		"inners: [{label: a}, {}, ~]\n", "inners:\n  - label: a\n    more:\n      - label: b\n", "inners: {label: a}\n", "inners: [a]\n",
		"named: {a: {label: b}, c: ~}\n", "# nothing but this\nkind: 'y' # and that\n", "large: 99999999999999999999\n",
	} {
		y, err := ParseYAML("f.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var got, want filled
		err, wrong := fill(y.body, reflect.ValueOf(&got).Elem()), yaml.NodeToValue(y.body, &want)
		if (err == nil) != (wrong == nil) {
			t.Errorf("%q: %v, the library says %v", text, err, wrong)
			continue
		}
		if err != nil {
			if a, b := fileError("f.yaml", err), fileError("f.yaml", wrong); a.Error() != b.Error() {
				t.Errorf("%q: %v, the library says %v", text, a, b)
			}
			continue
		}
		if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Errorf("%q (-library +fill):\n%s", text, diff)
		}
	}
}
