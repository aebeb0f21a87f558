package catalog_test

import (
	"context"
	"os"
	"os/exec"
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

// What a folder has no more goes with the folder where that moves: it is listed as gone, and comes back as its item.
func TestWhatIsGoneMovesWithItsFolder(t *testing.T) {
	check(t, 4)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		w.must(os.MkdirAll(w.at("a/in"), 0o755))
		for _, name := range []string{"a/1.dat", "a/2.dat", "a/in/3.dat", "a/stays.dat"} {
			w.must(os.WriteFile(w.at(name), []byte(name), 0o644))
		}
		scan := func() *catalog.Report {
			report, err := w.e.Catalog.Scan(t.Context(), "c", catalog.Options{AcceptGone: true})
			w.must(err)
			return report
		}
		scan()
		was, away := w.list(), w.dir+".away"
		w.must(os.Mkdir(away, 0o755))
		for _, name := range []string{"1.dat", "2.dat", "in"} {
			w.must(os.Rename(w.at("a/"+name), away+"/"+name))
		}
		if rapid.Bool().Draw(r, "scanned between") {
			scan()
		}
		early := rapid.Bool().Draw(r, "one comes back meanwhile")
		if early {
			w.must(os.Rename(away+"/2.dat", w.at("2.dat")))
		}
		w.must(os.Rename(w.at("a"), w.at("b")))
		scan()
		gone, err := w.e.Catalog.Gone("c")
		w.must(err)
		for _, name := range []string{"a/1.dat", "a/2.dat", "a/in/3.dat"} {
			if gone[was[name]] == (early && name == "a/2.dat") {
				r.Errorf("%s is gone, or not: %v", name, gone)
			}
		}
		w.must(os.Rename(away+"/1.dat", w.at("b/1.dat")))
		if !early {
			w.must(os.Rename(away+"/2.dat", w.at("2.dat")))
		}
		w.must(os.Rename(away+"/in", w.at("b/in")))
		if back := scan(); back.New != 0 {
			r.Errorf("%d new of what came back", back.New)
		}
		now := w.list()
		for old, name := range map[string]string{"a/1.dat": "b/1.dat", "a/2.dat": "2.dat", "a/in/3.dat": "b/in/3.dat", "a/stays.dat": "b/stays.dat"} {
			if now[name] != was[old] || now[name] == "" {
				r.Errorf("%s is item %s, and was %s", name, now[name], was[old])
			}
		}
		if again := scan(); again.Records != 0 {
			r.Errorf("one scan more: %+v", again)
		}
	})
}

// A folder, or a file, whose name another has since goes on as its item where it is, and the other is a new one; so
// with two that have each other's names, and with what moves on the name of one that is gone.
func TestNamesThatOthersHave(t *testing.T) {
	check(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		bag := func(name, text string) {
			w.must(os.MkdirAll(w.at(name+"/data"), 0o755))
			w.must(os.WriteFile(w.at(name+"/bagit.txt"), []byte(bagDeclaration), 0o644))
			w.must(os.WriteFile(w.at(name+"/data/a.txt"), []byte(text), 0o644))
		}
		rename := func(from, to string) { w.must(os.Rename(w.at(from), w.at(to))) }
		items := func() map[string]layout.ItemID {
			_, err := w.e.Catalog.Scan(context.Background(), "c", catalog.Options{AcceptGone: true})
			w.must(err)
			w.versions()
			all := map[string]layout.ItemID{}
			w.must(w.e.Catalog.Entries("c", catalog.Which{All: true}, func(e catalog.Entry) {
				if e.Item != "" && e.State == catalog.Present {
					all[e.Path] = e.Item
				}
			}))
			return all
		}
		bag("cur", "one")
		w.must(os.WriteFile(w.at("a.dat"), []byte("a"), 0o644))
		w.must(os.WriteFile(w.at("b.dat"), []byte("bb"), 0o644))
		first := items()

		rename("cur", "2024")
		bag("cur", "another")
		rename("a.dat", "old.dat")
		w.must(os.WriteFile(w.at("a.dat"), []byte("aaa"), 0o644))
		second := items()
		if second["2024"] != first["cur"] || second["cur"] == first["cur"] || second["old.dat"] != first["a.dat"] || second["a.dat"] == first["a.dat"] || len(second) != 5 {
			r.Errorf("first %v, then %v", first, second)
		}

		rename("cur", "t")
		rename("2024", "cur")
		rename("t", "2024")
		third := items()
		if third["cur"] != first["cur"] || third["2024"] != second["cur"] || len(third) != 5 {
			r.Errorf("then %v, and with each other's names %v", second, third)
		}

		w.must(os.Remove(w.at("a.dat")))
		items()
		rename("b.dat", "a.dat")
		if fourth := items(); fourth["a.dat"] != first["b.dat"] {
			r.Errorf("what moved on the name of one that was gone: %v, and then %v", third, fourth)
		}

		// As a backup is put back: other inodes, the same times.
		for _, name := range []string{"cur", "2024"} {
			out, err := exec.Command("cp", "-a", w.at(name), w.at(name)+".t").CombinedOutput()
			if err != nil {
				r.Fatalf("%s", out)
			}
			w.must(os.RemoveAll(w.at(name)))
			rename(name+".t", name)
		}
		if fifth := items(); fifth["cur"] != third["cur"] || fifth["2024"] != third["2024"] {
			r.Errorf("what was put back: %v, and then %v", third, fifth)
		}
		for id, m := range w.was {
			if m.Version != 1 {
				r.Errorf("item %s is at version %d, and nothing was written", id, m.Version)
			}
		}
	})
}

