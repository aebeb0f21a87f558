package target_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
)

// An object that is lost while copies in it are on record as sound is not begun anew with a later version: the put
// waits until those are mended. Once a look has found them lost, and a person goes on, the later version is
// added, and no record takes it for the earlier one.
func TestOCFLThatIsLost(t *testing.T) {
	t.Parallel()
	harmedKinds(t, func(t *testing.T, open func(*testing.T, string) *harmed) {
		h := open(t, target.LayoutOCFL)
		third := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"z": "Z"})
		third.Version = 3
		third.Record = map[int]target.Copy{1: h.copies[0], 2: h.copies[1]}
		gone := func() { must(t, os.RemoveAll(h.object)) }
		gone()
		var down *target.Down
		if c, err := h.to.Put(t.Context(), third); !errors.As(err, &down) || !strings.Contains(err.Error(), "version 1 of the item is on record as v1") {
			t.Fatalf("version 3 of a lost object: %+v, %v", c, err)
		}
		if _, err := os.Lstat(h.object); err == nil {
			t.Error("it was begun anew")
		}
		h.mend(t, 1)
		if c, err := h.to.Put(t.Context(), third); !errors.As(err, &down) || !strings.Contains(err.Error(), "version 2 of the item is on record as v2") {
			t.Fatalf("version 3 of a mended object that lacks the second: %+v, %v", c, err)
		}
		h.mend(t, 2)
		c, err := h.to.Put(t.Context(), third)
		if must(t, err); c.State != "v3" {
			t.Errorf("version 3 is %s", c.State)
		}
		h.sound(t)

		gone()
		third.Record = maps.Clone(third.Record)
		for n, c := range third.Record {
			c.Outcome = "failed"
			third.Record[n] = c
		}
		c, err = h.to.Put(t.Context(), third)
		if must(t, err); c.State != "v1" {
			t.Errorf("version 3 alone is %s", c.State)
		}
		var wrong *target.Damage
		if _, _, err := h.to.Check(t.Context(), h.copies[0], target.Exists); !errors.As(err, &wrong) {
			t.Errorf("version 3 is told as version 1: %v", err)
		}
		h.mend(t, 1)
		h.mend(t, 2)
		if h.copies[0].State != "v2" || h.copies[1].State != "v3" {
			t.Errorf("versions 1 and 2 are %s and %s now", h.copies[0].State, h.copies[1].State)
		}
		h.sound(t)
		if _, _, err := h.to.Check(t.Context(), c, target.Read); err != nil {
			t.Error(err)
		}
		var walked []string
		must(t, h.to.Walk(t.Context(), func(f target.Found) error {
			walked = append(walked, fmt.Sprintf("%d %d %s", f.Version, f.Revision, f.Copy.State))
			return nil
		}))
		if want := []string{"3 1 v1", "1 1 v2", "2 1 v3"}; !slices.Equal(walked, want) {
			t.Errorf("told of %q, want %q", walked, want)
		}
	})
}

// What stands where the next version belongs is named, and nothing is overwritten; an empty folder goes.
func TestOCFLInTheWay(t *testing.T) {
	t.Parallel()
	harmedKinds(t, func(t *testing.T, open func(*testing.T, string) *harmed) {
		h := open(t, target.LayoutOCFL)
		third := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"z": "Z"})
		third.Version = 3
		stray := filepath.Join(h.object, "v3/content/stray")
		must(t, os.MkdirAll(filepath.Dir(stray), 0o755), os.WriteFile(stray, []byte("another's"), 0o644))
		var down *target.Down
		if _, err := h.to.Put(t.Context(), third); !errors.As(err, &down) || !strings.Contains(err.Error(), h.copies[0].Place+"/v3 stands where") {
			t.Fatalf("a put over a stray folder: %v", err)
		}
		if text, err := os.ReadFile(stray); err != nil || string(text) != "another's" {
			t.Errorf("what stood there is %q: %v", text, err)
		}
		h.found(t, 1)
		h.mend(t, 1)
		must(t, os.MkdirAll(filepath.Dir(stray), 0o755))
		c, err := h.to.Put(t.Context(), third)
		if must(t, err); c.State != "v3" {
			t.Errorf("version 3 is %s", c.State)
		}
		h.sound(t)
	})
}

