package catalog_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/catalog"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/roots"
	"bagpipe/layout"
	"bagpipe/steps"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// world is a catalogued folder, the workspace, and what must be true after a scan.
type world struct {
	t    *rapid.T
	dir  string
	e    *engine.Engine
	n    int
	held map[string]*thing // files by their paths
	was  map[layout.ItemID]layout.Manifest
}

// thing is a file that keeps its item while it is written in place or moved.
type thing struct {
	item           layout.ItemID // since the last scan that ended
	moved, written bool
	linked         bool // another name has its bytes: which of them keeps the item is open
}

// newWorld makes an empty catalog, which is gone with its check.
func newWorld(t *rapid.T) *world {
	dir, err := os.MkdirTemp("", "catalog")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{t: t, dir: filepath.Join(dir, "root"), held: map[string]*thing{}, was: map[layout.ItemID]layout.Manifest{}}
	w.must(os.Mkdir(w.dir, 0o755))
	ctx, root := context.Background(), filepath.Join(dir, "ws")
	o := engine.Options{Robots: steps.Builtins(), Now: time.Now, Random: rand.Reader, Host: claim.Host{Name: "host", PID: os.Getpid()}, Person: gitstore.Signature{Name: "A", Email: "a@example.org"}}
	w.must(engine.Init(ctx, root, o))
	e, err := engine.Open(ctx, root, o)
	w.must(err)
	w.e = e
	t.Cleanup(func() { w.e.Close() })
	e.Catalog.Racy = 20 * time.Millisecond // a few ticks of the clock that files get their times from
	w.must(e.Catalog.Add(ctx, &roots.Catalog{Name: "c", Root: w.dir, Collection: "default"}))
	w.must(e.Index.Load(ctx))
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%+v", err)
	}
}

func (w *world) at(path string) string { return filepath.Join(w.dir, path) }

// name is one that was never used, or one of a few, which another file may have, or may have had.
func (w *world) name(dir string) string {
	w.n++
	return filepath.Join(dir, fmt.Sprintf("n%d.dat", rapid.SampledFrom([]int{w.n, w.n, -1, -2}).Draw(w.t, "name")))
}

// folder is such a name at the root.
func (w *world) folder() string {
	w.n++
	return fmt.Sprintf("d%d", rapid.SampledFrom([]int{w.n, w.n, -1, -2}).Draw(w.t, "name of a folder"))
}

func (w *world) dirs() (all []string) {
	_ = filepath.WalkDir(w.dir, func(at string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			rel, _ := filepath.Rel(w.dir, at)
			all = append(all, rel)
		}
		return err
	})
	return all
}

func (w *world) pick() (string, *thing) {
	names := slices.Sorted(maps.Keys(w.held))
	if len(names) == 0 {
		return "", nil
	}
	name := rapid.SampledFrom(names).Draw(w.t, "file")
	return name, w.held[name]
}

func (w *world) create(*rapid.T) {
	dir := rapid.SampledFrom(w.dirs()).Draw(w.t, "in")
	if rapid.Bool().Draw(w.t, "new folder") {
		dir = filepath.Join(dir, w.folder())
		w.must(os.MkdirAll(w.at(dir), 0o755))
	}
	name := w.name(dir)
	if w.held[name] == nil {
		w.must(os.WriteFile(w.at(name), []byte(fmt.Sprintf("%06d", w.n)), 0o644))
		w.held[name] = &thing{}
	}
}

// write changes a file in place; hidden, with its size and its time kept.
func (w *world) write(*rapid.T) {
	name, f := w.pick()
	if f == nil {
		return
	}
	info, err := os.Stat(w.at(name))
	w.must(err)
	w.n++
	w.must(os.WriteFile(w.at(name), []byte(fmt.Sprintf("%06d", w.n)), 0o644))
	if rapid.Bool().Draw(w.t, "hidden") {
		w.must(os.Chtimes(w.at(name), info.ModTime(), info.ModTime()))
	}
	f.written = true
}

func (w *world) touch(*rapid.T) {
	if name, f := w.pick(); f != nil {
		w.must(os.Chtimes(w.at(name), time.Unix(1e9, 0), time.Unix(1e9+int64(w.n), 0)))
		f.written = true
	}
}

