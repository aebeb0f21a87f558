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

// Who waits for a lock makes the lock's folder, and no repository either.
func TestALockMakesNoRepository(t *testing.T) {
	root := t.TempDir()
	r := &Repo{Root: root, Git: filepath.Join(root, ".git"), FS: disk.OS{}}
	if _, err := r.lock(r.Temp("lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("locked where no repository is: %v", err)
	}
	if _, err := os.Lstat(r.Git); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a repository was begun: %v", err)
	}
	if err := os.Mkdir(r.Git, 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := r.lock(r.Temp("lock"))
	if err != nil {
		t.Fatal(err)
	}
	if another, err := disk.TryLockFile(r.Temp("lock"), 0o666); another != nil || err != nil {
		t.Errorf("locked twice: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}
