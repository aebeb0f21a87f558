package engine

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"bagpipe/bags"
	"bagpipe/engine/inbox"
	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

// The rules are: side-cars are read where an inbox's settings have metadata:. What is
// read later wins: the line for the drop in metadata.csv beside it; in a folder
// bag-info.txt, metadata.csv, metadata.json; and NAME.metadata.csv and
// NAME.metadata.json beside it. A table has a head line. One whose first column is
// file tells of the files in the drop, and stands in metadata.files by their paths;
// one whose first column is drop tells of drops by their names; any other has one
// line, which is about the drop. Everything is bounded, and no more is read than that.

// Bounds of side-cars.
const (
	maxSidecar       = 8 << 20 // of a file
	maxMetadata      = 1 << 20 // of all that comes of them, as JSON
	maxMetadataKeys  = 1000
	maxMetadataKey   = 200
	maxMetadataValue = 64 << 10
	maxIdentifier    = 500
)

// ruleMetadata is broken by a side-car that cannot be read.
const ruleMetadata = "metadata"

// flaggedMetadata is where an item says what was wrong with its side-cars.
const flaggedMetadata = "sidecarError"

// sidecarError is about what a producer wrote.
type sidecarError struct{ file, why string }

func (s *sidecarError) Error() string { return layout.EncodePath(s.file) + ": " + s.why }

// metadata reads the side-cars of a drop, as its inbox's settings map them.
func (d DropSettings) metadata(t inbox.Taken) (fields map[string]any, identifiers map[string]string, err error) {
	if d.Metadata == nil {
		return nil, nil, nil
	}
	raw := map[string]any{}
	for _, car := range d.sidecars(t) {
		if err := car.read(raw, t); err != nil {
			return nil, nil, err
		}
	}
	fields = d.Metadata.mapped(raw)
	if data, err := json.Marshal(fields); err != nil || len(data) > maxMetadata {
		return nil, nil, &sidecarError{"metadata", fmt.Sprintf("takes more than %d bytes in all", maxMetadata)}
	}
	identifiers = map[string]string{}
	for kind, key := range d.Metadata.Identifiers {
		if raw[key] == nil || raw[key] == "" {
			continue
		}
		value, ok := oneValue(raw[key])
		if !ok {
			return nil, nil, &sidecarError{key, "an identifier is one text or number"}
		}
		if value != oneLine(value, maxIdentifier) {
			return nil, nil, &sidecarError{key, fmt.Sprintf("an identifier is one line of at most %d bytes", maxIdentifier)}
		}
		identifiers[kind] = value
	}
	return fields, identifiers, nil
}

// oneValue is the text of a value that is a text or a number.
func oneValue(v any) (string, bool) {
	if n, ok := v.(json.Number); ok {
		return n.String(), true
	}
	s, ok := v.(string)
	return s, ok
}

// mapped names the fields as the settings want them.
func (s MetadataSettings) mapped(raw map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		to, named := s.Map[key]
		switch {
		case !named && s.Only && key != filesKey:
		case !named:
			out[key] = raw[key]
		case to != "":
			out[to] = raw[key]
		}
	}
	return out
}

// sidecar is one file, and how it is read.
type sidecar struct {
	path  string
	name  string
	drops bool // it is about several drops
}

// sidecars lists those that are there.
func (d DropSettings) sidecars(t inbox.Taken) (found []sidecar) {
	add := func(path string, drops bool) {
		if _, err := os.Lstat(path); path != "" && err == nil {
			found = append(found, sidecar{path, filepath.Base(path), drops})
		}
	}
	add(t.Shared, true)
	if t.Kind == inbox.Folder {
		for _, name := range []string{"bag-info.txt", "metadata.csv", "metadata.json"} {
			add(filepath.Join(t.Path, name), false)
		}
	}
	for _, path := range t.Sidecars {
		add(path, false)
	}
	return found
}

func (c sidecar) read(into map[string]any, t inbox.Taken) error {
	data, err := c.bytes()
	if err != nil {
		return err
	}
	switch {
	case strings.HasSuffix(c.name, ".json"):
		err = c.readJSON(data, into)
	case strings.HasSuffix(c.name, ".csv"):
		err = c.readTable(data, into, t)
	default:
		err = c.readTags(data, into)
	}
	if err != nil {
		return err
	}
	return c.check(into)
}

