package repo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/layout/disk"
)

// A repository that was moved away finds its place free when it comes back.
func TestAppendMakesNoRepository(t *testing.T) {
	root := t.TempDir()
	r := &Repo{Root: root, Git: filepath.Join(root, ".git"), FS: disk.OS{}}
	if err := r.Append(r.Temp("replaced"), []byte("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("appended where no repository is: %v", err)
	}
	if _, err := os.Lstat(r.Git); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a repository was begun: %v", err)
	}
	if err := os.Mkdir(r.Git, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := r.Append(r.Temp("replaced"), []byte("x")); err != nil {
		t.Error(err)
	}
}
