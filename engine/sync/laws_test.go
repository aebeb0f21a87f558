package sync_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/guard"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

var triples = flag.Int("triples", 12, "how many triples of histories TestJoinLaws joins")

// world is one repository, in which histories are made that nobody worked out.
type world struct {
	*testing.T
	e     *engine.Engine
	r     *rand.Rand
	items []layout.ItemID
	base  gitstore.Hash
	clock time.Time
	n     int
	by    string // who commits; "": Ada
}

func newWorld(t *testing.T) *world {
	ctx := context.Background()
	root := filepath.Join(t.TempDir(), "w")
	o := engine.Options{Now: time.Now, Random: rand.New(rand.NewSource(1)), Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"},
		Robots: steps.Builtins(), Host: claim.Host{Name: "host", BootID: "boot", PID: os.Getpid()}}
	if err := engine.Init(ctx, root, o); err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(ctx, root, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &world{T: t, e: e, r: rand.New(rand.NewSource(7)), clock: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}
	for i := range 3 {
		drop := filepath.Join(t.TempDir(), "letter.txt")
		if err := os.WriteFile(drop, fmt.Appendf(nil, "letter %d\n", i), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := e.Intake.Add(ctx, drop, intake.AddOptions{Label: fmt.Sprint("letter ", i)})
		if err != nil {
			t.Fatal(err)
		}
		w.items = append(w.items, got.Item)
	}
	v, err := e.Ledger.Store.Tip()
	if err != nil {
		t.Fatal(err)
	}
	w.base = v.Commit()
	return w
}

func (w *world) git(in []byte, args ...string) string {
	w.Helper()
	cmd := exec.Command("git", append([]string{"-C", w.e.Root()}, args...)...)
	var wrong bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &wrong
	out, err := cmd.Output()
	if err != nil {
		w.Fatalf("git %v: %v\n%s", args, err, wrong.String())
	}
	return strings.TrimSpace(string(out))
}

// commit makes a commit of files on another.
func (w *world) commit(on gitstore.Hash, files map[string][]byte) gitstore.Hash {
	w.n++
	var in bytes.Buffer
	fmt.Fprintf(&in, "commit refs/bagpipe/made\nmark :1\ncommitter %s %d +0000\ndata 2\nx\nfrom %s\n", cmp.Or(w.by, "Ada <ada@example.org>"), w.clock.Unix()+int64(w.n), on)
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if files[p] == nil {
			fmt.Fprintf(&in, "D %s\n", p)
		} else {
			fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", p, len(files[p]), files[p])
		}
	}
	in.WriteString("\nget-mark :1\ndone\n")
	h, err := gitstore.ParseHash(w.git(in.Bytes(), "fast-import", "--quiet", "--force", "--done"))
	if err != nil {
		w.Fatal(err)
	}
	return h
}

// history makes some lawful changes, of one site or person, on another history. Without
// quarrels no two of them say of one key two things.
func (w *world) history(on gitstore.Hash, who int, quarrels bool) gitstore.Hash {
	v, err := w.e.Ledger.Store.At(on)
	if err != nil {
		w.Fatal(err)
	}
	files := map[string][]byte{}
	read := func(p string) []byte {
		if data, ok := files[p]; ok {
			return data
		}
		data, err := ledger.ReadOptional(v, p)
		if err != nil {
			w.Fatal(err)
		}
		return data
	}
	by := fmt.Sprintf("person %d", who)
	for range 1 + w.r.Intn(5) {
		id := w.items[w.r.Intn(len(w.items))]
		dir := layout.ItemDir(id) + "/"
		w.clock = w.clock.Add(time.Second)
		if w.move(v, id, files) {
			continue
		}
		switch w.r.Intn(7) {
		case 0, 1, 2:
			x, err := state.Decode(read(dir + layout.ExecutionJSON))
			if err != nil {
				w.Fatal(err)
			}
			key := func() (layout.IntentKey, error) {
				return layout.NewIntentKey(w.clock, w.r, layout.EngineID(fmt.Sprintf("%08x", who+1)))
			}
			k, err := key()
			if err != nil {
				w.Fatal(err)
			}
			events := []state.Event{state.Hold{Key: k, At: w.clock, By: by}, state.Release{Key: key, At: w.clock, By: by}, state.Remark{Key: k, At: w.clock, By: by, Text: "note"}}
			if _, err := state.Apply(x, nil, events[w.r.Intn(len(events))]); err == nil {
				x.Recompute(w.e.Ledger.PlansAt(v))
				files[dir+layout.ExecutionJSON] = x.Encode()
			}
		case 3:
			m, err := layout.DecodeManifest(read(dir + layout.ManifestJSON))
			if err != nil {
				w.Fatal(err)
			}
			key := fmt.Sprint("key", who)
			if quarrels {
				key = fmt.Sprint("key", w.r.Intn(2))
			}
			m.Metadata = map[string]any{key: float64(w.r.Intn(1000))}
			data, err := m.Encode(read(dir + layout.ManifestJSON))
			if err != nil {
				w.Fatal(err)
			}
			files[dir+layout.ManifestJSON] = data
		case 4:
			name := layout.Name(fmt.Sprintf("batch%d", who))
			data, err := layout.Batch{Name: name}.Encode(read(layout.BatchPath(name)))
			if err == nil {
				files[layout.BatchPath(name)] = data
			}
		case 5:
			p := fmt.Sprintf("workflows/w%d.yaml", who)
			if quarrels {
				p = layout.SettingsFile
			}
			files[p] = append(bytes.Clone(read(p)), fmt.Sprintf("# %s %d\n", by, w.r.Intn(100))...)
		case 6:
			files[layout.ControlsFile] = fmt.Appendf(nil, "{\n  \"schema\": 1,\n  \"steps\": {\n    \"accession/s%d\": {\n      \"at\": %q,\n      \"status\": \"disabled\"\n    }\n  }\n}\n", who, layout.FormatTime(w.clock))
		}
	}
	if len(files) == 0 {
		files[fmt.Sprintf("rules/r%d.yaml", who)] = []byte("# empty\n")
	}
	return w.commit(on, files)
}

// move retires an item, or recalls one, once in a while. It reports whether the item is dealt with:
// a history does nothing else with an item that it retires, nor with one that is retired.
func (w *world) move(v gitstore.View, id layout.ItemID, files map[string][]byte) bool {
	moved, touched := false, false
	for p := range files {
		of, _, is := layout.ItemOfPath(p)
		touched = touched || is && of == id
		moved = moved || is && of == id && files[p] == nil
	}
	f, err := ledger.StandingOf(w.e.Ledger, v, id)
	if err != nil {
		w.Fatal(err)
	}
	retired := f.Retired != layout.Standing{}
	switch {
	case moved || touched:
		return moved
	case retired && w.r.Intn(2) == 0:
		err = ledger.Recall(w.e.Ledger, v, id, files)
	case !retired && w.r.Intn(6) == 0:
		var m layout.Manifest
		if m, err = layout.DecodeManifest(f.Manifest); err == nil {
			var out map[string][]byte
			out, err = ledger.Retirement(v, v, m)
			maps.Copy(files, out)
		}
	default:
		return retired
	}
	if err != nil {
		w.Fatal(err)
	}
	return true
}

// join joins two histories as a site does.
func (w *world) join(a, b gitstore.Hash) gitstore.Hash {
	w.Helper()
	ctx := context.Background()
	base, err := w.e.Ledger.Store.Base(ctx, a, b)
	if err != nil {
		w.Fatal(err)
	}
	switch base {
	case a:
		return b
	case b:
		return a
	}
	joined, err := w.e.Guard.Joiner.Commit(ctx, base, a, b)
	if err != nil {
		w.Fatal(err)
	}
	return joined
}

func (w *world) tree(h gitstore.Hash) string { return w.git(nil, "rev-parse", h.String()+"^{tree}") }

// Three histories that were made apart: joining two makes the same commit whichever comes first;
// joining again changes nothing; where no two say of one key two things, the order does not
// matter either, and where they do, sites that go on joining one another come to rest.
func TestJoinLaws(t *testing.T) {
	w := newWorld(t)
	for n := range *triples {
		quarrels := n%2 == 1
		on := w.history(w.base, 9, false)
		var h [3]gitstore.Hash
		for i := range h {
			h[i] = w.history(on, i, quarrels)
		}
		ab, ba := w.join(h[0], h[1]), w.join(h[1], h[0])
		if ab != ba {
			t.Fatalf("%d: the join of two depends on which comes first: %s, %s", n, ab, ba)
		}
		w.sameOverEither(n, on, h[0], h[1], w.tree(ab))
		for _, side := range []gitstore.Hash{h[0], h[1], ab} {
			if again := w.join(ab, side); again != ab {
				t.Fatalf("%d: joining again what is in it makes %s of %s", n, again, ab)
			}
		}
		left, right := w.join(ab, h[2]), w.join(h[0], w.join(h[1], h[2]))
		if !quarrels && w.tree(left) != w.tree(right) {
			t.Fatalf("%d: the order of joins matters:\n%s", n, w.git(nil, "diff", left.String(), right.String()))
		}
		rest := w.join(left, right)
		if other := w.join(right, left); other != rest {
			t.Fatalf("%d: two sites do not come to rest: %s, %s", n, rest, other)
		}
		w.holdsAll(n, rest, h[:])
	}
}

// sameOverEither checks that a join is the same over the files of either side.
func (w *world) sameOverEither(n int, base, a, b gitstore.Hash, tree string) {
	w.Helper()
	if b.String() < a.String() {
		a, b = b, a
	}
	for _, over := range []gitstore.Hash{a, b} {
		files, err := guard.JoinTrees(context.Background(), w.e.Ledger, base, a, b, over)
		if err != nil {
			w.Fatal(err)
		}
		made, err := w.e.Ledger.Store.JoinCommit(context.Background(), [2]gitstore.Hash{a, b}, over, files, guard.JoinMessage(a, b))
		if err != nil {
			w.Fatal(err)
		}
		if is := w.tree(made); is != tree {
			w.Fatalf("%d: the join over %s is another:\n%s", n, over, w.git(nil, "diff", tree, is))
		}
	}
}

// holdsAll checks that a join lost no intent of the histories that it joins.
func (w *world) holdsAll(n int, joined gitstore.Hash, of []gitstore.Hash) {
	w.Helper()
	now, err := w.e.Ledger.Store.At(joined)
	if err != nil {
		w.Fatal(err)
	}
	for _, h := range of {
		v, err := w.e.Ledger.Store.At(h)
		if err != nil {
			w.Fatal(err)
		}
		for _, id := range w.items {
			was, errA := ledger.StandingOf(w.e.Ledger, v, id)
			is, errB := ledger.StandingOf(w.e.Ledger, now, id)
			if errA != nil || errB != nil {
				w.Fatal(errA, errB)
			}
			x, errA := state.Decode(was.Execution)
			y, errB := state.Decode(is.Execution)
			if errA != nil || errB != nil {
				w.Fatal(errA, errB)
			}
			for k := range x.Intents {
				if _, kept := y.Intents[k]; !kept {
					w.Fatalf("%d: the join lost intent %s of item %s", n, k, id)
				}
			}
		}
	}
}

// A join that a version before workflows told of their start wrote is a join still; one that
// was altered is none.
func TestAJoinOfAnEarlierVersionIsOne(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	l := w.e.Ledger
	for tries := 0; ; tries++ {
		on := w.history(w.base, 9, false)
		a, b := w.history(on, 0, false), w.history(on, 1, false)
		if b.String() < a.String() {
			a, b = b, a
		}
		files, err := guard.JoinTrees(ctx, l, on, a, b, a)
		v, errAt := l.Store.At(a)
		if err != nil || errAt != nil {
			t.Fatal(err, errAt)
		}
		before := 0
		for p, data := range files {
			if _, rest, ok := layout.ItemOfPath(p); !ok || rest != layout.ExecutionJSON || data == nil { // nil: it was retired
				continue
			}
			x, err := state.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			x.Recompute(l.PlansAt(v))
			if files[p] = state.EncodeBefore(x); !bytes.Equal(files[p], data) {
				before++
			}
		}
		if before == 0 && tries < 100 {
			continue
		}
		is := func() bool {
			h, err := l.Store.JoinCommit(ctx, [2]gitstore.Hash{a, b}, a, files, guard.JoinMessage(a, b))
			if err != nil {
				t.Fatal(err)
			}
			v, errAt := l.Store.At(h)
			if errAt != nil {
				t.Fatal(errAt)
			}
			c, errAbout := v.About()
			_, is, err := guard.IsJoin(ctx, l, c)
			if errAbout != nil || err != nil {
				t.Fatal(errAbout, err)
			}
			return is
		}
		if before == 0 || !is() {
			t.Errorf("%d records as before: it is no join", before)
		}
		for p, data := range files {
			files[p] = bytes.Replace(data, []byte(`"status": "waiting"`), []byte(`"status": "skipped"`), 1)
		}
		if is() {
			t.Error("one with another status is a join")
		}
		return
	}
}

// A join made before settings that both changed stood in it twice is a join still: of such a file it has the greater
// of the two.
func TestAJoinThatChoseSettingsIsOne(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	l := w.e.Ledger
	v, err := l.Store.At(w.base)
	if err != nil {
		t.Fatal(err)
	}
	was, err := v.ReadFile(layout.SettingsFile)
	if err != nil {
		t.Fatal(err)
	}
	texts := [][]byte{append(bytes.Clone(was), "# one\n"...), append(bytes.Clone(was), "# two\n"...)}
	a, b := w.commit(w.base, map[string][]byte{layout.SettingsFile: texts[0]}), w.commit(w.base, map[string][]byte{layout.SettingsFile: texts[1]})
	if b.String() < a.String() {
		a, b = b, a
	}
	files, err := guard.JoinTrees(ctx, l, w.base, a, b, a)
	if err != nil || layout.Conflict(files[layout.SettingsFile]) == 0 {
		t.Fatalf("%v: the join has no two versions:\n%s", err, files[layout.SettingsFile])
	}
	for i, data := range append(texts, files[layout.SettingsFile], append(bytes.Clone(was), "# three\n"...)) {
		h, err := l.Store.JoinCommit(ctx, [2]gitstore.Hash{a, b}, a, map[string][]byte{layout.SettingsFile: data}, guard.JoinMessage(a, b))
		if err != nil {
			t.Fatal(err)
		}
		at, errAt := l.Store.At(h)
		if errAt != nil {
			t.Fatal(errAt)
		}
		c, errAbout := at.About()
		_, is, err := guard.IsJoin(ctx, l, c)
		if want := i == 1 || i == 2; errAbout != nil || err != nil || is != want {
			t.Errorf("%d: a join: %v, want %v; %v", i, is, want, errors.Join(errAbout, err))
		}
	}
}

// Two versions 2 that were made apart: the join has the bytes of one, the later, as a whole, whatever comes first and in
// whichever order three are joined. A join that was made key by key before is one still.
func TestTwoNextVersionsAreJoinedAsAWhole(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	l, id := w.e.Ledger, w.items[0]
	p := layout.ItemDir(id) + "/" + layout.ManifestJSON
	q := layout.ItemDir(id) + "/" + layout.InventoryJSON
	at := func(h gitstore.Hash) (layout.Manifest, []byte, []byte) {
		v, err := l.Store.At(h)
		if err != nil {
			t.Fatal(err)
		}
		data, errM := v.ReadFile(p)
		inventory, errI := ledger.ReadOptional(v, q)
		m, err := layout.DecodeManifest(data)
		if err := errors.Join(errM, errI, err); err != nil {
			t.Fatal(err)
		}
		return m, data, inventory
	}
	first, old, _ := at(w.base)
	var h [3]gitstore.Hash
	var inventories [3][]byte
	for i := range h {
		inventories[i] = fmt.Appendf(nil, "{\"files\": [], \"item\": %q, \"schema\": 1, \"side\": %d}\n", id, 2-i)
		m := first
		m.Version, m.Since = 2, w.clock.Add(time.Duration(i+1)*time.Minute)
		m.Source.Name, m.Source.Digest = fmt.Sprint("drop ", 2-i), fmt.Sprintf("sha256:%064x", 9-i) // by values alone another would be in force
		m.Inventory = &layout.InventorySummary{Digest: ledger.DigestOf(inventories[i]), Files: i}
		m.Metadata = map[string]any{"formats": []any{fmt.Sprint("fmt/", 9-i)}, "seen": fmt.Sprint("by ", i)}
		data, err := m.EncodeNext(old)
		if err != nil {
			t.Fatal(err)
		}
		h[i] = w.commit(w.base, map[string][]byte{p: data, q: inventories[i]})
	}
	left, right := w.join(w.join(h[0], h[1]), h[2]), w.join(h[0], w.join(h[2], h[1]))
	for _, joined := range []gitstore.Hash{left, right, w.join(left, right)} {
		m, data, inventory := at(joined)
		if m.Source.Name != "drop 0" || !bytes.Equal(inventory, inventories[2]) || m.Inventory == nil || m.Inventory.Digest != ledger.DigestOf(inventory) || fmt.Sprint(m.Metadata["formats"]) != "[fmt/7]" {
			t.Errorf("the bytes are not those of the last as a whole:\n%s", data)
		}
		keys, values := layout.Conflicts(data)
		if !slices.Equal(keys, []string{"metadata.seen", "source"}) || len(values["source"]) != 3 || len(values["metadata.seen"]) != 3 {
			t.Errorf("in conflict are %v: %s", keys, values)
		}
	}
	_, a, _ := at(left)
	if _, b, _ := at(right); !bytes.Equal(a, b) {
		t.Errorf("the order of joins matters:\n%s\n%s", a, b)
	}

	pair := []gitstore.Hash{h[0], h[1]}
	slices.SortFunc(pair, func(a, b gitstore.Hash) int { return strings.Compare(a.String(), b.String()) })
	files, err := guard.JoinTreesBefore(ctx, l, w.base, pair[0], pair[1], pair[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, altered := range []bool{false, true} {
		if altered {
			files[p] = bytes.Replace(files[p], []byte("letter 0"), []byte("letter 9"), 1)
		}
		made, err := l.Store.JoinCommit(ctx, [2]gitstore.Hash(pair), pair[0], files, guard.JoinMessage(pair[0], pair[1]))
		if err != nil {
			t.Fatal(err)
		}
		v, errAt := l.Store.At(made)
		if errAt != nil {
			t.Fatal(errAt)
		}
		c, errAbout := v.About()
		_, is, err := guard.IsJoin(ctx, l, c)
		if errAbout != nil || err != nil || is == altered || made == w.join(h[0], h[1]) {
			t.Errorf("altered %v: a join as before is one: %v; %v", altered, is, errors.Join(errAbout, err))
		}
	}
}