// bytes reads a regular file of bounded size, and opens nothing else.
func (c sidecar) bytes() ([]byte, error) {
	f, err := os.OpenFile(c.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
			return nil, &sidecarError{c.name, "cannot be read"}
		}
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, &sidecarError{c.name, "is no file"})
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSidecar+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxSidecar:
		return nil, &sidecarError{c.name, fmt.Sprintf("is larger than %d bytes", maxSidecar)}
	case !utf8.Valid(data) && !strings.HasSuffix(c.name, ".txt"):
		return nil, &sidecarError{c.name, notUTF8(data)}
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

func (c sidecar) readJSON(data []byte, into map[string]any) error {
	var fields map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&fields); err != nil || fields == nil {
		why := `expected an object, as {"title": "Letters"}`
		var syntax *json.SyntaxError
		switch {
		case errors.As(err, &syntax):
			why = fmt.Sprintf("line %d: %v", lineOf(data, int(syntax.Offset)-1), err)
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
			why = fmt.Sprintf("line %d: ends before its object does", lineOf(data, len(bytes.TrimSpace(data))))
		}
		return &sidecarError{c.name, why}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return &sidecarError{c.name, "something follows the object"}
	}
	if depth(fields) > maxDepth {
		return &sidecarError{c.name, fmt.Sprintf("is nested deeper than %d", maxDepth)}
	}
	maps.Copy(into, fields)
	return nil
}

