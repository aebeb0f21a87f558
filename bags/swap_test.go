package bags

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
)

// A folder that becomes a link out of the tree after it was listed: nothing of
// where it leads gets into a bag or an archive.
func TestFolderSwappedForALink(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	swapped := func(t *testing.T) *Tree {
		dir := filepath.Join(t.TempDir(), "x")
		if err := os.MkdirAll(filepath.Join(dir, "s"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "s/f"), []byte("public"), 0o644); err != nil {
			t.Fatal(err)
		}
		tree, err := namedTree(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "s")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(dir, "s")); err != nil {
			t.Fatal(err)
		}
		return tree
	}
	for _, f := range PackFormats() {
		p := newPacker(swapped(t), PackOptions{Format: f})
		if err := p.writeTo(t.Context(), filepath.Join(t.TempDir(), "a")); err == nil {
			t.Errorf("%s: packed what is outside", f)
		}
	}
	for _, link := range []bool{false, true} {
		tree := swapped(t)
		tree.Dir = filepath.Join(tree.Dir, "x")
		tree.Folders = []Entry{{Path: "s"}}
		tree.Files[0].Path = "s/f"
		dest := t.TempDir()
		if err := Place(t.Context(), tree, dest, link); err == nil {
			t.Errorf("link %v: placed what is outside", link)
		}
		if _, err := os.Lstat(filepath.Join(dest, "s/f")); err == nil {
			t.Errorf("link %v: a file was made", link)
		}
	}
}

// Where a bag is made, folders become links to elsewhere while it is written: nothing is
// written there. The links stand from the first to the last file.
func TestNothingIsWrittenThroughALink(t *testing.T) {
	outside := t.TempDir()
	src := payloadFolder(t, bag{"s/f": "public", "g": "x"})
	tree, err := Scan(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	dest := t.TempDir()
	into, err := os.OpenRoot(dest)
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close()
	if err := os.Symlink(outside, filepath.Join(dest, "s")); err != nil {
		t.Fatal(err)
	}
	tree.Folders = nil // s is there, as if it had been made and swapped
	for _, link := range []bool{false, true} {
		if err := placeTree(t.Context(), tree, into, link, 1); err == nil {
			t.Errorf("link %v: wrote through a link", link)
		}
		_ = into.Remove("g")
	}

	dir := payloadFolder(t, bag{"a": "x"})
	swapped := false
	_, err = CreateInPlace(t.Context(), CreateOptions{Payload: dir, Progress: func(Progress) {
		if !swapped {
			swapped = true
			place := filepath.Join(dir, newDir)
			if err := cmp.Or(os.Rename(place, place+".old"), os.Symlink(outside, place)); err != nil {
				t.Error(err)
			}
		}
	}})
	if !swapped || err == nil {
		t.Errorf("swapped %v, error %v", swapped, err)
	}
	if got := filesOf(t, dir); got["a"] != "x" {
		t.Errorf("the payload moved: %q", got)
	}
	if names, err := os.ReadDir(outside); err != nil || len(names) > 0 {
		t.Errorf("written outside: %v, %v", names, err)
	}
}
