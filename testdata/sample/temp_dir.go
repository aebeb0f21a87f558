package sample

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TempDir is t.TempDir of what may hold deposited bags: their folders are read-only, and an ordinary
// account could not remove them.
func TempDir(t testing.TB) string {
	dir := t.TempDir()
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		})
	})
	return dir
}