func (w *world) rename(*rapid.T) {
	name, f := w.pick()
	if f == nil {
		return
	}
	to := w.name(rapid.SampledFrom(w.dirs()).Draw(w.t, "to"))
	if to == name || w.held[to] != nil && w.held[to].linked {
		return // a rename on another name of the same file does nothing
	}
	w.must(os.Rename(w.at(name), w.at(to)))
	delete(w.held, name)
	w.held[to], f.moved = f, true
}

// swap gives two files each other's names.
func (w *world) swap(*rapid.T) {
	a, f := w.pick()
	b, g := w.pick()
	if a == b || f.linked || g.linked {
		return
	}
	w.must(unix.Renameat2(unix.AT_FDCWD, w.at(a), unix.AT_FDCWD, w.at(b), unix.RENAME_EXCHANGE))
	w.held[a], w.held[b], f.moved, g.moved = g, f, true, true
}

// save writes a file as programs do that put a new one in its place.
func (w *world) save(*rapid.T) {
	name, f := w.pick()
	if f == nil || f.linked {
		return
	}
	w.n++
	w.must(os.WriteFile(w.at(name)+".part", []byte(fmt.Sprintf("%06d", w.n)), 0o644))
	w.must(os.Rename(w.at(name)+".part", w.at(name)))
	f.written = true
}

func (w *world) renameFolder(*rapid.T) {
	all := w.dirs()[1:]
	if len(all) == 0 {
		return
	}
	from := rapid.SampledFrom(all).Draw(w.t, "folder")
	to := w.folder()
	if _, err := os.Lstat(w.at(to)); err == nil {
		return
	}
	w.must(os.Rename(w.at(from), w.at(to)))
	if rapid.Bool().Draw(w.t, "another in its place") {
		w.must(os.Mkdir(w.at(from), 0o755))
	}
	for name, f := range maps.Clone(w.held) {
		if rest, below := strings.CutPrefix(name, from+"/"); below {
			delete(w.held, name)
			w.held[filepath.Join(to, rest)], f.moved = f, true
		}
	}
}

func (w *world) remove(*rapid.T) {
	if name, f := w.pick(); f != nil {
		w.must(os.Remove(w.at(name)))
		delete(w.held, name)
	}
}

func (w *world) link(*rapid.T) {
	w.n++
	w.must(os.Symlink("/etc", w.at(fmt.Sprintf("l%d", w.n))))
}

func (w *world) hardLink(*rapid.T) {
	name, f := w.pick()
	if f == nil {
		return
	}
	to := w.name(rapid.SampledFrom(w.dirs()).Draw(w.t, "to"))
	if w.held[to] != nil {
		return
	}
	w.must(os.Link(w.at(name), w.at(to)))
	f.linked = true
	w.held[to] = &thing{linked: true}
}

// during changes files while they are scanned.
func (w *world) during(*rapid.T) {
	ended := make(chan error)
	go func() {
		_, err := w.e.Catalog.Scan(context.Background(), "c", catalog.Options{AcceptGone: true})
		ended <- err
	}()
	acts := []func(*rapid.T){w.create, w.write, w.save, w.rename, w.rename, w.swap, w.renameFolder, w.remove}
	for range rapid.IntRange(1, 6).Draw(w.t, "acts") {
		acts[rapid.IntRange(0, len(acts)-1).Draw(w.t, "act")](w.t)
	}
	w.must(<-ended)
	w.versions()
}

func (w *world) forget(*rapid.T) {
	_ = os.RemoveAll(filepath.Join(w.e.Root(), ".bagpipe", "catalogs"))
}

// unmount has the root away: nothing may be gone by that.
func (w *world) unmount(*rapid.T) {
	before := w.list()
	w.must(os.Rename(w.dir, w.dir+".away"))
	w.must(os.Mkdir(w.dir, 0o755))
	r, err := w.e.Catalog.Scan(context.Background(), "c", catalog.Options{AcceptGone: false})
	w.must(err)
	if len(before) > 0 && r.Away == "" {
		w.t.Errorf("an empty root is not away")
	}
	w.must(os.Remove(w.dir))
	w.must(os.Rename(w.dir+".away", w.dir))
	if after := w.list(); len(before) > 0 && !maps.Equal(before, after) {
		w.t.Errorf("an absent root changed %v to %v", before, after)
	}
}

