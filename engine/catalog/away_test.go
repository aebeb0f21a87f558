package catalog_test

import (
	"os"
	"testing"

	"bagpipe/engine/catalog"

	"pgregory.net/rapid"
)

// Where a scan says that a catalog is away, as its root is on another file system that holds something of its own, steps and
// fixity are not told that its objects are gone.
func TestWhatIsAwayIsNotGone(t *testing.T) {
	check(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		w.must(os.WriteFile(w.at("a.dat"), []byte("a"), 0o644))
		_, err := w.e.Catalog.Scan(t.Context(), "c", catalog.Options{})
		w.must(err)
		_, rec, err := w.e.Ledger.ReadTip(w.list()["a.dat"], "")
		w.must(err)
		w.must(os.Rename(w.dir, w.dir+".kept"))
		w.must(os.Symlink("/proc/sys", w.dir))
		report, err := w.e.Catalog.Scan(t.Context(), "c", catalog.Options{})
		w.must(err)
		if gone := w.e.Folder.PlaceGone(rec.Manifest); report.Away == "" || gone != "" {
			r.Errorf("away: %q; gone: %q", report.Away, gone)
		}
		if why := w.e.Folder.WhyNotThere(rec.Manifest); why != ", as the catalog is away: "+report.Away {
			r.Errorf("not there%s", why)
		}
		w.must(os.Remove(w.dir))
		w.must(os.Mkdir(w.dir, 0o755))
		w.must(os.WriteFile(w.at("other.dat"), nil, 0o644))
		if gone := w.e.Folder.PlaceGone(rec.Manifest); gone == "" {
			r.Errorf("what was removed below a root that is there is not gone")
		}
	})
}
