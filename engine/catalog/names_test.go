package catalog_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bagpipe/engine/catalog"

	"pgregory.net/rapid"
)

// Folders of any name are recorded, also of those that Git refuses, and the records are read as they were written.
func TestFoldersOfAnyName(t *testing.T) {
	check(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r, t.TempDir())
		defer w.e.Close()
		names := []string{`a\b`, "a%5Cb", `C:\data`, "git~1", "GIT~1 ..", "git~1:x", `git~1\`, ".git", ".GIT ", ".g\u200cit", "\u200cgit~1", "g\ufeffit~1",
			"\u200f", "a\xffb", "%67it~1", ".", "..."}
		visible := 0
		for _, name := range names {
			if name != "." {
				w.must(os.MkdirAll(filepath.Join(w.dir, name, "in"), 0o755))
			}
			w.must(os.WriteFile(filepath.Join(w.dir, name, "in x.dat"), []byte(name), 0o644))
			if name == "." || name[0] != '.' {
				visible++
			}
		}
		scan := func() *catalog.Report {
			report, err := w.e.Catalog.Scan(t.Context(), "c", catalog.Options{})
			w.must(err)
			return report
		}
		if first := scan(); first.Folders != 2*len(names)-1 || first.New != visible {
			r.Errorf("the first scan: %+v", first.Counts)
		}
		was := w.list()
		w.must(os.RemoveAll(filepath.Join(w.e.Root(), ".bagpipe/catalogs"))) // the records are read
		if again := scan(); again.Records != 0 || again.New+again.Versions+again.Moved+again.Gone != 0 || again.Trouble() {
			r.Errorf("the second scan: %+v", again)
		}
		if now := w.list(); !maps.Equal(was, now) {
			r.Errorf("known: %q, and was %q", slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(was)))
		}
	})
}
