package state

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bagpipe/layout"
)

// writer appends indented JSON.
type writer struct {
	buf     []byte
	depth   int
	members []field // of the objects under way, the innermost last
}

// writers are used again: a record is written at every transition.
var writers = sync.Pool{New: func() any { return &writer{} }}

func newWriter() *writer { return writers.Get().(*writer) }

// mostKept bounds the bytes that a writer keeps for the next record.
const mostKept = 64 << 10

// keep gives the writer back.
func (w *writer) keep() {
	if cap(w.buf) <= mostKept {
		w.buf = w.buf[:0]
		clear(w.members[:cap(w.members)])
		writers.Put(w)
	}
}

// value is a text, a time, or what writes itself.
type value struct {
	kind  valueKind
	text  string
	time  time.Time
	num   float64
	write func(*writer)
}

type valueKind uint8

const (
	madeValue valueKind = iota
	textValue
	momentValue
	numberValue
)

type field struct {
	key string
	val value
}

// fields are the members of one object. Those of an object without unknown ones come in their
// order, and are written as they are set; others in any order, and when it ends.
type fields struct {
	w      *writer
	from   int // of w.members; -1: the members come in their order
	member int // how many are written
}

// members begins an object with the members this version does not know. Where there are some, its
// other members are set before anything is written.
func (u unknown) members(w *writer) fields {
	if len(u) == 0 {
		w.open()
		return fields{w: w, from: -1}
	}
	f := newObject(w)
	for k, raw := range u {
		f.set(k, made(func(w *writer) { w.raw(raw) }))
	}
	return f
}

func newObject(w *writer) fields { return fields{w: w, from: len(w.members)} }

func (f *fields) set(key string, v value) {
	if f.from >= 0 {
		f.w.members = append(f.w.members, field{key, v})
		return
	}
	f.key(key)
	f.w.value(&v)
}

// key begins the next member of an object whose members come in their order.
func (f *fields) key(key string) {
	f.w.key(f.member, key)
	f.member++
}

func (f *fields) text(key, s string) {
	switch {
	case s == "":
	case f.from < 0:
		f.key(key)
		f.w.quote(s)
	default:
		f.set(key, text(s))
	}
}

func (f *fields) time(key string, t time.Time) {
	switch {
	case t.IsZero():
	case f.from < 0:
		f.key(key)
		f.w.moment(t)
	default:
		f.set(key, timeValue(t))
	}
}

// took sets seconds, to the millisecond: less is recorded as none, and read so.
func (f *fields) took(key string, d time.Duration) {
	if d >= time.Millisecond {
		f.set(key, number(d.Truncate(time.Millisecond).Seconds()))
	}
}

// end writes what is not written yet of the object.
func (f *fields) end() {
	w := f.w
	if f.from < 0 {
		w.shut(f.member)
		return
	}
	members := w.members[f.from:]
	slices.SortFunc(members, func(a, b field) int { return strings.Compare(a.key, b.key) })
	w.open()
	for i := range members { // those of objects within come behind them
		w.key(i, members[i].key)
		w.value(&members[i].val)
	}
	w.shut(len(members))
	w.members = w.members[:f.from]
}

func (w *writer) open() {
	w.buf = append(w.buf, '{')
	w.depth++
}

// key begins the i-th member of an object.
func (w *writer) key(i int, key string) {
	if i > 0 {
		w.buf = append(w.buf, ',')
	}
	w.line()
	w.quote(key)
	w.buf = append(w.buf, ": "...)
}

// shut ends an object of so many members.
func (w *writer) shut(members int) {
	if w.depth--; members > 0 {
		w.line()
	}
	w.buf = append(w.buf, '}')
}

func (w *writer) value(v *value) {
	switch v.kind {
	case textValue:
		w.quote(v.text)
	case momentValue:
		w.moment(v.time)
	case numberValue:
		if n := int64(v.num); n > 0 && n < 1<<50 && float64(n) == v.num { // most, and in a tenth of the time
			w.buf = strconv.AppendInt(w.buf, n, 10)
			return
		}
		w.buf = strconv.AppendFloat(w.buf, v.num, 'f', -1, 64)
	default:
		v.write(w)
	}
}

// object is a map written with sorted keys, each of its values as soon as its key is.
func object[K comparable, V any](m map[K]V, key func(K) string, val func(*writer, V)) value {
	return made(func(w *writer) {
		w.open()
		if len(m) == 1 { // as most attempts
			for k, v := range m {
				w.key(0, key(k))
				val(w, v)
			}
		} else if len(m) > 1 {
			sorted(w, m, key, val)
		}
		w.shut(len(m))
	})
}

func sorted[K comparable, V any](w *writer, m map[K]V, key func(K) string, val func(*writer, V)) {
	type named struct {
		name string
		key  K
	}
	var few [16]named // most have no more
	all := few[:0]
	for k := range m {
		all = append(all, named{key(k), k})
	}
	slices.SortFunc(all, func(a, b named) int { return strings.Compare(a.name, b.name) })
	for i, n := range all {
		w.key(i, n.name)
		val(w, m[n.key])
	}
}

func made(write func(*writer)) value { return value{write: write} }

func text(s string) value { return value{kind: textValue, text: s} }

func timeValue(t time.Time) value { return value{kind: momentValue, time: t} }

func number(n float64) value { return value{kind: numberValue, num: n} }

// integer is a small one: a count.
func integer(n int) value { return number(float64(n)) }

const indent = "                                "

func (w *writer) line() {
	w.buf = append(w.buf, '\n')
	for n := 2 * w.depth; n > 0; n -= len(indent) {
		w.buf = append(w.buf, indent[:min(n, len(indent))]...)
	}
}

// quote writes a JSON string as encoding/json does without HTML escapes.
func (w *writer) quote(s string) {
	if isPlain(s) {
		w.buf = append(append(append(w.buf, '"'), s...), '"')
		return
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	w.buf = append(w.buf, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

func (w *writer) moment(t time.Time) {
	w.buf = append(w.buf, '"')
	w.buf = append(layout.AppendTime(w.buf, t), '"')
}

// isPlain reports whether a string is its own JSON between quotes.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			return false
		}
	}
	return true
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
		f := newObject(w)
		for k, m := range v {
			f.set(k, made(func(w *writer) { w.any(m) }))
		}
		f.end()
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
