package archive

import (
	"os"
	"path/filepath"
	"testing"

	"bagpipe/bags/files"
)

// A folder that becomes a link out of the tree after it was listed: nothing of
// where it leads gets into a bag or an archive.
func TestFolderSwappedForALink(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	swapped := func(t *testing.T) *files.Tree {
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
		tree.Folders = []files.Entry{{Path: "s"}}
		tree.Files[0].Path = "s/f"
		dest := t.TempDir()
		if err := files.Place(t.Context(), tree, dest, link); err == nil {
			t.Errorf("link %v: placed what is outside", link)
		}
		if _, err := os.Lstat(filepath.Join(dest, "s/f")); err == nil {
			t.Errorf("link %v: a file was made", link)
		}
	}
}
