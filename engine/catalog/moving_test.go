package catalog_test

import (
	"context"
	"os"
	"testing"
	"time"

	"bagpipe/engine/catalog"
	"bagpipe/layout"

	"pgregory.net/rapid"
)

// A file that is renamed between the looks of one scan, out of a folder that is listed again or
// into it, stays its item.
func TestWhatMovesDuringAScan(t *testing.T) {
	check(t, 5)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		folders := []string{"a", "b", "c"}
		for _, name := range folders {
			w.must(os.Mkdir(w.at(name), 0o755))
			w.must(os.WriteFile(w.at(name+"/stays"), []byte(name), 0o644))
		}
		from, to := rapid.SampledFrom(folders).Draw(r, "from"), rapid.SampledFrom(folders).Draw(r, "to")
		w.must(os.WriteFile(w.at(from+"/moves.dat"), []byte("moves"), 0o644))
		scan := func(o catalog.Options) *catalog.Report {
			o.AcceptGone = true
			report, err := w.e.Catalog.Scan(context.Background(), "c", o)
			w.must(err)
			return report
		}
		scan(catalog.Options{})
		item := w.list()[from+"/moves.dat"]
		w.must(os.WriteFile(w.at(rapid.SampledFrom(folders).Draw(r, "listed again")+"/new"), nil, 0o644))
		looks := 0
		scan(catalog.Options{Told: func(p catalog.Progress) {
			if looks++; p.Stage == "list" && looks == 1 {
				w.must(os.Rename(w.at(from+"/moves.dat"), w.at(to+"/moved.dat")))
			}
		}})
		if looks == 0 {
			r.Fatal("the scan did not tell of its first look")
		}
		scan(catalog.Options{})
		if is := w.list()[to+"/moved.dat"]; is != item || item == "" {
			r.Errorf("%s became %s when it was moved from %s to %s", item, is, from, to)
		}
		found := map[layout.ItemID]bool{}
		for it := range w.e.Index.Loaded().Items() {
			found[it.ID] = true
		}
		if len(found) != 5 {
			r.Errorf("%d items, expected 5", len(found))
		}
	})
}

// A folder whose time lies years ahead is not taken for one that is changing now.
func TestTimesAhead(t *testing.T) {
	check(t, 5)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		w.must(os.Mkdir(w.at("a"), 0o755))
		w.must(os.WriteFile(w.at("a/x"), []byte("x"), 0o644))
		at := time.Now().AddDate(rapid.SampledFrom([]int{-60, 50}).Draw(r, "years"), 0, 0)
		for _, name := range []string{"a/x", "a", "."} {
			w.must(os.Chtimes(w.at(name), at, at))
		}
		for n := range 2 {
			report, err := w.e.Catalog.Scan(context.Background(), "c", catalog.Options{})
			w.must(err)
			if n > 0 && report.Records > 0 {
				r.Errorf("%d records of a catalog in which nothing changed", report.Records)
			}
		}
	})
}
