package engine

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"bagpipe/bags"
	"bagpipe/engine/inbox"
	"bagpipe/layout"
)

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
	if !utf8.Valid(data) && c.within != nil {
		return &sidecarError{c.name, notUTF8(data)}
	}
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
		if c.within != nil {
			if !c.within.holds(path) {
				return &sidecarError{c.name, fmt.Sprintf("line %d: %.200q is not in the drop", i+2, path)}
			}
		} else if info, err := os.Lstat(at); err != nil || !info.Mode().IsRegular() {
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
