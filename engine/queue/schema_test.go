package queue

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"bagpipe/templates"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The schema that is shipped for editors takes what the strict reader takes, refuses
// what the reader refuses for its form, and knows every key.
func TestQueueSchemaAgreesWithTheReader(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(templates.QueueSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("queue.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("queue.json")
	if err != nil {
		t.Fatal(err)
	}
	for text, right := range map[string]bool{
		"schema: 1\nname: q\n": true,
		"schema: 1\nname: q\ndescription: d\nsteps: [w/a, /b, w]\nwhere: a = 1\norder: [created, -metadata.year]\nlimit: 3\n": true,
		"schema: 2\nname: q\n":               false,
		"name: q\n":                          false,
		"schema: 1\n":                        false,
		"schema: 1\nname: -q\n":              false,
		"schema: 1\nname: q\nsteps: a\n":     false,
		"schema: 1\nname: q\nlimit: -1\n":    false,
		"schema: 1\nname: q\nlimit: x\n":     false,
		"schema: 1\nname: q\nsteps: ['']\n":  false,
		"schema: 1\nname: q\nsteps: [a b]\n": false,
		"schema: 1\nname: q\nkey: 1\n":       false,
	} {
		_, err := ParseNamed("queues/q.yaml", []byte(text))
		if (err == nil) != right {
			t.Errorf("%q: the reader says %v", text, err)
		}
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		in, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(in); (err == nil) != right {
			t.Errorf("%q: the schema says %v", text, err)
		}
	}
	known := doc.(map[string]any)["properties"].(map[string]any)
	named := reflect.TypeFor[Named]()
	for i := range named.NumField() {
		key, _, _ := strings.Cut(named.Field(i).Tag.Get("yaml"), ",")
		if named.Field(i).IsExported() && known[key] == nil {
			t.Errorf("the schema does not know %q", key)
		}
	}
}
