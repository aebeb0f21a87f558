package fetch

import (
	"os"
	"path/filepath"
	"testing"
)

// A part that is another name of a payload file: the payload is not written over.
func TestPartWithAnotherNameIsBegunAnew(t *testing.T) {
	store := payloadFolder(t, bag{"a.txt": "one", "b.txt": "two"})
	dir := holes("file://" + store).write(t)
	notes := filepath.Join(dir, "notes/tag.txt")
	before, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(notes, filepath.Join(dir, partOf("data/a.txt"))); err != nil {
		t.Fatal(err)
	}
	if did := fetchIn(t, dir, Allowed{Folders: []string{store}}); did.Files != 2 || len(did.Failed) > 0 {
		t.Errorf("%+v", did)
	}
	if after, err := os.ReadFile(notes); err != nil || string(after) != string(before) {
		t.Errorf("%q became %q, %v", before, after, err)
	}
	expectBag(t, dir, true, true, "")
}

// Parts that nobody goes on with, as after a crash between the file's name and the
// part's end, do not keep a bag from being completed; those of files that could not
// be had stay.
func TestPartsLeftOverGo(t *testing.T) {
	store := payloadFolder(t, bag{"a.txt": "one"})
	dir := holes("file://" + store).write(t)
	if err := os.MkdirAll(filepath.Join(dir, Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "data/d"), 0o755); err != nil {
		t.Fatal(err)
	}
	orphan, wanted := filepath.Join(dir, partOf("data/gone.txt")), filepath.Join(dir, partOf("data/d/b.txt"))
	writeFile(t, orphan, "x")
	writeFile(t, wanted, "t")
	allowed := Allowed{Folders: []string{store}}
	if did := fetchIn(t, dir, allowed); did.Files != 1 || len(did.Failed) != 1 {
		t.Errorf("%+v", did)
	}
	expectGone(t, orphan)
	if _, err := os.Lstat(wanted); err != nil {
		t.Errorf("a part to go on with is gone: %v", err)
	}
	writeFile(t, filepath.Join(dir, "data/d/b.txt"), "two") // by another way
	if did := fetchIn(t, dir, allowed); did.There != 2 || len(did.Failed) > 0 {
		t.Errorf("%+v", did)
	}
	expectGone(t, filepath.Join(dir, Dir))
	expectBag(t, dir, true, true, "")
}
