package settings

import (
	"os"
	"path/filepath"
	"testing"
)

func TestEditsAreNoticedOnceTheyRest(t *testing.T) {
	root := t.TempDir()
	write := func(rel, text string) {
		t.Helper()
		file := filepath.Join(root, filepath.FromSlash(rel))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("bagpipe.yaml", "schema: 1\n")
	e := NewEdits(func(rel string) string { return filepath.Join(root, filepath.FromSlash(rel)) })
	looks := func(change string, want ...bool) {
		t.Helper()
		for n, w := range want {
			if got := e.Due(); got != w {
				t.Errorf("%s: look %d: %v", change, n+1, got)
			}
		}
	}
	looks("nothing", false, false)
	write("bagpipe.yaml", "schema: 1\nlimits: {}\n")
	looks("an edit", false, true, false)
	write("workflows/a.yaml", "name: a\n")
	looks("half of a new file", false)
	write("workflows/a.yaml", "name: a\nsteps: []\n")
	looks("the rest of it", false, true, false)
	write("workflows/.a.yaml123", "x")
	write("workflows/notes.txt", "x")
	looks("files that are no settings", false, false)
	if err := os.Remove(filepath.Join(root, "workflows", "a.yaml")); err != nil {
		t.Fatal(err)
	}
	looks("a removal", false, true, false)
}
