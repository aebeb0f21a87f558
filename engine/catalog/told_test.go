package catalog_test

import (
	"crypto/rand"
	"os"
	"syscall"
	"testing"

	"bagpipe/engine/intake"
	"bagpipe/engine/recognise"
	"bagpipe/layout"

	"pgregory.net/rapid"
)

// What the rules said of a file counts when it becomes an item, but not of one that was written since.
func TestWhatWasToldOfAFile(t *testing.T) {
	check(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		now := w.e.Settings.Current()
		cat := now.Catalogs["c"]
		seen := now.Book.Survey(cat.Root, cat.Collection, recognise.Options{Particular: true}, func(string) recognise.Listed { return nil })
		for name, since := range map[string]int64{"as it was.dat": 0, "written since.dat": 1} {
			w.must(os.WriteFile(w.at(name), []byte("content"), 0o644))
			info, err := os.Lstat(w.at(name))
			w.must(err)
			id, err := layout.NewItemID(rand.Reader)
			w.must(err)
			told := &intake.Told{Outcome: &recognise.Outcome{Kind: recognise.KindFile, Verdict: recognise.Yes, Rule: "rules/told", Whole: true},
				Size: info.Size(), Inode: info.Sys().(*syscall.Stat_t).Ino, Modified: info.ModTime().UnixNano() - since}
			made, err := w.e.Intake.RegisterInPlace(t.Context(), intake.InPlace{Item: id, Catalog: cat, Path: name, New: true, Seen: seen, Told: told})
			w.must(err)
			_, rec, err := w.e.Ledger.ReadTip(id, "")
			w.must(err)
			if was := rec.Manifest.Source.Rule == "rules/told"; !made || was != (since == 0) {
				r.Errorf("%s: made %v, by rule %s", name, made, rec.Manifest.Source.Rule)
			}
		}
	})
}
