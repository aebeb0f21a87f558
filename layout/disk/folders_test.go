package disk

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Files are found in their folders, whichever was open before; no link leads out, and none is made where it is not asked for.
func TestFoldersBelow(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"a/b", "out"} {
		if err := os.MkdirAll(filepath.Join(dir, "root", sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"top", "a/one", "a/b/one"} {
		if err := os.WriteFile(filepath.Join(dir, "root", file), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, filepath.Join(dir, "root/a/away")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(filepath.Join(dir, "root"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f := Below(root)
	for _, file := range []string{"a/one", "a/b/one", "a/b/one", "top", "a/one"} {
		in, err := f.OpenFile(file, os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(in); err != nil || string(data) != file || in.Close() != nil {
			t.Errorf("%s: %q, %v", file, data, err)
		}
	}
	for _, file := range []string{"a/away/x", "a/away", "../x", "..", "a/..", "", "new/x", "top/x"} {
		if _, err := f.OpenFile(file, os.O_RDONLY, 0); err == nil {
			t.Errorf("%q was opened", file)
		}
	}
	if out, err := f.OpenFile("new/below/x", os.O_WRONLY|os.O_CREATE, 0o600); err != nil || out.Close() != nil {
		t.Errorf("a folder that was not there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "root/new/below/x")); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
