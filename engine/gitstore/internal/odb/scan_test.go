package odb

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// scanned reads objects by a Scan, and compares with what Read gives.
func scanned(t *testing.T, db *DB, d *Digests, objects []Hash) {
	t.Helper()
	b := db.Bulk()
	s := b.Scan(d)
	for _, h := range slices.Concat(objects, objects[:len(objects)/2]) {
		kind, want, err := db.ReadUncached(h)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.ReadAs(h, kind); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s reads as %.60q, want %.60q: %v", h, got, want, err)
		}
	}
	if d != nil {
		if err := b.Rest(d, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRestFindsWhatDoesNotFit flips each of some bytes of a pack, and gives a name in its index
// another object's place.
func TestRestFindsWhatDoesNotFit(t *testing.T) {
	dir := t.TempDir()
	path, _ := onePack(t, dir, 40)
	pack, err := os.ReadFile(path + ".pack")
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile(path + ".idx")
	if err != nil {
		t.Fatal(err)
	}
	rest := func() error {
		db, err := Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		b := db.Bulk()
		defer b.Close()
		return b.Rest(NewDigests(), func() error { return nil })
	}
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := rest(); err != nil {
		t.Fatal(err)
	}
	for at := packHeaderLen; at < len(pack)-20; at += 997 {
		bad := bytes.Clone(pack)
		bad[at] ^= 4
		write(path+".pack", bad)
		if err := rest(); !errors.Is(err, ErrDigest) && !errors.Is(err, errCorrupt) {
			t.Fatalf("byte %d was flipped: %v", at, err)
		}
	}
	write(path+".pack", pack)
	offsets := indexHead + 24*40
	copy(index[offsets:offsets+4], index[offsets+4:offsets+8])
	write(path+".idx", index)
	if err := rest(); !errors.Is(err, ErrDigest) {
		t.Fatalf("two names of one place: %v", err)
	}
}

// A tree that ends amidst an entry is given as bytes, and as a tree is not, how often it is asked.
func TestAScanChecksEachTreeThatIsReadAsOne(t *testing.T) {
	dir := t.TempDir()
	b := NewBuilder()
	whole := AppendEntry(nil, "100644", "a", b.AddBlob([]byte("a"), Hash{}))
	good, _ := b.AddTree(whole, nil, Placed{})
	bad, _ := b.AddTree(whole[:len(whole)-1], nil, Placed{})
	pack, index, name := b.Finish()
	path := filepath.Join(dir, "pack", "pack-"+name.String())
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	for ext, data := range map[string][]byte{".pack": pack, ".idx": index} {
		if err := os.WriteFile(path+ext, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	db, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	bulk := db.Bulk()
	defer bulk.Close()
	s := bulk.Scan(nil)
	for range 3 {
		if got, err := s.ReadAs(bad, TypeTree); err != nil || len(got) != len(whole)-1 {
			t.Errorf("the damaged tree's bytes: %q, %v", got, err)
		}
		if _, err := s.ReadTree(bad); !IsCorrupt(err) {
			t.Errorf("the damaged tree: %v", err)
		}
		if _, err := s.ReadTree(good); err != nil {
			t.Errorf("the whole tree: %v", err)
		}
	}
}

func TestStrict(t *testing.T) {
	blob := Name(TypeBlob, []byte("a"))
	tree := func(entries ...string) (data []byte) { // MODE NAME
		for _, e := range entries {
			mode, name, _ := strings.Cut(e, " ")
			data = AppendEntry(data, Mode(mode), name, blob)
		}
		return data
	}
	for _, good := range [][]byte{tree(), tree("100644 a", "40000 b"), tree("100644 a.b", "40000 a", "120000 c", "100755 d"), tree("100644 ...", "100644 .a", "100644 .gi", "100644 a."),
		tree("40000 0", "40000 9", "40000 a", "100644 b", "40000 c"), tree("40000 a", "40000 b", "40000 ba")} {
		if err := strict(TypeTree, good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range [][]byte{tree("100644 b", "100644 a"), tree("100644 a", "100644 a"), tree("40000 a", "100644 a.b"),
		tree("100666 a"), tree("40000 .Git"), tree("100644 ."), tree("100644 .."), tree("100644 a/b"), tree("100644 a/b/c"), tree("40000 /"), tree("100644 "), tree("100644 a")[:10],
		tree("40000 0", "40000 2", "40000 1"), tree("40000 a", "40000 a"), tree("40000 a", "40000 b", "100644 a"), tree("40000 b", "40000 ab"), tree("40000 a", "40000 b")[:50],
		AppendEntry(tree("40000 a"), ModeDir, "b", Hash{})} {
		if strict(TypeTree, bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
