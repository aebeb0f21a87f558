package recognise

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Texts is one text or a list of them.
type Texts []string

// UnmarshalYAML reads either.
func (t *Texts) UnmarshalYAML(n ast.Node) error {
	list := []ast.Node{n}
	if seq, ok := n.(*ast.SequenceNode); ok {
		list = seq.Values
	}
	*t = nil
	for _, one := range list {
		text, err := scalarText(one)
		if err != nil {
			return fmt.Errorf("expected text, or a list of texts; %w", err)
		}
		*t = append(*t, text)
	}
	return nil
}

// scalarText takes numbers and truth values for what people meant: the text they
// wrote.
func scalarText(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, nil
	case *ast.NullNode:
		return "", errors.New("nothing stands here")
	}
	return "", errors.New("put quotes around it")
}

// Value is where a value comes from: a text with variables in it, or what stands at
// a path of an XML or JSON file. As is text (the default), number, date or degrees.
type Value struct {
	Text string `yaml:"text"`
	XML  string `yaml:"xml"`
	JSON string `yaml:"json"`
	File string `yaml:"file"`
	As   string `yaml:"as"`

	xpath *xpath
}

// Values of Value.As.
const (
	asText   = "text"
	asNumber = "number"
	asDate   = "date"

	asDegrees = "degrees" // E116.5, W77.3: west and south are negative
)

// valueKeys are those of Value, as people write them.
func valueKeys() (keys []string) {
	for f := range reflect.TypeFor[Value]().Fields() {
		if key := f.Tag.Get("yaml"); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// UnmarshalYAML reads a text, or keys with values.
func (v *Value) UnmarshalYAML(n ast.Node) error {
	*v = Value{}
	var fields []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		fields = n.Values
	case *ast.MappingValueNode:
		fields = []*ast.MappingValueNode{n}
	default:
		text, err := scalarText(n)
		v.Text = text
		return err
	}
	into := map[string]*string{"text": &v.Text, "xml": &v.XML, "json": &v.JSON, "file": &v.File, "as": &v.As}
	for _, f := range fields {
		key := f.Key.String()
		if into[key] == nil {
			return fmt.Errorf("unknown key %q; expected one of: %s", key, strings.Join(valueKeys(), ", "))
		}
		text, err := scalarText(f.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		*into[key] = text
	}
	return v.check()
}

func (v *Value) check() error {
	sources := 0
	for _, s := range []string{v.Text, v.XML, v.JSON} {
		if s != "" {
			sources++
		}
	}
	switch {
	case sources != 1:
		return errors.New("expected one of text, xml and json")
	case v.File != "" && v.Text != "":
		return errors.New("file goes with xml or json")
	case !slices.Contains([]string{"", asText, asNumber, asDate, asDegrees}, v.As):
		return fmt.Errorf("as: expected text, number, date or degrees, not %q", v.As)
	}
	return nil
}
