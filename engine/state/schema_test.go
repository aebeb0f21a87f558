package state

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bagpipe/engine/condition"
	"bagpipe/templates"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// workflowSchema compiles the JSON Schema that is shipped for editors.
func workflowSchema(t *testing.T) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(templates.WorkflowSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("workflow.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("workflow.json")
	if err != nil {
		t.Fatal(err)
	}
	return s, doc.(map[string]any)
}

// asJSON is a YAML document as an editor hands it to a schema.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// The schema takes what the strict reader takes, every template among it, and
// refuses what the reader refuses for its form.
func TestSchemaAgreesWithTheReader(t *testing.T) {
	s, _ := workflowSchema(t)
	accepted := slices.Clone(rightDefinitions)
	err := fs.WalkDir(templates.Workspace, "workflows", func(p string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".yaml") {
			var data []byte
			data, err = templates.Workspace.ReadFile(p)
			accepted = append(accepted, string(data))
		}
		return err
	})
	if err != nil || len(accepted) == len(rightDefinitions) {
		t.Fatalf("no template was read: %v", err)
	}
	for _, text := range accepted {
		if err := s.Validate(asJSON(t, text)); err != nil {
			t.Errorf("the schema refuses:\n%s\n%v", text, err)
		}
	}
	for _, c := range wrongDefinitions {
		if err := s.Validate(asJSON(t, c.text)); (err != nil) != c.form {
			t.Errorf("the schema says %v of\n%s\nthe reader: %s", err, c.text, c.want)
		}
	}
}

// Every key of a definition has its place in the schema, and the other way round.
func TestSchemaNamesEveryKey(t *testing.T) {
	_, doc := workflowSchema(t)
	at := func(path ...string) map[string]any {
		v := doc
		for _, p := range path {
			v, _ = v[p].(map[string]any)
		}
		return v
	}
	for _, c := range []struct {
		of   reflect.Type
		keys map[string]any
	}{
		{reflect.TypeFor[Definition](), at("properties")},
		{reflect.TypeFor[Alert](), at("properties", "alert", "properties")},
		{reflect.TypeFor[Step](), at("$defs", "step", "properties")},
		{reflect.TypeFor[condition.Keys](), at("$defs", "condition", "properties")},
		{reflect.TypeFor[Backoff](), at("$defs", "step", "properties", "backoff", "properties")},
		{reflect.TypeFor[Threshold](), at("$defs", "step", "properties", "threshold", "properties")},
	} {
		count := 0
		for _, f := range reflect.VisibleFields(c.of) {
			name := f.Tag.Get("yaml")
			if name == "" || name == "-" || f.Anonymous {
				continue
			}
			count++
			if key, ok := c.keys[name].(map[string]any); !ok || key["description"] == nil {
				t.Errorf("%s: the schema has no %s, or does not describe it", c.of, name)
			}
		}
		if count != len(c.keys) {
			t.Errorf("%s has %d keys, the schema %d", c.of, count, len(c.keys))
		}
	}
}
