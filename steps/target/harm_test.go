package target_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
)

// harmed is a target with two versions of an item, in a folder.
type harmed struct {
	to     target.Target
	dir    string
	bags   [2]target.Bag
	copies [2]target.Copy
	object string // the folder of the first version's copy
}

func newHarmed(t *testing.T, c target.Config, dir string) *harmed {
	t.Helper()
	h := &harmed{to: open(t, c), dir: dir}
	for i, content := range []map[string]string{{"a": "A", "d/b": strings.Repeat("B", 5000)}, {"a": "A", "d/c": strings.Repeat("C", 5000)}} {
		h.bags[i] = targettest.NewBag(t, "one", targettest.Now(), content)
		h.bags[i].Version = i + 1
		var err error
		h.copies[i], err = h.to.Put(t.Context(), h.bags[i])
		must(t, err)
	}
	h.object = filepath.Join(dir, h.copies[0].Place)
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(p, 0o755)
		}
		return err
	}))
	return h
}

// found wants a version to be damaged, or gone.
func (h *harmed) found(t *testing.T, n int) {
	t.Helper()
	var wrong *target.Damage
	if _, _, err := h.to.Check(t.Context(), h.copies[n-1], target.Read); !errors.As(err, &wrong) && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("version %d: it was not found: %v", n, err)
	}
}

// mend replaces a version, as a check does that found it damaged.
func (h *harmed) mend(t *testing.T, n int) {
	t.Helper()
	b := h.bags[n-1]
	b.Record = map[int]target.Copy{1: h.copies[0], 2: h.copies[1]}
	c, err := h.to.Replace(t.Context(), h.copies[n-1], b)
	if err != nil {
		t.Fatalf("version %d: mend: %v", n, err)
	}
	if c.Digest != h.copies[n-1].Digest {
		t.Errorf("version %d is another bag: %+v", n, c)
	}
	h.copies[n-1] = c
}

// sound wants both versions whole, and nothing of a mend to be left.
func (h *harmed) sound(t *testing.T) {
	t.Helper()
	for i, c := range h.copies {
		if _, _, err := h.to.Check(t.Context(), c, target.Read); err != nil {
			t.Errorf("version %d: %v", i+1, err)
		}
		back := t.TempDir()
		must(t, h.to.Get(t.Context(), c, back))
		if how, err := target.Compare(h.bags[i].Dir, back); err != nil || how != target.SameBagging {
			t.Errorf("version %d comes back as another bag: %v %v", i+1, how, err)
		}
	}
	for _, name := range leftIn(t, h.dir) {
		t.Errorf("%s is left", name)
	}
	if h.copies[0].Layout == target.LayoutOCFL {
		valid(t, filepath.Join(h.dir, "ocfl"))
	}
}

// leftIn lists what puts and mends have beside the copies.
func leftIn(t *testing.T, dir string) (left []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if p != dir && (strings.Contains(d.Name(), ".damaged") || strings.Contains(d.Name(), ".part") || filepath.Base(filepath.Dir(p)) == "staging") {
			left = append(left, p)
		}
		return err
	}))
	return left
}

func harmedKinds(t *testing.T, do func(t *testing.T, open func(t *testing.T, form string) *harmed)) {
	for _, kind := range sweptKinds()[:2] {
		t.Run(kind.kind, func(t *testing.T) {
			t.Parallel()
			do(t, func(t *testing.T, form string) *harmed {
				c, dir := kind.open(t)
				c.Layout = form
				return newHarmed(t, c, dir)
			})
		})
	}
}

