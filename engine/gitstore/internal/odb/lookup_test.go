package odb

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// Lookup finds what FindEntry finds, whatever the modes are and wherever a tree is cut.
func TestLookupFindsWhatFindEntryDoes(t *testing.T) {
	var tree []byte
	for i, mode := range []Mode{ModeFile, ModeDir, "100755", "120000", "160000", "040000", ModeFile, ModeDir} {
		var h Hash
		for k := range h {
			h[k] = byte(i * k) // with bytes that end names and begin modes
		}
		tree = AppendEntry(tree, mode, fmt.Sprint("n", i), h)
	}
	for cut := range len(tree) + 1 {
		for _, name := range []string{"n0", "n1", "n2", "n3", "n5", "n7", "n", "n70", ""} {
			want, found, _ := FindEntry(tree[:cut], name, false)
			got, ok := Lookup(tree[:cut], name)
			if ok != found || found && (got.Mode != want.Mode || got.Hash != want.Hash || got.At != want.At) {
				t.Fatalf("%q in %d of %d bytes: %+v, %t, want %+v, %t", name, cut, len(tree), got, ok, want, found)
			}
		}
	}
}

// While packs are mapped each object reads the same; a page that the disk does not give ends in
// an error.
func TestReadManyReadsTheSame(t *testing.T) {
	dir := t.TempDir()
	path, blobs := onePack(t, dir, 200)
	db, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, many := range []int{1, 2} { // again, after it was ended
		end, other := db.ReadMany(), db.ReadMany()
		if err := other(); err != nil { // of several the first ends it
			t.Fatal(err)
		}
		if db.many.Load() == nil {
			t.Fatal("nothing is mapped")
		}
		for h, want := range blobs {
			if _, got, err := db.ReadUncached(h); err != nil || string(got) != string(want) {
				t.Fatalf("%d: %s: %v", many, h, err)
			}
		}
		if len(db.many.Load().mapped) != 1 {
			t.Error("the pack was not mapped")
		}
		if err := end(); err != nil || db.many.Load() != nil {
			t.Fatal(err)
		}
	}
	end := db.ReadMany()
	for h := range blobs {
		if _, _, err := db.ReadUncached(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(path+".pack", 4096); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for h, want := range blobs {
		if refused > 3 {
			break // each waits a while for the object to come back
		}
		if _, got, err := db.ReadUncached(h); err != nil {
			refused++
		} else if string(got) != string(want) {
			t.Fatalf("%s reads as %.60q", h, got)
		}
	}
	if refused == 0 {
		t.Error("all were read of a pack that is cut")
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
}

// SameEntries ends before the first entry that is not the same, on a whole entry of both trees.
func TestSameEntriesEndBeforeWhatDiffers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tree := func(names, hashes int) (tree []byte, ends []int) {
		for i := range names {
			mode := ModeFile
			if r.IntN(3) == 0 {
				mode = ModeDir
			}
			tree = AppendEntry(tree, mode, fmt.Sprintf("%02d%s", i, strings.Repeat("x", r.IntN(2))), Hash{byte(r.IntN(hashes) + 1), 0, ' ', 0})
			ends = append(ends, len(tree))
		}
		return tree, ends
	}
	for range 2000 {
		a, endsA := tree(r.IntN(5), 2)
		b, endsB := tree(r.IntN(5), 2)
		want := 0
		for i := range min(len(endsA), len(endsB)) {
			if endsA[i] != endsB[i] || !bytes.Equal(a[:endsA[i]], b[:endsB[i]]) {
				break
			}
			want = endsA[i]
		}
		if got := SameEntries(a, b); got != want {
			t.Fatalf("%q and %q are the same to byte %d, want %d", a, b, got, want)
		}
	}
	whole, _ := tree(3, 2)
	for n := range len(whole) { // cut off amidst an entry
		if got := SameEntries(whole[:n], whole); got > n {
			t.Fatalf("of %d bytes %d are the same", n, got)
		}
	}
}
