package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
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

// itemsAt gives the items of a catalog by their paths; each file is one.
func (b *bench) itemsAt(files int) map[string]string {
	b.t.Helper()
	items, of := map[string]string{}, map[string]string{}
	for line := range strings.Lines(b.ok("catalog", "list", "c", "--json")) {
		if !strings.HasPrefix(line, "{") {
			continue // what is said beside it
		}
		var e struct{ Path, Item, State string }
		b.must(json.Unmarshal([]byte(line), &e))
		if e.State != "present" || of[e.Item] != "" {
			b.t.Errorf("%s, and %q is the same item", line, of[e.Item])
		}
		items[e.Path], of[e.Item] = e.Item, e.Path
	}
	if known := strings.Count(b.ok("items", "--json"), `"item": "`); len(items) != files || known != files {
		b.t.Errorf("%d of the catalog's and %d items of %d files", len(items), known, files)
	}
	return items
}
