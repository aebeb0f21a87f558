package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A scan is killed again and again, a little later each time: while it makes items, and while it
// makes versions of them. Then each file is one item, each change one version.
func TestKilledScan(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files := soak(60, 2000)
	write := func(text string, part int) {
		for i := range files / part {
			b.write(fmt.Sprintf("root/%d/%d.txt", i%12, i), fmt.Sprint(text, i))
		}
	}
	write("one", 1)
	b.ok("catalog", "add", "c", filepath.Join(b.top, "root"))
	scan := func() {
		kills := 0
		for n := range soak(4, 40) {
			p := b.start("catalog", "scan", "-q")
			b.awaitMoves(p, 1+n%3)
			<-time.After(time.Duration(n) * 700 * time.Microsecond)
			if p.kill() {
				kills++
			}
		}
		if kills == 0 {
			t.Error("no scan was killed before it ended")
		}
		b.ok("catalog", "scan", "-q", "--accept-gone")
	}
	scan()
	first := b.itemsAt(files)
	write("other", 2)
	scan()
	for path, item := range b.itemsAt(files) {
		if first[path] != item {
			t.Errorf("%s is item %s, and was %s", path, item, first[path])
		}
	}
	if n := strings.Count(b.git("log", "--format=%B"), "\nBagpipe-Version: 2\n"); n != files/2 {
		t.Errorf("%d second versions of %d changes", n, files/2)
	}
	b.ok("audit")
	b.git("fsck", "--strict", "--no-dangling")
}

// A first scan, and one after files were written, moved, removed and made, is killed at each call that changes
// something on the disk, in turn. The scan after it makes of the catalog what one that nobody killed does.
func TestScanKilledAtEachCall(t *testing.T) {
	t.Parallel()
	base := newBench(t)
	root := filepath.Join(base.top, "root")
	for _, path := range []string{"a/1.txt", "a/2.txt", "a/3.txt", "b/4.txt", "map/m.shp", "map/m.shx", "map/m.dbf"} {
		base.write("root/"+path, path)
	}
	base.ok("catalog", "add", "c", root)
	scansKilled(t, base, func(b *bench) {
		paths := slices.Sorted(maps.Keys(b.itemsAt(5)))
		if want := []string{"a/1.txt", "a/2.txt", "a/3.txt", "b/4.txt", "map"}; !slices.Equal(paths, want) {
			t.Errorf("the items are of %v, want %v", paths, want)
		}
	})
	base.ok("catalog", "scan", "-q")
	first := base.itemsAt(5)
	base.write("root/a/1.txt", "another one")
	base.write("root/map/m.dbf", "another table")
	base.write("root/c/5.txt", "new")
	base.must(os.Rename(filepath.Join(root, "a/2.txt"), filepath.Join(root, "b/2.txt")))
	base.must(os.Remove(filepath.Join(root, "a/3.txt")))
	scansKilled(t, base, func(b *bench) {
		now := b.listed()
		for path, was := range map[string]string{"a/1.txt": "a/1.txt", "b/2.txt": "a/2.txt", "b/4.txt": "b/4.txt", "map": "map"} {
			if now[path] != first[was] {
				t.Errorf("%s is item %s, and was %s", path, now[path], first[was])
			}
		}
		if now["c/5.txt"] == "" || len(now) != 5 || strings.Count(b.ok("items", "--json"), `"item": "`) != 6 {
			t.Errorf("the items are %v of %s", now, b.ok("items"))
		}
		if n := strings.Count(b.git("log", "--format=%B"), "\nBagpipe-Version: 2\n"); n != 2 {
			t.Errorf("%d second versions of 2 changes", n)
		}
	})
}

// scansKilled kills scans of copies of a workspace, each at a later call, and checks what the next scan makes of it.
func scansKilled(t *testing.T, base *bench, check func(*bench)) {
	t.Helper()
	eachCall(t, base, func(b *bench) {
		b.ok("catalog", "scan", "-q", "--accept-gone")
		check(b)
		head := b.git("rev-parse", "HEAD")
		if told := b.ok("catalog", "scan"); !strings.Contains(told, "new: 0, versions: 0, moved: 0, gone: 0") || b.git("rev-parse", "HEAD") != head {
			t.Errorf("one scan more: %s", told)
		}
		b.ok("audit")
		b.git("fsck", "--strict", "--no-dangling")
	}, "catalog", "scan", "-q", "--accept-gone")
}

// itemsAt gives the items of a catalog by their paths; each file is one.
func (b *bench) itemsAt(files int) map[string]string {
	b.t.Helper()
	items := b.listed()
	if known := strings.Count(b.ok("items", "--json"), `"item": "`); len(items) != files || known != files {
		b.t.Errorf("%d of the catalog's and %d items of %d files", len(items), known, files)
	}
	return items
}

// listed gives the items of a catalog that are there, by their paths.
func (b *bench) listed() map[string]string {
	b.t.Helper()
	items, of := map[string]string{}, map[string]string{}
	for line := range strings.Lines(b.ok("catalog", "list", "c", "--json")) {
		if !strings.HasPrefix(line, "{") {
			continue // what is said beside it
		}
		var e struct{ Path, Item, State string }
		if b.must(json.Unmarshal([]byte(line), &e)); e.State == "gone" {
			continue
		}
		if e.State != "present" || of[e.Item] != "" {
			b.t.Errorf("%s, and %q is the same item", line, of[e.Item])
		}
		items[e.Path], of[e.Item] = e.Item, e.Path
	}
	return items
}