// Of an OCFL object each thing that can be wrong is found, mended from a good copy, and nothing is left aside.
func TestOCFLHarm(t *testing.T) {
	t.Parallel()
	write := func(name, text string) func(string) error {
		return func(object string) error {
			at := filepath.Join(object, name)
			return errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.RemoveAll(at), os.WriteFile(at, []byte(text), 0o644))
		}
	}
	remove := func(names ...string) func(string) error {
		return func(object string) (err error) {
			for _, name := range names {
				err = errors.Join(err, os.RemoveAll(filepath.Join(object, name)))
			}
			return err
		}
	}
	folder := func(name string) func(string) error {
		return func(object string) error {
			return errors.Join(os.RemoveAll(filepath.Join(object, name)), os.MkdirAll(filepath.Join(object, name), 0o755))
		}
	}
	pipe := func(name string) func(string) error {
		return func(object string) error {
			return errors.Join(os.RemoveAll(filepath.Join(object, name)), syscall.Mkfifo(filepath.Join(object, name), 0o644))
		}
	}
	link := func(name string) func(string) error {
		return func(object string) error {
			return errors.Join(os.RemoveAll(filepath.Join(object, name)), os.Symlink("/etc/passwd", filepath.Join(object, name)))
		}
	}
	both := func(harms ...func(string) error) func(string) error {
		return func(object string) (err error) {
			for _, harm := range harms {
				err = errors.Join(err, harm(object))
			}
			return err
		}
	}
	inventories := []string{"inventory.json", "v1/inventory.json", "v2/inventory.json"}
	sidecars := []string{"inventory.json.sha512", "v1/inventory.json.sha512", "v2/inventory.json.sha512"}
	for name, c := range map[string]struct {
		harm func(object string) error
		of   []int // the versions that are found
	}{
		"the object":             {remove(""), []int{1, 2}},
		"all inventories":        {remove(inventories...), []int{1, 2}},
		"all sidecars":           {remove(sidecars...), []int{1, 2}},
		"all sidecars flipped":   {both(write(sidecars[0], "no"), write(sidecars[1], "no"), write(sidecars[2], "no")), []int{1, 2}},
		"the newest inventories": {remove("inventory.json", "v2/inventory.json"), []int{1, 2}},
		"the newest sidecars":    {remove(sidecars[0], sidecars[2]), []int{1, 2}},
		"the newest version":     {both(remove("v2"), remove("inventory.json")), []int{1, 2}},
		"a half of an inventory": {both(write("inventory.json", "{"), write("v2/inventory.json", "{")), []int{1, 2}},
		"an empty v3":            {folder("v3"), []int{1, 2}},
		"a stray v3":             {write("v3/content/data/a", "A"), []int{1, 2}},
		"a v3 that is a file":    {write("v3", "A"), []int{1, 2}},
		"a v3 that is a link":    {link("v3"), []int{1, 2}},
		"an empty folder":        {folder("v1/content/data/e/f"), []int{1}},
		"another sidecar":        {write("inventory.json.sha256", "0"), []int{1, 2}},
		"a version's sidecar":    {write("v2/inventory.json.md5", "0"), []int{2}},
		"an old declaration":     {write("0=ocfl_object_1.0", "ocfl_object_1.0\n"), []int{1, 2}},
		"the root's declaration": {remove("../../../../0=ocfl_1.1"), []int{1, 2}},
		"another root":           {write("../../../../0=ocfl_1.1", "no"), []int{1, 2}},
		"a link":                 {link("v1/content/data/link"), []int{1}},
		"a pipe":                 {pipe("v1/content/data/pipe"), []int{1}},
		"a link for a file":      {link("v1/content/data/d/b"), []int{1}},
		"a pipe for a file":      {pipe("v1/content/data/d/b"), []int{1}},
		"a folder for a file":    {folder("v1/content/data/d/b"), []int{1}},
		"a full folder for it":   {both(folder("v1/content/data/d/b"), write("v1/content/data/d/b/x/y", "z")), []int{1}},
		"a link for a folder":    {link("v1/content/data/d"), []int{1}},
		"a link for a version":   {link("v1"), []int{1, 2}},
		"a pipe for a sidecar":   {pipe("inventory.json.sha512"), []int{1, 2}},
		"a folder for one":       {folder("inventory.json.sha512"), []int{1, 2}},
		"a link for inventories": {both(link("inventory.json"), link("v1/inventory.json")), []int{1, 2}},
		"a truncated file":       {write("v1/content/data/a", ""), []int{1, 2}},
		"a file for the object":  {write("", "A"), []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harmedKinds(t, func(t *testing.T, open func(*testing.T, string) *harmed) {
				h := open(t, target.LayoutOCFL)
				must(t, c.harm(h.object))
				if r, err := target.ValidateOCFL(t.Context(), filepath.Join(h.dir, "ocfl"), false); err != nil || r.Valid {
					t.Errorf("ocfl validate finds nothing: %+v, %v", r, err)
				}
				for n := 1; n <= 2; n++ {
					if slices.Contains(c.of, n) {
						h.found(t, n)
					}
				}
				for _, n := range c.of {
					h.mend(t, n)
				}
				h.sound(t)
			})
		})
	}
}

