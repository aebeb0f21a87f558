package targettest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bagpipe/bags"
	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
	"bagpipe/steps/target"
)

// Place is a target for one test.
type Place struct {
	target.Target
	// Damage changes a file of the target whose name contains part; false: there is none.
	Damage func(t *testing.T, part string) bool
}

// Item is the item of the suite's bags.
const Item = layout.ItemID("3fa9c0d2e1b7a49")

// Now is the clock of the suite.
func Now() time.Time { return time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC) }

// NewBag makes a bag of the suite's item of some files, dated; of no algorithms, by the default ones.
func NewBag(t testing.TB, title string, at time.Time, content map[string]string, as ...files.Algorithm) target.Bag {
	t.Helper()
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), string(Item))
	for name, text := range content {
		path := filepath.Join(from, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	o := bags.CreateOptions{Payload: from, Dest: dir, Date: at, Agent: "Bagpipe", Algorithms: as}
	o.Info = append(o.Info, field("External-Description", title))
	_, err := bags.Create(t.Context(), o)
	must(t, err)
	return target.Bag{Item: Item, Version: 1, Dir: dir, By: "unpack <unpack@bagpipe>", Message: "deposit", At: at}
}

var content = map[string]string{"a.txt": "A", "d/é.txt": "B", "d/empty": "", "100%\nname": "C", "big": string(make([]byte, 3<<20))}

// Run runs the suite; open makes a new, empty target.
func Run(t *testing.T, open func(t *testing.T) Place) {
	t.Run("PutCheckGet", func(t *testing.T) { putCheckGet(t, open(t)) })
	t.Run("PutTwice", func(t *testing.T) { putTwice(t, open(t)) })
	t.Run("Redated", func(t *testing.T) { redated(t, open(t)) })
	t.Run("Revision", func(t *testing.T) { revision(t, open(t)) })
	t.Run("OtherPayload", func(t *testing.T) { otherPayload(t, open(t)) })
	t.Run("EmptyFolders", func(t *testing.T) { emptyFolders(t, open(t)) })
	t.Run("Versions", func(t *testing.T) { versions(t, open(t)) })
	t.Run("AtOnce", func(t *testing.T) { atOnce(t, open(t)) })
	t.Run("Absent", func(t *testing.T) { absent(t, open(t)) })
	t.Run("Damage", func(t *testing.T) { damaged(t, open(t)) })
	t.Run("Broken", func(t *testing.T) { broken(t, open(t)) })
	t.Run("Remove", func(t *testing.T) { removed(t, open(t)) })
}

// other is an item that stands in the same folder as the suite's.
const other = layout.ItemID("3fa9c0d2e1b7b48")

// removed removes all of an item, and nothing of another; also where there is nothing of it.
func removed(t *testing.T, p Place) {
	must(t, target.Remove(t.Context(), p.Target, Item))
	b := NewBag(t, "one", Now(), content)
	first := put(t, p, b)
	second := put(t, p, NewBag(t, "two", Now(), content)) // a revision
	b.Version = 2
	third := put(t, p, b)
	beside := NewBag(t, "one", Now(), content)
	beside.Item = other
	kept := put(t, p, beside)
	for range 2 {
		must(t, target.Remove(t.Context(), p.Target, Item))
		for _, c := range []layout.DepositCopy{first, second, third} {
			if _, _, err := p.Check(t.Context(), c, target.Exists); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s %s after it was removed: %v", c.Place, c.State, err)
			}
		}
		must(t, p.Walk(t.Context(), func(f target.Found) error {
			if f.Item != other {
				t.Errorf("%+v stands there", f)
			}
			return nil
		}))
		check(t, p, kept)
	}
	sameBag(t, p, kept, beside)
	put(t, p, NewBag(t, "one", Now(), content)) // as if nothing had been there
}

func putCheckGet(t *testing.T, p Place) {
	b := NewBag(t, "one", Now(), content)
	c := put(t, p, b)
	if c.Outcome != layout.FixityPassed || c.Digest == "" || c.Files < len(content)+5 || c.Verified.IsZero() {
		t.Errorf("the copy: %+v", c)
	}
	check(t, p, c)
	sameBag(t, p, c, b)
}