// notUTF8 says where, as tables written on older systems have it in one place or two.
func notUTF8(data []byte) string {
	at := 0
	for at < len(data) {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return fmt.Sprintf("line %d is not in UTF-8; save the file as UTF-8", lineOf(data, at))
}

// lineOf is the line in which the byte at this offset stands.
func lineOf(data []byte, offset int) int {
	return 1 + bytes.Count(data[:max(0, min(offset, len(data)))], []byte("\n"))
}

// notTable words what is wrong with a table.
func notTable(err error, head []string) string {
	var parse *csv.ParseError
	switch {
	case errors.As(err, &parse) && errors.Is(err, csv.ErrFieldCount):
		return fmt.Sprintf("line %d has not the %d columns that its head line has", parse.Line, len(head))
	case errors.As(err, &parse):
		return fmt.Sprintf("line %d, column %d: %v", parse.Line, parse.Column, parse.Err)
	}
	return err.Error()
}

const maxDepth = 20

func depth(v any) int {
	most := 0
	switch v := v.(type) {
	case map[string]any:
		for _, w := range v {
			most = max(most, depth(w))
		}
	case []any:
		for _, w := range v {
			most = max(most, depth(w))
		}
	default:
		return 0
	}
	return most + 1
}

func (c sidecar) readTags(data []byte, into map[string]any) error {
	tags, err := bags.ReadInfo(bytes.NewReader(data))
	if !utf8.Valid(data) { // a bag says in which encoding
		if tags, err = bags.BagInfo(filepath.Dir(c.path)); err != nil || tags == nil {
			return &sidecarError{c.name, "is not in UTF-8"}
		}
	}
	if err != nil {
		return &sidecarError{c.name, err.Error()}
	}
	own := map[string]any{}
	for _, t := range tags {
		switch was := own[t.Label].(type) {
		case nil:
			own[t.Label] = t.Value
		case string:
			own[t.Label] = []any{was, t.Value}
		case []any:
			own[t.Label] = append(was, t.Value)
		}
	}
	maps.Copy(into, own)
	return nil
}

// Heads of a table's first column, and where the lines about files go.
const (
	fileColumn = "file"
	dropColumn = "drop"
	filesKey   = "files"
)

func (c sidecar) readTable(data []byte, into map[string]any, t inbox.Taken) error {
	r := csv.NewReader(bytes.NewReader(data))
	if head, _, _ := bytes.Cut(data, []byte("\n")); bytes.Contains(head, []byte(";")) && !bytes.Contains(head, []byte(",")) {
		r.Comma = ';'
	}
	head, err := r.Read()
	if errors.Is(err, io.EOF) {
		return &sidecarError{c.name, "has no head line"}
	}
	if err != nil {
		return &sidecarError{c.name, notTable(err, nil)}
	}
	if c.drops && head[0] != dropColumn {
		return &sidecarError{c.name, fmt.Sprintf("line 1: the first column of a table beside the drops is to be %q, their names; here it is %.100q", dropColumn, head[0])}
	}
	for i, column := range head {
		if column == "" || slices.Contains(head[:i], column) {
			return &sidecarError{c.name, fmt.Sprintf("line 1: column %d has no name of its own", i+1)}
		}
	}
	rows, err := r.ReadAll()
	if err != nil {
		return &sidecarError{c.name, notTable(err, head)}
	}
	switch {
	case head[0] == dropColumn:
		mine := slices.DeleteFunc(rows, func(row []string) bool { return row[0] != t.Name })
		for _, row := range mine {
			fill(into, head[1:], row[1:])
		}
		if len(mine) == 0 && !c.drops {
			return &sidecarError{c.name, "has no line for the drop " + layout.EncodePath(t.Name)}
		}
		return nil
	case head[0] == fileColumn:
		return c.readFiles(head, rows, into, t)
	case len(rows) != 1:
		return &sidecarError{c.name, fmt.Sprintf("has %d lines; its first column is to be %q or %q, or there is to be one line", len(rows), fileColumn, dropColumn)}
	}
	fill(into, head, rows[0])
	return nil
}

// readFiles takes the lines about the files of a drop.
func (c sidecar) readFiles(head []string, rows [][]string, into map[string]any, t inbox.Taken) error {
	files := map[string]any{}
	for i, row := range rows {
		path := row[0]
		if !filepath.IsLocal(path) {
			return &sidecarError{c.name, fmt.Sprintf("line %d: names no file of the drop: %.200q", i+2, path)}
		}
		at := filepath.Join(t.Path, path)
		if t.Kind == inbox.File {
			at = filepath.Join(filepath.Dir(t.Path), path)
		}
		if info, err := os.Lstat(at); err != nil || !info.Mode().IsRegular() {
			return &sidecarError{c.name, fmt.Sprintf("line %d: %.200q is not in the drop", i+2, path)}
		}
		about := map[string]any{}
		fill(about, head[1:], row[1:])
		files[layout.EncodePath(path)] = about
	}
	into[filesKey] = files
	return nil
}

// fill sets the fields that a line has a value for.
func fill(into map[string]any, head, row []string) {
	for i, key := range head {
		if row[i] != "" {
			into[key] = row[i]
		}
	}
}

// check bounds what was read.
func (c sidecar) check(fields map[string]any) error {
	if len(fields) > maxMetadataKeys {
		return &sidecarError{c.name, fmt.Sprintf("has %d fields; the limit is %d", len(fields), maxMetadataKeys)}
	}
	for key, value := range fields {
		if key != oneLine(key, maxMetadataKey) || key == "" {
			return &sidecarError{c.name, fmt.Sprintf("the name of a field is one line of 1 to %d bytes, not %.100q", maxMetadataKey, key)}
		}
		if s, ok := value.(string); ok && len(s) > maxMetadataValue {
			return &sidecarError{c.name, fmt.Sprintf("%s has %d bytes; the limit is %d", key, len(s), maxMetadataValue)}
		}
	}
	return nil
}

// describe adds to a drop what its side-cars say; what is wrong with them refuses it,
// or is noted in the item, as the inbox's settings want.
func (e *Engine) describe(d *drop) error {
	set := e.current().settings.drops(d.taken.Collection)
	fields, identifiers, err := set.metadata(d.taken)
	var broken *sidecarError
	if errors.As(err, &broken) && set.Metadata.Broken == brokenFlag {
		d.metadata = map[string]any{flaggedMetadata: broken.Error()}
		return nil
	}
	if errors.As(err, &broken) {
		d.refused, d.rule = broken.Error(), ruleMetadata
		return nil
	}
	d.metadata, d.identifiers = fields, identifiers
	return err
}

// MetadataSettings say how side-cars are read.
type MetadataSettings struct {
	Map         map[string]string `yaml:"map"`         // names in the manifest, by theirs; "": left out
	Only        bool              `yaml:"only"`        // what is not in map is left out
	Identifiers map[string]string `yaml:"identifiers"` // fields that identify the item, by kind
	Broken      string            `yaml:"broken"`      // reject or flag
}

const brokenFlag = "flag"

func (s *MetadataSettings) check(y *layout.YAML, at string) error {
	if s == nil {
		return nil
	}
	if s.Broken != "" && s.Broken != "reject" && s.Broken != brokenFlag {
		return y.Errorf(at+".broken", "expected reject or flag, not %q", s.Broken)
	}
	for kind := range s.Identifiers {
		if _, err := layout.ParseName(kind); err != nil {
			return y.Errorf(at+".identifiers", "%v", err)
		}
	}
	return nil
}