// Bytes that a killed mend set aside are swept when a look finds their version sound, and not before.
func TestAsideIsSwept(t *testing.T) {
	t.Parallel()
	for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
		t.Run(form, func(t *testing.T) {
			harmedKinds(t, func(t *testing.T, open func(*testing.T, string) *harmed) {
				h := open(t, form)
				record := map[int]target.Copy{1: h.copies[0], 2: h.copies[1]}
				aside := []string{"v1/content/data/a", "v2/content/data/d/c", "stray"}
				at := filepath.Join(h.dir, "staging", string(targettest.Item)+".damaged")
				if form != target.LayoutOCFL {
					aside, at = []string{"x"}, filepath.Join(filepath.Dir(h.object), "."+filepath.Base(h.object)+".damaged")
				}
				for _, name := range aside {
					must(t, os.MkdirAll(filepath.Dir(filepath.Join(at, name)), 0o755), os.WriteFile(filepath.Join(at, name), nil, 0o644))
				}
				must(t, target.Sweep(t.Context(), h.to, targettest.Item, h.copies[0], record))
				if form == target.LayoutOCFL {
					left := leftIn(t, at)
					if _, err := os.Lstat(filepath.Join(at, aside[1])); err != nil || len(left) > 0 {
						t.Errorf("version 2's is gone: %v; %v", err, left)
					}
					for _, name := range []string{aside[0], aside[2]} {
						if _, err := os.Lstat(filepath.Join(at, name)); err == nil {
							t.Errorf("%s is left", name)
						}
					}
				}
				must(t, target.Sweep(t.Context(), h.to, targettest.Item, h.copies[1], record))
				h.sound(t)
			})
		})
	}
}

// atEachWrite tries with the k-th write of an act, for each k until there is none, and in short tests for each short-th from the
// one that the test's name gives; every try has a place of its own.
func atEachWrite(t *testing.T, kind swept, form string, short int, try func(c target.Config, at string, k int) (more bool)) {
	t.Helper()
	c, dir := kind.open(t)
	c.Layout = form
	for more, k := true, firstInShort(t, short); more; k += everyInShort(short) {
		at := filepath.Join(dir, fmt.Sprint("k", k))
		if kind.kind == target.KindS3 {
			c.Prefix = fmt.Sprintf("k%d/", k)
		} else {
			c.Path = at
		}
		more = try(c, at, k)
	}
}

// Two engines put one item on one target: another comes at each write of the first, and puts the same bag, or
// another of the next version. What stands in the end is sound; the first engine has its copy, or is told that it lost.
func TestTwoEngines(t *testing.T) {
	for _, kind := range sweptKinds() {
		for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
			for _, other := range []string{"same", "next", "revised"} {
				t.Run(kind.kind+"/"+form+"/"+other, func(t *testing.T) {
					t.Parallel()
					atEachWrite(t, kind, form, 9, func(c target.Config, at string, k int) bool { return twoEngines(t, c, at, other, k) })
				})
			}
		}
	}
}

// Two engines mend one copy: another comes at each write of the first, and mends it, too. The copy is sound in the end, and
// nothing is left; the first engine has mended it, or is told that another came.
func TestTwoMends(t *testing.T) {
	for _, kind := range sweptKinds() {
		for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
			t.Run(kind.kind+"/"+form, func(t *testing.T) {
				t.Parallel()
				atEachWrite(t, kind, form, 3, func(c target.Config, at string, k int) bool { return twoMends(t, c, at, k) })
			})
		}
	}
}

