package state

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"bagpipe/layout"
)

// writer appends indented JSON.
type writer struct {
	buf   []byte
	depth int
}

// value writes itself.
type value func(*writer)

// fields are the members of one object, in any order until written.
type fields []field

type field struct {
	key string
	val value
}

// fields begins an object with the members this version does not know.
func (u unknown) fields() fields {
	f := make(fields, 0, len(u)+8)
	for k, raw := range u {
		f.set(k, func(w *writer) { w.raw(raw) })
	}
	return f
}

func (f *fields) set(key string, v value) { *f = append(*f, field{key, v}) }

func (f *fields) text(key, s string) {
	if s != "" {
		f.set(key, text(s))
	}
}

func (f *fields) time(key string, t time.Time) {
	if !t.IsZero() {
		f.set(key, timeValue(t))
	}
}

func (f fields) value() value {
	return func(w *writer) {
		slices.SortFunc(f, func(a, b field) int { return strings.Compare(a.key, b.key) })
		if len(f) == 0 {
			w.buf = append(w.buf, "{}"...)
			return
		}
		w.buf = append(w.buf, '{')
		w.depth++
		for i, m := range f {
			if i > 0 {
				w.buf = append(w.buf, ',')
			}
			w.line()
			w.quote(m.key)
			w.buf = append(w.buf, ": "...)
			m.val(w)
		}
		w.depth--
		w.line()
		w.buf = append(w.buf, '}')
	}
}

// object is a map written with sorted keys.
func object[K comparable, V any](m map[K]V, key func(K) string, val func(V) value) value {
	f := make(fields, 0, len(m))
	for k, v := range m {
		f.set(key(k), val(v))
	}
	return f.value()
}

func text(s string) value { return func(w *writer) { w.quote(s) } }

func timeValue(t time.Time) value {
	return func(w *writer) { w.quote(layout.FormatTime(t)) }
}

const indent = "                                "

func (w *writer) line() {
	w.buf = append(w.buf, '\n')
	for n := 2 * w.depth; n > 0; n -= len(indent) {
		w.buf = append(w.buf, indent[:min(n, len(indent))]...)
	}
}

// quote writes a JSON string as encoding/json does without HTML escapes.
func (w *writer) quote(s string) {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf || c == 0x7f {
			plain = false
			break
		}
	}
	if plain {
		w.buf = append(append(append(w.buf, '"'), s...), '"')
		return
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	w.buf = append(w.buf, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// raw writes JSON kept from a file, in this file's form.
func (w *writer) raw(s string) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		w.buf = append(w.buf, s...)
		return
	}
	w.any(v)
}

func (w *writer) any(v any) {
	switch v := v.(type) {
	case map[string]any:
		f := make(fields, 0, len(v))
		for k, m := range v {
			f.set(k, func(w *writer) { w.any(m) })
		}
		f.value()(w)
	case []any:
		w.list(v)
	case string:
		w.quote(v)
	default:
		b, _ := json.Marshal(v) // numbers, booleans and null always encode
		w.buf = append(w.buf, b...)
	}
}

func (w *writer) list(v []any) {
	if len(v) == 0 {
		w.buf = append(w.buf, "[]"...)
		return
	}
	w.buf = append(w.buf, '[')
	w.depth++
	for i, m := range v {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.line()
		w.any(m)
	}
	w.depth--
	w.line()
	w.buf = append(w.buf, ']')
}