func putTwice(t *testing.T, p Place) {
	b := NewBag(t, "one", Now(), content)
	first := put(t, p, b)
	if again := put(t, p, b); again.Place != first.Place || again.Digest != first.Digest || again.State != first.State {
		t.Errorf("put again: %+v, and at first %+v", again, first)
	}
}

func redated(t *testing.T, p Place) {
	first := put(t, p, NewBag(t, "one", Now(), content))
	again := put(t, p, NewBag(t, "one", Now().Add(48*time.Hour), content))
	if again.Place != first.Place || again.Digest != first.Digest || again.State != first.State {
		t.Errorf("a bag made anew on another day: %+v, and at first %+v", again, first)
	}
}

func revision(t *testing.T, p Place) {
	one, two := NewBag(t, "one", Now(), content), NewBag(t, "two", Now(), content)
	first, second := put(t, p, one), put(t, p, two)
	if first.Place == second.Place && first.State == second.State {
		t.Errorf("a revision stands in the place of the first: %+v", second)
	}
	sameBag(t, p, first, one)
	sameBag(t, p, second, two)
}

func otherPayload(t *testing.T, p Place) {
	one := NewBag(t, "one", Now(), content)
	first := put(t, p, one)
	_, err := p.Put(t.Context(), NewBag(t, "one", Now(), map[string]string{"a.txt": "Z"}))
	if !errors.Is(err, target.ErrOther) {
		t.Errorf("another payload as the same version: %v", err)
	}
	sameBag(t, p, first, one)
}

// emptyFolders of a bag are in no manifest, and are left out: the copy is sound, and comes back valid.
func emptyFolders(t *testing.T, p Place) {
	b := NewBag(t, "one", Now(), content)
	must(t, os.MkdirAll(filepath.Join(b.Dir, "data/none/at/all"), 0o755))
	c := put(t, p, b)
	check(t, p, c)
	sameBag(t, p, c, b)
	again := put(t, p, b)
	if again.Place != c.Place || again.Digest != c.Digest {
		t.Errorf("put again: %+v, and at first %+v", again, c)
	}
}

func versions(t *testing.T, p Place) {
	one, two := NewBag(t, "one", Now(), content), NewBag(t, "one", Now(), map[string]string{"a.txt": "A", "new": "N"})
	two.Version = 2
	first, second := put(t, p, one), put(t, p, two)
	sameBag(t, p, first, one)
	sameBag(t, p, second, two)
	check(t, p, first)
	check(t, p, second)
	again := NewBag(t, "revised", Now(), map[string]string{"a.txt": "A", "new": "N"})
	again.Version = 2
	third := put(t, p, again)
	walked(t, p, first, second, third)
}

// walked wants a version and two revisions of the next to be told of, and nothing else.
func walked(t *testing.T, p Place, first, second, third layout.DepositCopy) {
	t.Helper()
	want := []target.Found{}
	for i, c := range []layout.DepositCopy{first, second, third} {
		want = append(want, target.Found{Item: Item, Version: min(i+1, 2), Revision: max(i, 1),
			Copy: layout.DepositCopy{Place: c.Place, Layout: c.Layout, State: c.State}})
	}
	var got []target.Found
	must(t, p.Walk(t.Context(), func(f target.Found) error {
		got = append(got, f)
		return nil
	}))
	if !slices.Equal(got, want) {
		t.Errorf("told of %+v, want %+v", got, want)
	}
}

// atOnce has two put the same bag at the same time, as two engines do of which one was
// thought dead: one copy stands in the end, and it is sound.
func atOnce(t *testing.T, p Place) {
	b := NewBag(t, "one", Now(), content)
	errs := make([]error, 2)
	var done sync.WaitGroup
	for i := range errs {
		done.Go(func() { _, errs[i] = p.Put(t.Context(), b) })
	}
	done.Wait()
	t.Log(errs) // one may have found the ground pulled from under it; it is put again
	c := put(t, p, b)
	check(t, p, c)
	sameBag(t, p, c, b)
}