func twoMends(t *testing.T, c target.Config, dir string, k int) (met bool) {
	bag := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "d/b": strings.Repeat("B", 5000)})
	late := open(t, c)
	was, err := late.Put(t.Context(), bag)
	must(t, err)
	bag.Record = map[int]target.Copy{1: was}
	s := sweep{T: t, c: c, dir: dir, k: k}
	if !s.damage() {
		t.Fatal("nothing was damaged")
	}
	var lateErr error
	to, err := target.OpenPausing("test", c, targettest.Now, k, func() {
		met = true
		_, lateErr = late.Replace(t.Context(), was, bag)
	})
	must(t, err)
	_, err = to.Replace(t.Context(), was, bag)
	must(t, to.Close())
	if !met {
		must(t, err)
		return false
	}
	var down *target.Down
	for _, err := range []error{err, lateErr} {
		if err != nil && !errors.As(err, &down) {
			t.Errorf("at %d: an engine: %v", k, err)
		}
	}
	if err != nil && lateErr != nil {
		t.Errorf("at %d: both engines: %v; %v", k, err, lateErr)
	}
	if _, _, err := late.Check(t.Context(), was, target.Read); err != nil {
		t.Errorf("at %d: the copy: %v; the engines: %v; %v", k, err, lateErr, err)
	}
	if err != nil { // the look that follows
		must(t, target.Sweep(t.Context(), late, bag.Item, was, bag.Record))
	}
	for _, name := range leftIn(t, dir) {
		t.Errorf("at %d: %s is left; the engines: %v, %v", k, name, err, lateErr)
	}
	if c.Layout == target.LayoutOCFL {
		valid(t, filepath.Join(dir, "ocfl"))
	}
	return true
}

func twoEngines(t *testing.T, c target.Config, dir, which string, k int) (met bool) {
	bag := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "d/b": strings.Repeat("B", 5000)})
	other := bag
	switch which {
	case "revised":
		other = targettest.NewBag(t, "two", targettest.Now(), map[string]string{"a": "A", "d/b": strings.Repeat("B", 5000)})
	case "next":
		other = targettest.NewBag(t, "two", targettest.Now(), map[string]string{"a": "Z", "d/b": strings.Repeat("B", 9000)})
		other.Version = 2
	}
	late := open(t, c)
	var lateCopy target.Copy
	var lateErr error
	to, err := target.OpenPausing("test", c, targettest.Now, k, func() {
		met = true
		lateCopy, lateErr = late.Put(t.Context(), other)
	})
	must(t, err)
	first, err := to.Put(t.Context(), bag)
	must(t, to.Close())
	if !met {
		must(t, err)
		return false
	}
	if lateErr != nil {
		t.Errorf("at %d: the second engine, which met no one: %v", k, lateErr)
	}
	var down *target.Down
	if err != nil && !errors.As(err, &down) {
		t.Errorf("at %d: the first engine: %v", k, err)
	}
	if err == nil {
		if _, _, err := late.Check(t.Context(), first, target.Read); err != nil {
			t.Errorf("at %d: the first engine's copy: %v", k, err)
		}
	}
	for n, b := range []target.Bag{bag, other} {
		c, err := late.Put(t.Context(), b)
		if err != nil {
			t.Errorf("at %d: the next put of %d: %v", k, n, err)
			continue
		}
		if _, _, err := late.Check(t.Context(), c, target.Read); err != nil {
			t.Errorf("at %d: copy %d: %v", k, n, err)
		}
		back := t.TempDir()
		must(t, late.Get(t.Context(), c, back))
		if how, err := target.Compare(b.Dir, back); err != nil || how != target.SameBagging {
			t.Errorf("at %d: copy %d comes back as another bag: %v %v", k, n, how, err)
		}
	}
	if lateErr == nil {
		if _, _, err := late.Check(t.Context(), lateCopy, target.Read); err != nil {
			t.Errorf("at %d: the second engine's copy: %v", k, err)
		}
	}
	for _, name := range leftIn(t, dir) {
		t.Errorf("at %d: %s is left; the first engine: %v", k, name, err)
	}
	if c.Layout == target.LayoutOCFL {
		valid(t, filepath.Join(dir, "ocfl"))
	}
	return true
}
