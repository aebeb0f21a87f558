package catalog_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bagpipe/engine/catalog"

	"pgregory.net/rapid"
)

// plainAndFull scans twice, the second time asking of each entry anew, and compares what is known then.
func (w *world) plainAndFull(r *rapid.T) {
	scan := func(o catalog.Options) map[string]string {
		o.AcceptGone = true
		_, err := w.e.Catalog.Scan(context.Background(), "c", o)
		w.must(err)
		out := map[string]string{}
		w.must(w.e.Catalog.Entries("c", catalog.Which{All: true}, func(e catalog.Entry) {
			if e.State == catalog.Present {
				verdict := e.Verdict
				if verdict == "refused" {
					verdict = "maybe" // a full scan takes an item that was refused for an object again
				}
				out[e.Path] = fmt.Sprint(e.Kind, " ", verdict, " ", e.Item)
			}
		}))
		return out
	}
	plain := scan(catalog.Options{})
	if full := scan(catalog.Options{Full: true}); !maps.Equal(plain, full) {
		for _, path := range slices.Sorted(maps.Keys(full)) {
			if plain[path] != full[path] {
				r.Errorf("%s: a plain scan has %q, a full one %q", path, plain[path], full[path])
			}
		}
		r.FailNow()
	}
}

const bagDeclaration = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"

// turn makes an object of a folder, or takes that back, at times with a link in it, which has it refused.
func (w *world) turn(*rapid.T) {
	dir := w.at(rapid.SampledFrom(w.dirs()[1:]).Draw(w.t, "object"))
	if os.Remove(filepath.Join(dir, "bagit.txt")) == nil {
		_ = os.Remove(filepath.Join(dir, "link")) // it may have none
		return
	}
	w.must(os.MkdirAll(filepath.Join(dir, "data"), 0o755))
	w.must(os.WriteFile(filepath.Join(dir, "bagit.txt"), []byte(bagDeclaration), 0o644))
	if rapid.Bool().Draw(w.t, "refused") {
		w.must(os.Symlink("/etc", filepath.Join(dir, "link")))
	}
}

// newObjects is a world with files at three depths.
func newObjects(r *rapid.T) *world {
	w := newWorld(r)
	for _, name := range []string{"a/1.txt", "a/b/2.txt", "a/b/c/3.txt", "a/d/4.txt", "e/5.txt", "e/f/6.txt"} {
		w.must(os.MkdirAll(filepath.Dir(w.at(name)), 0o755))
		w.must(os.WriteFile(w.at(name), []byte(name), 0o644))
		w.held[name] = &thing{}
	}
	w.plainAndFull(r)
	return w
}

// A folder that becomes an object takes along what is below it, at each depth, also where it is refused; one that is none
// any more gives it back, also where something is gone since from it.
func TestObjectsComeAndGo(t *testing.T) {
	check(t, 5)
	rapid.Check(t, func(r *rapid.T) {
		w := newObjects(r)
		top, refuse, lose := rapid.SampledFrom([]string{"a", "a/b", "e"}).Draw(r, "object"), rapid.Bool().Draw(r, "refused"), rapid.Bool().Draw(r, "one gone")
		if lose {
			for _, name := range []string{"a/1.txt", "a/b/2.txt", "e/5.txt"} {
				w.must(os.Remove(w.at(name)))
			}
			w.plainAndFull(r)
		}
		w.must(os.Mkdir(w.at(top+"/data"), 0o755))
		w.must(os.WriteFile(w.at(top+"/bagit.txt"), []byte(bagDeclaration), 0o644))
		if refuse {
			w.must(os.Symlink("/etc", w.at(top+"/link")))
		}
		w.plainAndFull(r)
		w.must(os.Remove(w.at(top + "/bagit.txt")))
		w.plainAndFull(r)
	})
}

// Whatever becomes an object, or is none any more, a plain scan knows of each entry what a full one does.
func TestPlainScansAgainstFullOnes(t *testing.T) {
	check(t, 8)
	rapid.Check(t, func(r *rapid.T) {
		w := newObjects(r)
		acts := []func(*rapid.T){w.turn, w.turn, w.turn, w.create, w.rename, w.remove}
		for range rapid.IntRange(1, 4).Draw(r, "scans") {
			for range rapid.IntRange(1, 3).Draw(r, "acts") {
				acts[rapid.IntRange(0, len(acts)-1).Draw(r, "act")](r)
			}
			w.plainAndFull(r)
		}
	})
}
