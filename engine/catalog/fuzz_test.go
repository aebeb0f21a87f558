package catalog

import (
	"bytes"
	"strings"
	"testing"
)

// An entry of a record that is read is written as it was read, or refused.
func FuzzEntry(f *testing.F) {
	f.Add("a.tif", "file yes 1024 2026-11-20T10:00:00.123456789Z = 1234567 3fa9c0d2e1b7a45")
	f.Add("%2Eold", "gone folder unknown 1234569")
	f.Add("%FF", "gone file part 1 1960-01-01T00:00:00Z 2300-01-01T00:00:00Z 18446744073709551615")
	f.Add("a", "folder refused 1234569 - content holds a link: b")
	f.Add("a", "folder refused 1234569 3fa9c0d2e1b7a45 why")
	f.Add("a.tfw", "file with 24 2026-11-20T10:00:00Z = 1234567 - a%20b.tif")
	f.Add("a.tfw", "file with 24 2026-11-20T10:00:00Z = 1234567 3fa9c0d2e1b7a45")
	f.Fuzz(func(t *testing.T, name, text string) {
		e, why, err := parseEntry(name, text)
		if err != nil {
			return
		}
		line := string(e.append(nil))
		if e.verdict == refused || e.verdict == with {
			line = string(e.appendWhy([]byte(line), why))
		}
		again, reason, err := parseEntry(encodeName(e.name), line)
		if err != nil || again != e || reason != why {
			t.Fatalf("%q %q is %+v, and %q of it %+v, %v", name, text, e, line, again, err)
		}
	})
}

// A checkpoint that is cut or overwritten is none, and asks for no more memory than it has bytes.
func FuzzCheckpoint(f *testing.F) {
	n := &node{path: "a/b", rules: "5c1e", state: Present, mtime: -1, inode: 1 << 63, pages: 1,
		entries: []entry{{name: "x", size: 1, mtime: 2, ctime: 1, inode: 3, verdict: yes, item: "3fa9c0d2e1b7a45"}, {name: "y", kind: folder, gone: true}, {name: "w", waits: true}, {name: "x.w", verdict: with}, {name: "z", verdict: refused}}, reasons: map[string]string{"w": "for whom", "x.w": "x", "z": "why"}}
	f.Add(n.pack(nil))
	f.Add([]byte(strings.Repeat("\xff", 40)))
	f.Fuzz(func(t *testing.T, data []byte) {
		u := &unpacker{rest: string(data)}
		n := u.node()
		if u.bad {
			return
		}
		if len(n.all()) > len(data) {
			t.Fatalf("%d entries of %d bytes", len(n.all()), len(data))
		}
		read := data[:len(data)-len(u.rest)]
		again := &unpacker{rest: string(n.pack(nil))}
		if m := again.node(); again.bad || !bytes.Equal(m.pack(nil), n.pack(nil)) {
			t.Fatalf("%x is read, and not as it is written", read)
		}
	})
}
