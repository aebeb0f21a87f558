package gitstore

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"bagpipe/layout/disk"
)

// unsynced is a disk on which the branch's folder cannot be synced, so many times.
type unsynced struct {
	disk.FS
	dir   string
	times atomic.Int32
}

func (u *unsynced) SyncDir(dir string) error {
	if dir == u.dir && u.times.Add(-1) >= 0 {
		return syscall.EIO
	}
	return u.FS.SyncDir(dir)
}

// A branch whose folder could not be synced after it was moved is moved again; where that does not help either, nothing
// is committed on top of what may be lost, and the store goes on from there once it is opened anew.
func TestABranchThatMayNotBeDurable(t *testing.T) {
	o := testOptions()
	root := initRoot(t, o, nil)
	machine := &unsynced{FS: disk.OS{}, dir: filepath.Join(root, ".git/refs/heads")}
	o.FS = machine
	s, err := Open(root, o)
	if err != nil {
		t.Fatal(err)
	}
	machine.times.Store(moveTries - 1)
	put(t, s, "items/a/e.json", "1")

	machine.times.Store(moveTries)
	var unsure *UnsureError
	for _, path := range []string{"items/b/e.json", "items/c/e.json"} { // the second finds a sound disk
		if _, err := tryPut(s, path, "2"); !errors.As(err, &unsure) || !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s = openRoot(t, root, o)
	put(t, s, "items/d/e.json", "3")
	for path, want := range map[string]string{"items/a/e.json": "1", "items/b/e.json": "2", "items/c/e.json": "<none>", "items/d/e.json": "3"} {
		if got := readTip(t, s, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	fsck(t, root)
}