// Of a bag and a tar, too, what stands in a file's place, or in the copy's, is found and mended.
func TestCopiesHarm(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(at string) error{
		"gone":   func(at string) error { return nil },
		"pipe":   func(at string) error { return syscall.Mkfifo(at, 0o644) },
		"link":   func(at string) error { return os.Symlink("/etc/passwd", at) },
		"lost":   func(at string) error { return os.Symlink("/nowhere/at/all", at) },
		"folder": func(at string) error { return os.MkdirAll(filepath.Join(at, "x"), 0o755) },
		"full": func(at string) error {
			return errors.Join(os.Mkdir(at, 0o755), os.WriteFile(filepath.Join(at, "x"), nil, 0o644))
		},
		"file": func(at string) error { return os.WriteFile(at, []byte("x"), 0o644) },
	} {
		for what, forms := range map[string][]string{"": {target.LayoutBag, target.LayoutTar}, "data/a": {target.LayoutBag}, "data/d": {target.LayoutBag}, "bagit.txt": {target.LayoutBag}, "data": {target.LayoutBag}} {
			for _, form := range forms {
				t.Run(form+"/"+name+"/"+strings.ReplaceAll(what, "/", "-"), func(t *testing.T) {
					t.Parallel()
					harmedKinds(t, func(t *testing.T, open func(*testing.T, string) *harmed) {
						h := open(t, form)
						at := filepath.Join(h.object, what)
						must(t, os.RemoveAll(at), harm(at))
						h.found(t, 1)
						h.mend(t, 1)
						h.sound(t)
					})
				})
			}
		}
	}
}

// A link to a folder that is removed with a copy takes nothing from where it leads.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
		t.Run(form, func(t *testing.T) {
			harmedKinds(t, func(t *testing.T, open func(*testing.T, string) *harmed) {
				h, elsewhere := open(t, form), t.TempDir()
				must(t, os.WriteFile(filepath.Join(elsewhere, "kept"), nil, 0o644))
				must(t, os.RemoveAll(h.object), os.Symlink(elsewhere, h.object))
				h.found(t, 1)
				h.mend(t, 1)
				if form == target.LayoutOCFL {
					h.mend(t, 2)
				}
				h.sound(t)
				if _, err := os.Lstat(filepath.Join(elsewhere, "kept")); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// In each copy, on each kind of target, a flipped byte, a truncated file, one that is missing and one too many is found by reading it, and
// all but the byte by names and sizes alone; the copy is mended, and nothing is left aside.
func TestEachCopyHarmed(t *testing.T) {
	t.Parallel()
	for _, kind := range sweptKinds() {
		for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
			t.Run(kind.kind+"/"+form, func(t *testing.T) {
				t.Parallel()
				for _, c := range []struct {
					name string
					harm func(at string, size int64) error
					seen bool // by names and sizes
				}{
					{"flipped", func(at string, size int64) error { return overwrite(at, size/2) }, false},
					{"truncated", func(at string, size int64) error { return os.Truncate(at, size/2) }, true},
					{"missing", func(at string, _ int64) error { return os.Remove(at) }, true},
					{"extra", func(at string, size int64) error {
						if form == target.LayoutTar {
							return os.Truncate(at, size+1)
						}
						return os.WriteFile(filepath.Join(filepath.Dir(at), "extra"), []byte("extra"), 0o644)
					}, true},
				} {
					harmEach(t, kind, form, c.name, c.harm, c.seen)
				}
			})
		}
	}
}

// harmEach harms a payload file of a copy, or its tar.
func harmEach(t *testing.T, kind swept, form, name string, harm func(at string, size int64) error, seen bool) {
	c, dir := kind.open(t)
	c.Layout = form
	h := newHarmed(t, c, dir)
	at := map[string]string{target.LayoutBag: filepath.Join(h.object, "data/d/b"), target.LayoutTar: h.object, target.LayoutOCFL: filepath.Join(h.object, "v1/content/data/d/b")}[form]
	info, err := os.Stat(at)
	must(t, err, os.Chmod(at, 0o644), harm(at, info.Size()))
	var wrong *target.Damage
	_, _, err = h.to.Check(t.Context(), h.copies[0], target.Exists)
	if found := errors.As(err, &wrong) || errors.Is(err, fs.ErrNotExist); found != seen {
		t.Errorf("%s: by names and sizes: %v", name, err)
	}
	h.found(t, 1)
	h.mend(t, 1)
	h.sound(t)
	if t.Failed() {
		t.Errorf("after %s", name)
	}
}

// overwrite changes a byte of a file in its place.
func overwrite(at string, offset int64) error {
	f, err := os.OpenFile(at, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	b := make([]byte, 1)
	_, err = f.ReadAt(b, offset)
	b[0] ^= 1
	_, werr := f.WriteAt(b, offset)
	return errors.Join(err, werr, f.Close())
}
