package layout

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// appendManifest is EncodeJSON of a manifest whose members are common ones, in a third of the time: one is written for
// each object that is registered. ok is false for others, of which EncodeJSON says what they are.
func appendManifest(dst []byte, m *Manifest) (out []byte, ok bool) {
	w := plainWriter{b: dst, depth: 1, ok: m.Parent == nil && len(m.Originals) == 0 && m.Disposed == nil}
	w.b = append(w.b, '{')
	w.some("batch", m.Batch)
	w.text("collection", string(m.Collection))
	w.time("created", m.Created)
	if len(m.Identifiers) > 0 {
		w.texts("identifiers", m.Identifiers)
	}
	if i := m.Inventory; i != nil {
		w.open("inventory")
		w.int("bytes", i.Bytes)
		w.text("digest", i.Digest)
		w.int("files", int64(i.Files))
		w.shut()
	}
	w.text("item", string(m.Item))
	w.text("label", m.Label)
	w.text("lane", string(m.Lane))
	w.any("metadata", m.Metadata)
	if m.Quality != nil {
		w.any("quality", m.Quality)
	}
	if r := m.Recognition; r != nil {
		w.open("recognition")
		w.count("more", r.More)
		w.text("rule", r.Rule)
		if len(r.Tried) > 0 {
			w.texts("tried", r.Tried)
		}
		w.text("verdict", r.Verdict)
		w.shut()
	}
	w.int("schema", int64(m.Schema))
	if !m.Since.IsZero() {
		w.time("since", m.Since)
	}
	w.source(&m.Source)
	w.some("type", m.Type)
	w.int("version", int64(m.Version))
	w.shut()
	return append(w.b, '\n'), w.ok
}

func (w *plainWriter) source(s *Source) {
	w.open("source")
	w.text("by", s.By)
	w.int("bytes", s.Bytes)
	w.text("digest", s.Digest)
	w.some("drop", string(s.Drop))
	w.some("duplicateOf", string(s.DuplicateOf))
	w.int("files", int64(s.Files))
	w.text("kind", s.Kind)
	w.text("name", s.Name)
	if p := s.Place; p != nil {
		w.open("place")
		w.text("catalog", string(p.Catalog))
		w.text("path", p.Path)
		w.text("stamp", p.Stamp)
		w.ok = w.ok && len(p.With) == 0
		w.shut()
	}
	w.some("rule", s.Rule)
	w.time("taken", s.Taken)
	w.shut()
}

// plainWriter appends a document of which it is given the members in their order, as long as all is plain.
type plainWriter struct {
	b     []byte
	depth int
	ok    bool
}

// key begins a member.
func (w *plainWriter) key(name string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = appendLine(w.b, w.depth)
	w.quote(name)
	w.b = append(w.b, ": "...)
}

func (w *plainWriter) open(name string) {
	w.key(name)
	w.b = append(w.b, '{')
	w.depth++
}

func (w *plainWriter) shut() {
	w.depth--
	if w.b[len(w.b)-1] != '{' {
		w.b = appendLine(w.b, w.depth)
	}
	w.b = append(w.b, '}')
}

func (w *plainWriter) text(name, s string) {
	w.key(name)
	w.quote(s)
}

// some is text, where there is one.
func (w *plainWriter) some(name, s string) {
	if s != "" {
		w.text(name, s)
	}
}

func (w *plainWriter) int(name string, n int64) {
	w.key(name)
	w.b = strconv.AppendInt(w.b, n, 10)
}

// count is int, where it is not 0.
func (w *plainWriter) count(name string, n int) {
	if n != 0 {
		w.int(name, int64(n))
	}
}

func (w *plainWriter) time(name string, t time.Time) {
	w.key(name)
	b, err := t.AppendText(append(w.b, '"'))
	w.b, w.ok = append(b, '"'), w.ok && err == nil
}

func (w *plainWriter) texts(name string, m map[string]string) {
	w.open(name)
	var room [8]string // most have no more
	keys := slices.AppendSeq(room[:0], maps.Keys(m))
	slices.Sort(keys)
	for _, k := range keys {
		w.text(k, m[k])
	}
	w.shut()
}

// any is a member of any form, without the tree of maps where it is plain.
func (w *plainWriter) any(name string, v any) {
	w.key(name)
	if m, is := v.(map[string]any); is && len(m) == 0 && m != nil {
		w.b = append(w.b, "{}"...)
		return
	}
	compact, err := marshalCompact(v)
	plain := err == nil && !bytes.Contains(compact, []byte(`\u`))
	if plain {
		w.b, plain = appendSorted(w.b, compact, w.depth)
	}
	w.ok = w.ok && plain
}

// quote appends a text that is its own JSON between quotes.
func (w *plainWriter) quote(s string) {
	w.b = append(append(append(w.b, '"'), s...), '"')
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' {
			w.ok = false
		} else if c >= 0x80 { // what follows may be no UTF-8, or a character that JSON escapes
			w.ok = w.ok && utf8.ValidString(s[i:]) && !strings.ContainsFunc(s[i:], isEscaped)
			return
		}
	}
}

func isEscaped(r rune) bool {
	return r < ' ' || r == '"' || r == '\\' || r == '\u2028' || r == '\u2029'
}
