package catalog_test

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"bagpipe/bags/archive"
	"bagpipe/engine/folder"
	"bagpipe/engine/intake"
	"bagpipe/engine/recognise"
	"bagpipe/layout"

	"pgregory.net/rapid"
)

// What the rules said of a file counts when it becomes an item, and one that was written since becomes none before the next scan.
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
			if since != 0 {
				if made || !errors.Is(err, intake.ErrUnsettled) {
					r.Errorf("%s: made %v, %v", name, made, err)
				}
				continue
			}
			w.must(err)
			_, rec, err := w.e.Ledger.ReadTip(id, "")
			w.must(err)
			if !made || rec.Manifest.Source.Rule != "rules/told" {
				r.Errorf("%s: made %v, by rule %s", name, made, rec.Manifest.Source.Rule)
			}
		}
	})
}

// A folder that is swapped for a link once it was listed leads nowhere: what lies behind the link becomes no item, and an item's
// object is not there then.
func TestAFolderBecomesALink(t *testing.T) {
	check(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		w.must(os.MkdirAll(w.at("in/bag"), 0o755))
		w.must(os.WriteFile(w.at("in/f.dat"), []byte("inside"), 0o644))
		w.must(os.WriteFile(w.at("in/bag/f.dat"), []byte("inside"), 0o644))
		cat := w.e.Settings.Current().Catalogs["c"]
		register := func(path string) (layout.Manifest, error) {
			id, err := layout.NewItemID(rand.Reader)
			w.must(err)
			if _, err = w.e.Intake.RegisterInPlace(t.Context(), intake.InPlace{Item: id, Catalog: cat, Path: path, New: true}); err != nil {
				return layout.Manifest{}, err
			}
			_, rec, err := w.e.Ledger.ReadTip(id, "")
			w.must(err)
			return rec.Manifest, nil
		}
		m, err := register("in/f.dat")
		w.must(err)
		f, err := w.e.Folder.OpenInPlace(t.Context(), m, "f.dat")
		w.must(err)
		w.must(f.Close())
		w.must(os.Rename(w.at("in"), w.dir+".out"))
		w.must(os.Symlink(w.dir+".out", w.at("in")))
		for _, path := range []string{"in/f.dat", "in/bag"} {
			if m, err := register(path); !errors.Is(err, intake.ErrUnsettled) {
				r.Errorf("%s behind a link: %+v, %v", path, m.Source, err)
			}
		}
		if why, err := w.e.Folder.PlaceChanged(t.Context(), m); err != nil || why != folder.NotThere {
			r.Errorf("the object behind a link: %q, %v", why, err)
		}
		if gone := w.e.Folder.PlaceGone(m); gone == "" {
			r.Error("the object behind a link is not gone")
		}
		if f, err := w.e.Folder.OpenInPlace(t.Context(), m, "f.dat"); err == nil {
			r.Errorf("%s is opened behind a link", f.Name())
		}
		_, err = w.e.Folder.OpenPlace(t.Context(), m, w.dir+".scratch", archive.Limits{})
		if !errors.Is(err, fs.ErrNotExist) {
			r.Errorf("a step sees the object behind a link: %v", err)
		}
	})
}