// Who asks for what steps wanted looked at, while that is at work, waits until it has ended: a run would end before it.
func TestALookIsWaitedFor(t *testing.T) {
	check(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		ctx := context.Background()
		w.must(os.WriteFile(w.at("a.dat"), []byte("one"), 0o644))
		_, err := w.e.Catalog.Scan(ctx, "c", catalog.Options{})
		w.must(err)
		w.versions()
		w.e.Catalog.Racy = 300 * time.Millisecond // a look at what was just written takes as long
		w.must(os.WriteFile(w.at("a.dat"), []byte("another"), 0o644))
		w.e.Catalog.Want(layout.Place{Catalog: "c", Path: "a.dat"})
		first := make(chan error, 1)
		go func() { first <- w.e.Catalog.ScanWanted(ctx) }()
		for range 100 { // until it is at it
			if !w.e.Catalog.Wanted() {
				break
			}
			time.Sleep(time.Millisecond)
		}
		w.must(w.e.Catalog.ScanWanted(ctx))
		w.versions()
		for id, m := range w.was {
			if m.Version != 2 {
				r.Errorf("item %s has version %d still", id, m.Version)
			}
		}
		w.must(<-first)
		if w.e.Catalog.Wanted() {
			r.Error("something is wanted still")
		}
	})
}

// Names of one file that are renamed together stay their items each, whichever of them are.
func TestNamesOfOneFileMoveTogether(t *testing.T) {
	check(t, 6)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		scan := func() *catalog.Report {
			report, err := w.e.Catalog.Scan(t.Context(), "c", catalog.Options{AcceptGone: true})
			w.must(err)
			return report
		}
		for _, dir := range []string{"in", "other"} {
			w.must(os.Mkdir(w.at(dir), 0o755))
		}
		names := []string{"in/a", "in/b", "in/c", "other/d"}
		w.must(os.WriteFile(w.at(names[0]), []byte("one file"), 0o644))
		for _, name := range names[1:] {
			w.must(os.Link(w.at(names[0]), w.at(name)))
		}
		scan()
		was := w.list()
		moved := 0
		for _, name := range names {
			if rapid.Bool().Draw(r, "moves "+name) {
				w.must(os.Rename(w.at(name), w.at(name+"2")))
				moved++
			}
		}
		report := scan()
		now, items := w.list(), map[layout.ItemID]bool{}
		for _, item := range now {
			items[item] = true
		}
		for _, name := range names {
			if !items[was[name]] {
				r.Errorf("the item of %s is gone: %v became %v", name, was, now)
			}
		}
		if report.Moved != moved || report.New != 0 || report.Gone != 0 {
			r.Errorf("%d renamed: moved %d, new %d, gone %d", moved, report.Moved, report.New, report.Gone)
		}
	})
}

// An object of which every file has another name is changed by that.
func TestAllRenamedInAnObject(t *testing.T) {
	check(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		w.must(os.Mkdir(w.at("sheet"), 0o755))
		for _, name := range []string{"a.tif", "a.tfw"} {
			w.must(os.WriteFile(w.at("sheet/"+name), []byte(name), 0o644))
		}
		scan := func() *catalog.Report {
			report, err := w.e.Catalog.Scan(t.Context(), "c", catalog.Options{})
			w.must(err)
			return report
		}
		if report := scan(); report.New != 1 {
			r.Fatalf("%+v, expected one object", report.Counts)
		}
		for _, name := range []string{"tif", "tfw"} {
			w.must(os.Rename(w.at("sheet/a."+name), w.at("sheet/b."+name)))
		}
		if report := scan(); report.Versions != 1 || report.New != 0 {
			r.Errorf("%+v, expected a version", report.Counts)
		}
	})
}
