package bags

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/bags/files"
)

// Where a bag is made, folders become links to elsewhere while it is written: nothing is
// written there. The links stand from the first to the last file.
func TestNothingIsWrittenThroughALink(t *testing.T) {
	outside := t.TempDir()
	src := payloadFolder(t, bag{"s/f": "public", "g": "x"})
	tree, err := files.Scan(t.Context(), src)
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
		if err := files.PlaceTree(t.Context(), tree, into, link, 1); err == nil {
			t.Errorf("link %v: wrote through a link", link)
		}
		_ = into.Remove("g")
	}

	dir := payloadFolder(t, bag{"a": "x"})
	swapped := false
	_, err = CreateInPlace(t.Context(), CreateOptions{Payload: dir, Progress: func(files.Progress) {
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
