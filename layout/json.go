package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
)

// SchemaError is a file whose schema this version does not know.
type SchemaError struct {
	File   string
	Schema int
	Known  int
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("%s: schema %d is newer than %d, the newest this version reads; upgrade bagpipe", e.File, e.Schema, e.Known)
}

// EncodeJSON writes v as Bagpipe's files do: sorted keys, one key a line, indent
// of two spaces, no HTML escapes, final newline.
func EncodeJSON(v any) ([]byte, error) {
	doc, err := toDocument(v)
	if err != nil {
		return nil, err
	}
	return encodeDocument(doc)
}

// RewriteJSON writes v over old: what v has replaces what old had, and what
// only old has (fields of a version we do not know) survives, at every level.
func RewriteJSON(old []byte, v any) ([]byte, error) { return rewriteBut(old, v) }

// rewriteBut is RewriteJSON, but for members of which nothing survives that v has not.
func rewriteBut(old []byte, v any, members ...string) ([]byte, error) {
	if len(old) == 0 {
		return encodeNew(v)
	}
	doc, err := toDocument(v)
	if err != nil {
		return nil, err
	}
	var before any
	if err := decodeNumbers(old, &before); err != nil {
		return nil, err
	}
	if o, ok := before.(map[string]any); ok {
		for _, name := range members {
			delete(o, name)
		}
	}
	return encodeDocument(overlay(before, doc))
}

// toDocument makes v a tree of maps, so that encoding/json sorts all keys.
func toDocument(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var doc any
	return doc, decodeNumbers(raw, &doc)
}

// encodeDocument writes what decodeNumbers gives. It is written by hand, as encoding/json makes two values of each
// member of a map.
func encodeDocument(doc any) ([]byte, error) {
	b, err := appendDocument(make([]byte, 0, 1<<10), doc, 0)
	return append(b, '\n'), err
}

// appendDocument appends a value that stands so deep in a document.
func appendDocument(b []byte, v any, depth int) (_ []byte, err error) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return append(b, "{}"...), nil
		}
		var room [24]string // a record seldom has more
		names := room[:0]
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		b = append(b, '{')
		for i, name := range names {
			if b, err = appendText(appendBreak(b, i > 0, depth+1), name); err != nil {
				return b, err
			}
			if b, err = appendDocument(append(b, ": "...), v[name], depth+1); err != nil {
				return b, err
			}
		}
		return append(appendBreak(b, false, depth), '}'), nil
	case []any:
		if len(v) == 0 {
			return append(b, "[]"...), nil
		}
		b = append(b, '[')
		for i := range v {
			if b, err = appendDocument(appendBreak(b, i > 0, depth+1), v[i], depth+1); err != nil {
				return b, err
			}
		}
		return append(appendBreak(b, false, depth), ']'), nil
	case string:
		return appendText(b, v)
	case bool:
		return strconv.AppendBool(b, v), nil
	case nil:
		return append(b, "null"...), nil
	}
	compact, err := marshalCompact(v) // a json.Number, which it checks
	return append(b, compact...), err
}

// appendBreak begins a line, after a comma where there is one before.
func appendBreak(b []byte, comma bool, depth int) []byte {
	if comma {
		b = append(b, ',')
	}
	b = append(b, '\n')
	for range depth {
		b = append(b, "  "...)
	}
	return b
}

// appendText appends a string; most are their own JSON between quotes.
func appendText(b []byte, s string) ([]byte, error) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			quoted, err := marshalCompact(s)
			return append(b, quoted...), err
		}
	}
	return append(append(append(b, '"'), s...), '"'), nil
}

func decodeNumbers(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the end of the JSON")
	}
	return nil
}

func overlay(old, new any) any {
	o, ok1 := old.(map[string]any)
	n, ok2 := new.(map[string]any)
	if !ok1 || !ok2 {
		return new
	}
	out := maps.Clone(o)
	for k, v := range n {
		out[k] = overlay(o[k], v)
	}
	return out
}

// FormatTime is how times stand in files: RFC 3339, UTC, to the millisecond.
func FormatTime(t time.Time) string {
	return t.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano)
}

// AppendTime appends what FormatTime gives.
func AppendTime(to []byte, t time.Time) []byte {
	return t.UTC().Truncate(time.Millisecond).AppendFormat(to, time.RFC3339Nano)
}

// OutOfRange is where in what was decoded with UseNumber a number is that no float64 holds, as
// key.key; "": nowhere.
func OutOfRange(v any) (at string) {
	below := func(key string, v any) bool {
		if number, is := v.(json.Number); is {
			if _, err := number.Float64(); err != nil {
				at = key
			}
		} else if rest := OutOfRange(v); rest != "" {
			at = key + "." + rest
		}
		return at != ""
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if below(key, v[key]) {
				return at
			}
		}
	case []any:
		for i := range v {
			if below(strconv.Itoa(i), v[i]) {
				return at
			}
		}
	}
	return ""
}
