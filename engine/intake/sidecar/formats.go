package sidecar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"unicode/utf8"

	"bagpipe/bags/tagfile"
	"bagpipe/layout"
)

func (c file) readJSON(data []byte, into map[string]any) error {
	var fields map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&fields); err != nil || fields == nil {
		why := `expected an object, as {"title": "Letters"}`
		var syntax *json.SyntaxError
		switch {
		case errors.As(err, &syntax):
			why = fmt.Sprintf("line %d: no JSON from here on", lineOf(data, int(syntax.Offset)-1))
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
			why = fmt.Sprintf("line %d: ends before its object does", lineOf(data, len(bytes.TrimSpace(data))))
		}
		return &SidecarError{c.name, why}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return &SidecarError{c.name, "something follows the object"}
	}
	if depth(fields) > maxDepth {
		return &SidecarError{c.name, fmt.Sprintf("is nested deeper than %d", maxDepth)}
	}
	if at := layout.OutOfRange(fields); at != "" {
		return &SidecarError{c.name, layout.EncodePath(at) + ": the number is out of range"}
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

func (c file) readTags(data []byte, into map[string]any) error {
	tags, err := tagfile.ReadInfo(bytes.NewReader(data))
	if !utf8.Valid(data) && c.within != nil {
		return &SidecarError{c.name, notUTF8(data)}
	}
	if !utf8.Valid(data) { // a bag says in which encoding
		if tags, err = tagfile.BagInfo(filepath.Dir(c.path)); err != nil || tags == nil {
			return &SidecarError{c.name, "is not in UTF-8"}
		}
	}
	if err != nil {
		return &SidecarError{c.name, err.Error()}
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
