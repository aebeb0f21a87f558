package target_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
)

// The published fixtures draw the codes in their names. A validator may meet another error
// first; then it is enough that the object is refused.
func TestOCFLFixtures(t *testing.T) {
	fixtures := "../../../shared/fixtures/ocfl"
	if _, err := os.Stat(fixtures); err != nil {
		t.Skip(err)
	}
	coded, judged := 0, 0
	for _, version := range []string{"1.0", "1.1"} {
		for _, kind := range []string{"good", "warn", "bad"} {
			objects, err := filepath.Glob(filepath.Join(fixtures, version, kind+"-objects", "*"))
			must(t, err)
			for _, at := range objects {
				judged++
				dir := filepath.Join(t.TempDir(), "object")
				must(t, os.CopyFS(dir, os.DirFS(at)))
				if filepath.Base(at) == "E003_E063_empty" {
					must(t, os.Remove(filepath.Join(dir, ".keep")))
				}
				r, err := target.ValidateOCFL(t.Context(), dir, false)
				must(t, err)
				if r.Valid != (kind != "bad") {
					t.Errorf("%s: valid %v: %+v", at, r.Valid, r.Findings)
				}
				if code, _, _ := strings.Cut(filepath.Base(at), "_"); kind != "good" && slices.ContainsFunc(r.Findings, func(f target.OCFLFinding) bool { return f.Code == code }) {
					coded++
				} else if kind == "warn" {
					t.Errorf("%s: %+v", at, r.Findings)
				} else if kind == "good" && len(r.Findings) > 0 {
					t.Errorf("%s: %+v", at, r.Findings)
				}
			}
		}
	}
	t.Logf("%d objects, %d with the code that their name begins with", judged, coded)
	if judged < 50 {
		t.Errorf("%d objects alone", judged)
	}
}

// valid wants a storage root that another's validator finds nothing in.
func valid(t *testing.T, root string) {
	t.Helper()
	r, err := target.ValidateOCFL(t.Context(), root, false)
	must(t, err)
	if !r.Valid || r.Objects == 0 || len(r.Findings) > 0 {
		t.Errorf("%s: %+v", root, r)
	}
}

// Versions share their contents; the root is valid by another's validator.
func TestOCFLVersions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "vault")
	to := open(t, target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: dir})
	big := strings.Repeat("x", 1<<20)
	for n := 1; n <= 3; n++ {
		b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"big": big, "changed": strings.Repeat("v", n), "100%": "odd"})
		b.Version = n
		c, err := to.Put(t.Context(), b)
		must(t, err)
		if want := "v" + string(rune('0'+n)); c.State != want {
			t.Errorf("the state is %s, want %s", c.State, want)
		}
		valid(t, filepath.Join(dir, "ocfl"))
	}
	copies := 0
	must(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if filepath.Base(p) == "big" {
			copies++
		}
		return err
	}))
	if copies != 1 {
		t.Errorf("%d copies of a file that did not change", copies)
	}
}

// What a crash leaves is finished by the next put: a version that the inventory does not
// name, an inventory without its sidecar, a part of a version that is staged.
func TestOCFLGoesOn(t *testing.T) {
	for _, undo := range []string{"inventory", "sidecar", "staged"} {
		t.Run(undo, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "vault")
			to := open(t, target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: dir})
			first := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"})
			c, err := to.Put(t.Context(), first)
			must(t, err)
			object := filepath.Join(dir, c.Place)
			before := t.TempDir()
			must(t, os.CopyFS(filepath.Join(before, "o"), os.DirFS(object)))
			second := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "b": "B"})
			second.Version = 2
			_, err = to.Put(t.Context(), second)
			must(t, err)
			put := func(name string) {
				data, err := os.ReadFile(filepath.Join(before, "o", name))
				must(t, err)
				must(t, os.WriteFile(filepath.Join(object, name), data, 0o644))
			}
			switch undo {
			case "inventory":
				put("inventory.json")
				put("inventory.json.sha512")
			case "sidecar":
				put("inventory.json.sha512")
			case "staged":
				put("inventory.json")
				put("inventory.json.sha512")
				stage := filepath.Join(dir, "staging", string(targettest.Item))
				must(t, os.MkdirAll(stage, 0o755), os.Rename(filepath.Join(object, "v2"), filepath.Join(stage, "v2")))
				must(t, os.MkdirAll(filepath.Join(stage, "v3", "empty"), 0o755), os.WriteFile(filepath.Join(stage, "v3", "stray"), nil, 0o644))
			}
			c, err = to.Put(t.Context(), second)
			must(t, err)
			if c.State != "v2" {
				t.Errorf("it is %s now", c.State)
			}
			valid(t, filepath.Join(dir, "ocfl"))
		})
	}
}

// A storage root of another layout is gone on with as it says; a broken object is refused.
func TestOCFLOfOthers(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"bagpipe-store.json": "", "0=ocfl_1.1": "ocfl_1.1\n", "ocfl_layout.json": `{"extension": "0003-hash-and-id-n-tuple-storage-layout", "description": "d"}`} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	to := open(t, target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: dir})
	b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"})
	c, err := to.Put(t.Context(), b)
	must(t, err)
	if !strings.HasSuffix(c.Place, "%253a"+string(targettest.Item)) {
		t.Errorf("the object stands at %s", c.Place)
	}
	b.Version = 2
	must(t, os.WriteFile(filepath.Join(dir, strings.ReplaceAll(c.Place, "%25", "%"), "inventory.json"), []byte("{}"), 0o644))
	if _, err := to.Put(t.Context(), b); err == nil {
		t.Error("a broken object was gone on with")
	}
}
