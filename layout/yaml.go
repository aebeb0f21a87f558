package layout

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// FileError is a mistake in a file people write: where it is and what was
// expected there.
type FileError struct {
	File         string
	Line, Column int
	Text         string
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Text)
}

// Conflict is the first line of a text, from 1, at which two versions of it stand between Git's marks; 0: nowhere.
func Conflict(text []byte) int {
	const mark = "<<<<<<< "
	at := bytes.Index(text, []byte("\n"+mark)) + 1
	if at == 0 && !bytes.HasPrefix(text, []byte(mark)) {
		return 0
	}
	return 1 + bytes.Count(text[:at], []byte("\n"))
}

// maxYAML is far above any settings file; a larger one is a mistake or an attack.
const maxYAML = 1 << 20

// YAML is one parsed document that remembers where its parts stand.
type YAML struct {
	file string
	body ast.Node
}

// ParseYAML reads one document; its errors are *FileError.
func ParseYAML(file string, data []byte) (*YAML, error) {
	if len(data) > maxYAML {
		return nil, &FileError{File: file, Text: fmt.Sprintf("is larger than %d bytes", maxYAML)}
	}
	if err := checkDepth(file, data); err != nil {
		return nil, err
	}
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, fileError(file, err)
	}
	docs := slices.DeleteFunc(f.Docs, func(d *ast.DocumentNode) bool { return d.Body == nil })
	if len(docs) == 0 {
		return nil, &FileError{File: file, Line: 1, Column: 1, Text: "is empty; expected keys with values"}
	}
	if len(docs) > 1 {
		return nil, at(file, docs[1].Body, "a second document; expected one")
	}
	if n := anchored(docs[0].Body); n != nil {
		return nil, at(file, n, "anchors and aliases are not read here; write the value out")
	}
	return &YAML{file: file, body: docs[0].Body}, nil
}

// maxYAMLDepth is how deep brackets, or the signs of a list in a list, may be
// nested. The parser keeps a copy of the path at every level: 100,000 levels, a
// file of 200 KB, take it beyond 6 GB.
const maxYAMLDepth = 100

// checkDepth refuses deep nesting before the parser sees it. Brackets and signs
// in strings and comments count as well, which only matters to a file that has
// hundreds of them unmatched, or in a row.
func checkDepth(file string, data []byte) error {
	line, start, depth, signs := 1, 0, 0, 0
	for i, c := range data {
		switch c {
		case '[', '{':
			depth, signs = depth+1, 0
		case ']', '}':
			depth, signs = max(depth-1, 0), 0
		case '-', '?', '!':
			signs++
		case '\n':
			line, start, signs = line+1, i+1, 0
		case ' ', '\t':
		default:
			signs = 0
		}
		if depth > maxYAMLDepth || signs > maxYAMLDepth && !isRule(data[start:i+1]) {
			return &FileError{File: file, Line: line, Column: i - start + 1,
				Text: fmt.Sprintf("is nested deeper than %d levels", maxYAMLDepth)}
		}
	}
	return nil
}

// isRule tells a comment such as "# ------" from data.
func isRule(line []byte) bool { return strings.HasPrefix(strings.TrimSpace(string(line)), "#") }

// Decode fills v strictly: an unknown key, a doubled key or a value of another
// kind is a *FileError that says what was expected.
func (y *YAML) Decode(v any) error {
	if err := checkKeys(y.file, y.body, reflect.TypeOf(v)); err != nil {
		return err
	}
	if err := fill(y.body, reflect.ValueOf(v).Elem()); err != nil {
		return fileError(y.file, err)
	}
	return nil
}

// Errorf makes a *FileError at the place a YAML path such as $.steps[2].requires
// names, or at its nearest parent that is there.
func (y *YAML) Errorf(path, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	for p := path; p != ""; p = parentPath(p) {
		yp, err := yaml.PathString(p)
		if err != nil {
			continue
		}
		if n, err := yp.FilterNode(y.body); err == nil && n != nil {
			return at(y.file, n, text)
		}
	}
	return at(y.file, y.body, text)
}

func parentPath(p string) string {
	i := strings.LastIndexAny(p, ".[")
	if i <= 0 {
		return ""
	}
	return p[:i]
}

func at(file string, n ast.Node, text string) *FileError {
	e := &FileError{File: file, Text: text}
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		n = m.Values[0].Key
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		n = m.Key
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	return e
}

