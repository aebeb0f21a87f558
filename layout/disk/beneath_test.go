package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestBeneath: no link below a root is followed, at no place of a path, by the system's own means or folder by folder.
func TestBeneath(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "linked")
	for _, err := range []error{os.MkdirAll(top+"/top/a/b", 0o755), os.WriteFile(top+"/top/a/b/f", []byte("in"), 0o644), os.MkdirAll(top+"/out/b", 0o755),
		os.WriteFile(top+"/out/b/f", []byte("out"), 0o644), os.Symlink("top", root), os.Symlink("../out", top+"/top/away"), os.Symlink("a", top+"/top/own"),
		os.Symlink("f", top+"/top/a/b/l")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	in, err := OpenFolder(root)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for name, open := range map[string]func(rel string) (int, error){
		"at once": func(rel string) (int, error) { return beneath(root, rel, os.O_RDONLY) },
		"folder by folder": func(rel string) (int, error) {
			fd, err := in.stepwise(rel, unix.O_RDONLY|unix.O_CLOEXEC)
			if errors.Is(err, unix.ELOOP) {
				err = errLink{}
			}
			return fd, err
		},
	} {
		for rel, want := range map[string]error{"a/b/f": nil, ".": nil, "away/b/f": fs.ErrNotExist, "own/b/f": fs.ErrNotExist, "a/b/l": fs.ErrNotExist,
			"away": fs.ErrNotExist, "a/none/f": fs.ErrNotExist, "../out/b/f": unix.EXDEV, "a/b/f/g": unix.ENOTDIR} {
			fd, err := open(rel)
			if err == nil {
				unix.Close(fd)
			}
			if !errors.Is(err, want) {
				t.Errorf("%s: %s: %v, want %v", name, rel, err, want)
			}
		}
	}
	if _, _, err := in.OpenRawBeneath("away/b/f"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("OpenRawBeneath follows a link:", err)
	}
}

// TestHold: what is held is found by the folder that it lay in, though a link has its name by now.
func TestHold(t *testing.T) {
	root := t.TempDir()
	for _, err := range []error{os.MkdirAll(root+"/a", 0o755), os.WriteFile(root+"/a/f", []byte("in"), 0o644), os.Mkdir(root+"/out", 0o755),
		os.WriteFile(root+"/out/f", []byte("out"), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	held, err := Hold(root, "a/f")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	for _, err := range []error{os.Rename(root+"/a", root+"/was"), os.Symlink("out", root+"/a")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	f, size, err := OpenRaw(held.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if data, err := io.ReadAll(f); string(data) != "in" || size != 2 || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := Hold(root, "a/f"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a link is followed:", err)
	}
	if _, err := os.Lstat(held.Path() + ".none"); held.Named(err).Error() != "lstat "+root+"/a/f.none: no such file or directory" {
		t.Error(err)
	}
}