// list gives the items of files that are there, by path.
func (w *world) list() map[string]layout.ItemID {
	out := map[string]layout.ItemID{}
	w.must(w.e.Catalog.Entries("c", catalog.Which{All: true}, func(e catalog.Entry) {
		if e.Kind == "file" && e.State == catalog.Present {
			out[e.Path] = e.Item
		}
	}))
	return out
}

// interrupted begins a scan and ends it somewhere.
func (w *world) interrupted(*rapid.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rapid.IntRange(0, 60).Draw(w.t, "ms"))*time.Millisecond)
	defer cancel()
	if _, err := w.e.Catalog.Scan(ctx, "c", catalog.Options{AcceptGone: true}); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		w.t.Fatalf("%v", err)
	}
	w.versions()
}

// scan is a deep one; after it everything must be right.
func (w *world) scan(*rapid.T) {
	r, err := w.e.Catalog.Scan(context.Background(), "c", catalog.Options{AcceptGone: true})
	w.must(err)
	if len(w.held) > 0 && r.Away != "" {
		w.t.Fatalf("away: %s", r.Away)
	}
	w.versions()
	if r.Away != "" {
		return
	}
	known, seen := w.list(), map[layout.ItemID]string{}
	for name, f := range w.held {
		item := known[name]
		if item == "" {
			w.t.Fatalf("%s is no item; known: %v; %+v", name, known, r)
		}
		if other := seen[item]; other != "" {
			w.t.Fatalf("%s and %s are one item", name, other)
		}
		seen[item] = name
		data, err := os.ReadFile(w.at(name))
		w.must(err)
		sum := sha256.Sum256(data)
		m := w.was[item]
		if m.Source.Digest != "sha256:"+hex.EncodeToString(sum[:]) {
			w.t.Fatalf("%s (item %s, version %d) has other bytes than its item's record says", name, item, m.Version)
		}
		if m.Source.Place.Path != name {
			w.t.Fatalf("item %s is at %s, not %s", item, m.Source.Place.Path, name)
		}
		if f.item != "" && f.item != item && !f.linked && !(f.moved && f.written) {
			w.t.Fatalf("%s was item %s, and is %s", name, f.item, item)
		}
		f.item, f.moved, f.written = item, false, false
	}
	for name := range known {
		if w.held[name] == nil {
			w.t.Fatalf("%s is not there, and not gone", name)
		}
	}
}

// versions reads all items: no version without a change, and one a scan at most.
func (w *world) versions() {
	for it := range w.e.Index.Loaded().Items() {
		_, rec, err := w.e.Ledger.ReadTip(it.ID, "")
		w.must(err)
		m, was := rec.Manifest, w.was[it.ID]
		if was.Version > 0 && (m.Version > was.Version+1 || (m.Version > was.Version) == (m.Source.Digest == was.Source.Digest)) {
			w.t.Fatalf("item %s: version %d of %s, then %d of %s", it.ID, was.Version, was.Source.Digest, m.Version, m.Source.Digest)
		}
		w.was[it.ID] = m
	}
}

// check sets how often rapid tries, unless more is asked for by the flag.
func check(t *testing.T, times int) {
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(times)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("rapid.checks", f.DefValue) })
}

// Whatever happens to the files, between scans and while one is cut short, a deep scan misses
// nothing, takes nothing for gone that is there, and makes no version without a change.
func TestScanAgainstAModel(t *testing.T) {
	check(t, 20)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		acts := map[string]func(*rapid.T){"create": w.create, "write": w.write, "touch": w.touch, "rename": w.rename, "renameFolder": w.renameFolder,
			"swap": w.swap, "save": w.save, "remove": w.remove, "link": w.link, "hardLink": w.hardLink, "during": w.during, "forget": w.forget, "unmount": w.unmount, "interrupted": w.interrupted, "scan": w.scan}
		names := slices.Sorted(maps.Keys(acts))
		for range rapid.IntRange(5, 40).Draw(r, "acts") {
			acts[rapid.SampledFrom(names).Draw(r, "act")](r)
		}
		w.scan(r)
	})
}