// fileError rewords the library's errors: no Go types, what was expected.
func fileError(file string, err error) error {
	e := &FileError{File: file, Text: err.Error()}
	var ye yaml.Error
	if !errors.As(err, &ye) {
		return e
	}
	e.Text = plainYAML(ye.GetMessage())
	var te *yaml.TypeError
	if errors.As(err, &te) {
		e.Text = "expected " + expected(te.DstType)
	}
	if t := ye.GetToken(); t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	return e
}

func expected(t reflect.Type) string {
	if t == nil {
		return "another kind of value"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "keys with values"
	case reflect.Pointer:
		return expected(t.Elem())
	}
	return "another kind of value"
}

// scalar is a type that reads itself; its error says what was expected, and is
// given its place here because the library does not.
type scalar interface{ UnmarshalYAML([]byte) error }

// reader is a type that reads its node itself: text, or keys with values.
type reader interface{ UnmarshalYAML(ast.Node) error }

// checkKeys walks the document beside the type it is for, so that an unknown key
// can be answered with the keys that are known there.
func checkKeys(file string, n ast.Node, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if r, ok := reflect.New(t).Interface().(reader); ok {
		if err := r.UnmarshalYAML(n); err != nil {
			return at(file, n, err.Error())
		}
		return nil
	}
	if c, ok := reflect.New(t).Interface().(scalar); ok {
		if err := c.UnmarshalYAML([]byte(n.String())); err != nil {
			return at(file, n, err.Error())
		}
		return nil
	}
	switch t.Kind() {
	case reflect.Slice:
		seq, ok := n.(*ast.SequenceNode)
		if !ok {
			if n.Type() == ast.NullType {
				return nil
			}
			return at(file, n, "expected "+expected(t))
		}
		for _, v := range seq.Values {
			if err := checkKeys(file, v, t.Elem()); err != nil {
				return err
			}
		}
	case reflect.Array:
		if seq, ok := n.(*ast.SequenceNode); !ok || len(seq.Values) != t.Len() {
			return at(file, n, fmt.Sprintf("expected a list of %d values", t.Len()))
		}
	case reflect.Map:
		for _, kv := range pairs(n) {
			if err := checkKeys(file, kv.Value, t.Elem()); err != nil {
				return err
			}
		}
	case reflect.Struct:
		fields := yamlFields(t)
		for _, kv := range pairs(n) {
			key := kv.Key.String()
			field, ok := fields[key]
			if !ok {
				return at(file, kv, unknownKey(key, maps.Keys(fields)))
			}
			if err := checkKeys(file, kv.Value, field.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

// unknownKey names the key that was meant, if one is near, or else all.
func unknownKey(key string, known iter.Seq[string]) string {
	if near := Nearest(key, known); near != "" {
		return fmt.Sprintf("unknown key %q; did you mean %s?", key, near)
	}
	return fmt.Sprintf("unknown key %q; expected one of: %s", key, strings.Join(slices.Sorted(known), ", "))
}

func pairs(n ast.Node) []*ast.MappingValueNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	}
	return nil
}

// knownFields keeps what yamlFields answered: a definition has dozens of steps.
var knownFields sync.Map

// yamlFields gives the fields of a struct by their keys, each with its way from the struct, also through those that are
// inline.
func yamlFields(t reflect.Type) map[string]reflect.StructField {
	if known, ok := knownFields.Load(t); ok {
		return known.(map[string]reflect.StructField)
	}
	fields := map[string]reflect.StructField{}
	for f := range t.Fields() {
		name, how, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if how == "inline" {
			for key, inner := range yamlFields(f.Type) {
				inner.Index = slices.Concat(f.Index, inner.Index)
				fields[key] = inner
			}
		}
		if name != "" && name != "-" {
			fields[name] = f
		}
	}
	knownFields.Store(t, fields)
	return fields
}

// anchored finds the first anchor, alias or merge key: a few lines of them can
// stand for gigabytes.
func anchored(root ast.Node) (found ast.Node) {
	ast.Walk(finder(func(n ast.Node) bool {
		switch n.Type() {
		case ast.AnchorType, ast.AliasType, ast.MergeKeyType:
			found = n
		}
		return found == nil
	}), root)
	return found
}

type finder func(ast.Node) bool

func (f finder) Visit(n ast.Node) ast.Visitor {
	if f(n) {
		return f
	}
	return nil
}
