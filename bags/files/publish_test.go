package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestScratchOfTheDeadIsRemoved(t *testing.T) {
	dir := t.TempDir()
	dest := filepath.Join(dir, "x")
	living, err := NewScratch(dest)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := NewScratch(dest)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(dead.Made(), "half"), 0o755), dead.lock.Unlock()); err != nil {
		t.Fatal(err)
	}
	next, err := NewScratch(dest)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dead.dir); !os.IsNotExist(err) {
		t.Errorf("what a crash left is still there: %v", err)
	}
	if _, err := os.Lstat(living.dir); err != nil {
		t.Errorf("a living one's folder: %v", err)
	}
	if err := living.Close(); err != nil {
		t.Error(err)
	}
}
