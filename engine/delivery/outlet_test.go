package delivery

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/layout"
)

// What a kill leaves of a note is written over by the next put, and gone once the item is.
func TestNotesOfAFolderLeaveNothing(t *testing.T) {
	id, err := layout.NewItemID(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o, p := folderOutlet{dir, func(context.Context) (bool, error) { return false, nil }}, parcel{Key: "key", Item: id}
	half := o.note(id) + ".tmp"
	leave := func() {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(half), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(half, []byte("{"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	left := func() int {
		names, err := filepath.Glob(filepath.Join(dir, ".bagpipe", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	leave()
	if _, err := o.put(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, has, err := o.ask(t.Context(), p); err != nil || !has || left() != 1 {
		t.Errorf("it has the delivery: %v, %v; %d files beside", has, err, left())
	}
	leave()
	if err := o.remove(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if n := left(); n != 0 {
		t.Errorf("%d files are left", n)
	}
}
