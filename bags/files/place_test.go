package files

import (
	"os"
	"path/filepath"
	"testing"
)

// What is placed by hard links can be written to in neither place; what is copied can.
func TestLinksAreReadOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		link bool
		mode os.FileMode
	}{"links": {true, 0o444}, "copies": {false, 0o644}} {
		t.Run(name, func(t *testing.T) {
			from, to := t.TempDir(), t.TempDir()
			file := filepath.Join(from, "a")
			if err := os.WriteFile(file, []byte("a"), 0o644); err != nil {
				t.Fatal(err)
			}
			tree, err := Scan(t.Context(), from)
			if err != nil {
				t.Fatal(err)
			}
			if err := Place(t.Context(), tree, to, tc.link); err != nil {
				t.Fatal(err)
			}
			was, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			made, err := os.Stat(filepath.Join(to, "a"))
			if err != nil {
				t.Fatal(err)
			}
			if tc.link && !os.SameFile(was, made) {
				t.Skip("this file system shares the bytes of copies")
			}
			if was.Mode() != tc.mode || made.Mode() != tc.mode {
				t.Errorf("modes %v and %v, want %v", was.Mode(), made.Mode(), tc.mode)
			}
		})
	}
}