func absent(t *testing.T, p Place) {
	b := NewBag(t, "one", Now(), content)
	c := put(t, p, b)
	other := c
	other.Place = "4/f/a/9/none" + filepath.Ext(c.Place)
	for _, level := range []target.Level{target.Read, target.Exists} {
		if _, _, err := p.Check(t.Context(), other, level); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of a copy that is not there: %v", level, err)
		}
	}
	if err := p.Get(t.Context(), other, t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("get a copy that is not there: %v", err)
	}
}

func damaged(t *testing.T, p Place) {
	b := NewBag(t, "one", Now(), content)
	for _, part := range []string{"big", ".tar", "manifest-sha512.txt", "bagit.txt", "inventory.json", "v1/inventory.json", "0=ocfl_object"} {
		c := put(t, p, b)
		if !p.Damage(t, part) {
			continue
		}
		var wrong *target.Damage
		if _, _, err := p.Check(t.Context(), c, target.Read); !errors.As(err, &wrong) {
			t.Fatalf("check after damage to %s: %v", part, err)
		}
		made, err := p.Replace(t.Context(), c, b)
		must(t, err)
		if made.Place != c.Place || made.Digest != c.Digest {
			t.Errorf("mended after damage to %s: %+v, was %+v", part, made, c)
		}
		check(t, p, made)
		sameBag(t, p, made, b)
	}
}

// broken bags are no copies: the bytes that go are held against the bag's manifests.
func broken(t *testing.T, p Place) {
	for version, as := range [][]files.Algorithm{{files.SHA256, files.SHA512}, {files.SHA256}} {
		for name, harm := range map[string]func(dir string) error{
			"altered": func(dir string) error { return os.WriteFile(filepath.Join(dir, "data/a.txt"), []byte("X"), 0o644) },
			"missing": func(dir string) error { return os.Remove(filepath.Join(dir, "data/a.txt")) },
		} {
			b := NewBag(t, name, Now(), content, as...)
			b.Version = 1 + version
			must(t, harm(b.Dir))
			var wrong *target.Damage
			if c, err := p.Put(t.Context(), b); !errors.As(err, &wrong) {
				t.Errorf("a bag of which a file is %s (%v): %v, %+v", name, as, err, c)
			}
			must(t, target.Remove(t.Context(), p.Target, Item))
		}
	}
}

func put(t *testing.T, p Place, b target.Bag) layout.DepositCopy {
	t.Helper()
	c, err := p.Put(t.Context(), b)
	must(t, err)
	return c
}

func check(t *testing.T, p Place, c layout.DepositCopy) {
	t.Helper()
	for _, level := range []target.Level{target.Read, target.Exists} {
		n, size, err := p.Check(t.Context(), c, level)
		must(t, err)
		if n != c.Files || size != c.Bytes {
			t.Errorf("check (%s) saw %d files and %d bytes, the copy has %d and %d", level, n, size, c.Files, c.Bytes)
		}
	}
}

// sameBag gets a copy and compares it with the bag it was made of.
func sameBag(t *testing.T, p Place, c layout.DepositCopy, b target.Bag) {
	t.Helper()
	to := filepath.Join(t.TempDir(), string(Item))
	must(t, os.Mkdir(to, 0o755))
	must(t, p.Get(t.Context(), c, to))
	how, err := target.Compare(b.Dir, to)
	must(t, err)
	if how != target.SameBagging {
		t.Errorf("what is got of %s is not the bag that was put: %d", c.Place, how)
	}
	report, err := bags.Validate(t.Context(), to, bags.ValidateOptions{})
	must(t, err)
	if !report.Valid {
		t.Errorf("what is got of %s is not valid: %+v", c.Place, report.Findings)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func field(label, value string) tagfile.Field { return tagfile.Field{Label: label, Value: value} }

// FlipIn damages a file below a folder whose path there contains part, and says whether
// there is one.
func FlipIn(t *testing.T, dir, part string) (found bool) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || found || !d.Type().IsRegular() || !strings.Contains(p[len(dir):], part) {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil || len(data) == 0 {
			return err
		}
		data[len(data)/2] ^= 1
		if err := os.Chmod(p, 0o644); err != nil {
			return err
		}
		found = true
		return os.WriteFile(p, data, 0o644)
	}))
	return found
}
