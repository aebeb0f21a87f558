package faultfs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"bagpipe/layout/disk"
)

var _ disk.FS = (*FS)(nil)

// replace writes a file the durable way, and reports how far it came.
func replace(f *FS, dir, text string) error {
	return disk.WriteFileFS(f, filepath.Join(dir, "a"), "", []byte(text), 0o644)
}

func TestCutLeavesTheOldOrTheNew(t *testing.T) {
	for _, loss := range []Loss{Nothing, Unsynced, Bytes} {
		for k := 1; ; k++ {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a"), []byte("old"), 0o644); err != nil {
				t.Fatal(err)
			}
			f := New(k, nil)
			err := replace(f, dir, "new")
			if err := f.Cut(loss); err != nil {
				t.Fatal(err)
			}
			got, readErr := os.ReadFile(filepath.Join(dir, "a"))
			if readErr != nil {
				t.Fatal(readErr)
			}
			if err == nil {
				if k != 6 { // create, write, sync, rename, syncdir
					t.Errorf("%s: done after %d changes", loss, k-1)
				}
				if string(got) != "new" {
					t.Errorf("%s: %q after success", loss, got)
				}
				break
			}
			if s := string(got); s != "old" && s != "new" {
				t.Errorf("%s, stopped at %d: %q", loss, k, got)
			}
		}
	}
}

func TestCutTakesWhatWasNotSynced(t *testing.T) {
	dir := t.TempDir()
	f := New(0, nil)
	write := func(name, text string, sync bool) {
		t.Helper()
		file, err := f.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if sync {
			if err := file.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write("named", "kept", true)
	if err := f.SyncDir(dir); err != nil {
		t.Fatal(err)
	}
	write("named", " lost", false)
	write("nameless", "synced, but not its name", true)
	if err := f.Rename(filepath.Join(dir, "named"), filepath.Join(dir, "renamed")); err != nil {
		t.Fatal(err)
	}
	if err := f.Cut(Unsynced); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Name() != "named" {
		t.Errorf("left: %v", list)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "named")); string(data) != "kept" {
		t.Errorf("named holds %q", data)
	}
}

func TestTransientFaultFailsOnce(t *testing.T) {
	f := NewTransient(2, syscall.ENOSPC)
	dir := t.TempDir()
	if err := replace(f, dir, "x"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v", err)
	}
	if what, ok := f.Failed(); !ok || what != "write "+filepath.Join(dir, "a.tmp") {
		t.Errorf("failed at %q, %v", what, ok)
	}
	if err := replace(f, dir, "x"); err != nil {
		t.Error(err)
	}
}

func TestLinkedFilesStayOneFile(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := errors.Join(os.WriteFile(a, []byte("x"), 0o644), os.Link(a, b)); err != nil {
		t.Fatal(err)
	}
	f := New(0, nil)
	if err := errors.Join(f.Remove(a), f.Remove(b), f.Cut(Unsynced)); err != nil {
		t.Fatal(err)
	}
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(x, y) {
		t.Error("the two names came back as two files")
	}
}
