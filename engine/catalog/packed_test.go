package catalog

import (
	"bytes"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bagpipe/engine/recognise"
	"bagpipe/layout"

	"pgregory.net/rapid"
)

func drawEntry(t *rapid.T) entry {
	return entry{name: rapid.SampledFrom([]string{"a", "b.tif", "c\xff", recognise.MarkerName, "z"}).Draw(t, "name"), kind: kind(rapid.IntRange(0, 3).Draw(t, "kind")),
		verdict: verdict(rapid.IntRange(0, 5).Draw(t, "verdict")), gone: rapid.Bool().Draw(t, "gone"), waits: rapid.Bool().Draw(t, "waits"), size: rapid.Int64().Draw(t, "size"), mtime: rapid.Int64Range(-9, 9).Draw(t, "mtime"),
		ctime: rapid.Int64Range(-9, 9).Draw(t, "ctime"), inode: rapid.Uint64().Draw(t, "inode"), item: layout.ItemID(rapid.SampledFrom([]string{"", "3fa9c0d2e1b7a45"}).Draw(t, "item"))}
}

// A folder says the same whether its entries are packed or not.
func TestPackedFolders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := &node{path: "x", rules: "5c1e", state: Present, pages: 1}
		n.entries = rapid.SliceOfNDistinct(rapid.Custom(drawEntry), 0, 4, func(e entry) string { return e.name }).Draw(t, "entries")
		slices.SortFunc(n.entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
		for _, e := range n.entries {
			if e.hasReason() {
				n.note(e.name, "why "+e.name)
			}
		}
		packed := func() *node { return (&unpacker{rest: string(n.pack(nil))}).node() }
		for name, ask := range map[string]func(*node) any{
			"size": func(n *node) any { return n.size() }, "there": func(n *node) any { return n.there() }, "isMarked": func(n *node) any { return n.isMarked() },
			"tells": func(n *node) any { return n.tells() }, "hasFolders": func(n *node) any { return n.hasFolders() },
			"all": func(n *node) any { return append([]entry{}, n.all()...) }, "reasons": func(n *node) any { n.all(); return n.reasons },
			"find": func(n *node) any { return n.find("b.tif") },
		} {
			if got, want := ask(packed()), ask(n); !reflect.DeepEqual(got, want) {
				t.Errorf("%s of a packed folder: %v, expected %v", name, got, want)
			}
		}
		p := packed()
		if now := p.pack(nil); !bytes.Equal(now, n.pack(nil)) {
			t.Errorf("packed again it is %x", now)
		}
		seen := []entry{}
		for _, e := range n.entries {
			if !e.gone {
				seen = append(seen, e)
			}
		}
		if !(&walk{}).sameEntries(p, seen) {
			t.Error("it is not as it was")
		}
		if len(seen) > 0 {
			if seen[0].kind == folder {
				seen = seen[1:]
			} else {
				seen[0].mtime++
			}
			if (&walk{}).sameEntries(p, seen) {
				t.Error("a change is not seen")
			}
		}
	})
}

// A scan visits a folder where something changed, or is to be told, in it or below; and all of them where not all was
// recognised by the rules in force.
func TestFoldersToVisit(t *testing.T) {
	plain := func(path string) *node { return &node{path: path, rules: "r", state: Present, pages: 1} }
	with := func(more ...*node) tree {
		out := tree{}
		for _, path := range []string{"", "a", "a/b", "a/b/c", "d"} {
			out[path] = plain(path)
		}
		for _, n := range more {
			out[n.path] = n
		}
		return out
	}
	changed, refusing, waiting, marked, late, other := plain("a/b"), plain("a/b"), plain("a/b"), plain("a/b"), plain("a/b"), plain("a/b")
	changed.changed, late.rules, other.rules = true, "", "before"
	refusing.entries = []entry{{name: "x", verdict: refused}}
	waiting.entries = []entry{{name: "x", waits: true}}
	marked.entries = []entry{{name: recognise.MarkerName}}
	for name, c := range map[string]struct {
		n    *node
		idle string // which of a, a/b, a/b/c and d
	}{"nothing": {plain("a/b"), "1111"}, "a change": {changed, "0011"}, "a refused object": {refusing, "0011"}, "an entry that waits": {waiting, "0011"}, "not recognised": {late, "0011"}, "rules of its own": {marked, "0000"}, "by other rules": {other, "0000"}} {
		var s changes
		s.touch(with(c.n), "r")
		got := ""
		for _, path := range []string{"a", "a/b", "a/b/c", "d"} {
			got += string(rune('0' + b2i(s.isIdle(path, &entry{kind: folder}))))
		}
		if got != c.idle {
			t.Errorf("%s: idle are %s, expected %s", name, got, c.idle)
		}
		if s.isIdle("d", &entry{kind: folder, fresh: true}) || s.isIdle("d", &entry{kind: folder, moved: true}) {
			t.Errorf("%s: a folder that is new, or was moved, is left out", name)
		}
	}
}

// files is a reader of a record.
type files map[string][]byte

func (f files) ReadFile(path string) ([]byte, error) {
	if data, is := f[path]; is {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

// A page that a push made a copy of another has no name twice; what another kind replaced is read behind that.
func TestAPageIsOfItsNames(t *testing.T) {
	n, record := &node{state: Present, rules: "r"}, files{}
	for i := range pageMost + 1 {
		n.entries = append(n.entries, entry{name: fmt.Sprintf("%05d", i), verdict: yes})
	}
	n.entries = append(n.entries, entry{name: "z", kind: link}, entry{name: "z", item: "eff34a5f4d1e6b7", gone: true, replaced: true})
	for name, data := range n.files() {
		record[treeDir("c")+"/"+name] = data
	}
	got, err := readNode(record, "c", "")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.entries, n.entries) {
		t.Errorf("%d entries are read of %d", len(got.entries), len(n.entries))
	}
	record[treeDir("c")+"/"+pageFile(1)] = record[treeDir("c")+"/"+pageFile(0)]
	got, err = readNode(record, "c", "")
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range got.entries {
		if pageOf(e.name, 2) != 0 && !e.replaced || i > 0 && !e.replaced && e.name == got.entries[i-1].name {
			t.Errorf("%s is read of another's page, or twice", e.name)
		}
	}
}
