package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestRemoveTree(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	kept := filepath.Join(top, "kept", "file")
	tree := filepath.Join(top, "tree")
	for _, name := range []string{kept, filepath.Join(tree, "a/b/c/file"), filepath.Join(tree, "file"), filepath.Join(tree, "shut/file")} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Dir(kept), filepath.Join(tree, "link")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"shut", "a/b", "a"} {
		if err := os.Chmod(filepath.Join(tree, dir), 0o100); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveTree(tree); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(tree); !os.IsNotExist(err) {
		t.Errorf("the tree is there: %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what a link led to: %v", err)
	}
	for _, name := range []string{tree, filepath.Join(top, "none", "below")} {
		if err := RemoveTree(name); err != nil {
			t.Errorf("remove what is not there: %v", err)
		}
	}
	link := filepath.Join(top, "link")
	if err := os.Symlink(filepath.Dir(kept), link); err != nil {
		t.Fatal(err)
	}
	if err := RemoveTree(link); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what the removed link led to: %v", err)
	}
}

// Two that remove one tree at once both find it gone.
func TestRemoveTreeByTwoAtOnce(t *testing.T) {
	for range 5 {
		top := filepath.Join(t.TempDir(), "top")
		for n := range 100 {
			if err := os.MkdirAll(filepath.Join(top, fmt.Sprint(n), "a", "b"), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		other := make(chan error)
		go func() { other <- RemoveTree(top) }()
		if err := errors.Join(RemoveTree(top), <-other); err != nil {
			t.Fatal(err)
		}
	}
}

// A folder is removed whose names come in more than one call.
func TestRemoveTreeOfManyNames(t *testing.T) {
	top := filepath.Join(t.TempDir(), "top")
	if err := os.Mkdir(top, 0o777); err != nil {
		t.Fatal(err)
	}
	for n := range 2000 {
		if err := os.WriteFile(filepath.Join(top, fmt.Sprintf("a name of some length, of which there are many: %d", n)), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveTree(top); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(top); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
}
