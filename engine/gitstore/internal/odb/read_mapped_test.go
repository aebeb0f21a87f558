package odb

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// bulkAgrees reads objects as a scan does, and compares with what Read gives.
func bulkAgrees(t *testing.T, db *DB, objects []Hash) {
	t.Helper()
	b := db.Bulk()
	r := b.Reader()
	var buf []byte
	for i, h := range objects {
		kind, want, err := db.ReadUncached(h)
		if err != nil {
			t.Fatal(err)
		}
		at := Place{}
		if i%2 == 0 {
			at = b.Place(h)
		}
		if buf, err = r.Read(h, at, kind, buf); err != nil || !bytes.Equal(buf, want) {
			t.Fatalf("%s reads as %.60q, want %.60q: %v", h, buf, want, err)
		}
		if other := TypeTag; kind != other {
			if _, err := r.Read(h, at, other, nil); err == nil {
				t.Fatalf("%s, which is a %s, was read as a tag", h, kind)
			}
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	scanned(t, db, nil, objects)
	scanned(t, db, NewDigests(), objects)
}

// onePack writes a pack of n blobs, and gives what is in it.
func onePack(t *testing.T, dir string, n int) (path string, blobs map[Hash][]byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	b := NewBuilder()
	blobs = map[Hash][]byte{}
	for i := range n {
		data := append(fmt.Appendf(nil, "%d: ", i), textLike(r, 3000)...)
		blobs[b.AddBlob(data, Hash{})] = data
	}
	pack, index, name := b.Finish()
	path = filepath.Join(dir, "pack", "pack-"+name.String())
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	for ext, data := range map[string][]byte{".pack": pack, ".idx": index} {
		if err := os.WriteFile(path+ext, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return path, blobs
}

// A disk that does not give a page any more ends in an error that names the pack,
// not in the end of the program; what it still gives is read.
func TestBulkOutlivesFaults(t *testing.T) {
	dir := t.TempDir()
	path, blobs := onePack(t, dir, 200)
	db, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	b := db.Bulk()
	defer b.Close()
	r := b.Reader()
	for h, want := range blobs { // maps it
		if got, err := r.Read(h, Place{}, TypeBlob, nil); err != nil || !bytes.Equal(got, want) {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(path+".pack", 4096); err != nil { // pages behind it are gone from the mapping
		t.Fatal(err)
	}
	read, refused := 0, 0
	for h, want := range blobs {
		got, err := r.Read(h, Place{}, TypeBlob, nil)
		switch {
		case err != nil:
			refused++
		case !bytes.Equal(got, want):
			t.Fatalf("%s reads as %.60q", h, got)
		default:
			read++
		}
	}
	if read == 0 || refused == 0 {
		t.Errorf("%d were read and %d refused, want some of both", read, refused)
	}
}

// A pack that was packed again by others meanwhile is read on.
func TestBulkOutlivesItsPack(t *testing.T) {
	dir := t.TempDir()
	path, blobs := onePack(t, dir, 50)
	db, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	b := db.Bulk()
	defer b.Close()
	r := b.Reader()
	n := 0
	for h, want := range blobs {
		if n++; n == 25 {
			if err := os.Rename(path+".pack", filepath.Join(dir, "pack", "pack-other.pack")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".idx", filepath.Join(dir, "pack", "pack-other.idx")); err != nil {
				t.Fatal(err)
			}
			if err := db.Rescan(); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := r.Read(h, Place{}, TypeBlob, nil); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("after %d: %v", n, err)
		}
	}
}

// resident is how many kilobytes of the files with some path are in this process's memory by its mappings.
func resident(t *testing.T, path string) (kilobytes int) {
	t.Helper()
	said, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	in := false
	for line := range strings.Lines(string(said)) {
		fields := strings.Fields(line)
		switch {
		case !strings.HasSuffix(fields[0], ":"):
			in = strings.HasPrefix(fields[len(fields)-1], path)
		case in && fields[0] == "Rss:":
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			kilobytes += n
		}
	}
	return kilobytes
}

// Who reads very many objects gives the packs' pages back when there are many, and goes on.
func TestBulkGivesPagesBack(t *testing.T) {
	dir := t.TempDir()
	path, blobs := onePack(t, dir, 400)
	db, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	end := db.ReadMany()
	b := db.Bulk()
	for _, most := range []int64{1 << 40, 0} {
		s := b.Scan(nil)
		for h, want := range blobs {
			if got, err := s.ReadAs(h, TypeBlob); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s reads as %.60q, want %.60q: %v", h, got, want, err)
			}
		}
		if n := resident(t, path); n < 100 {
			t.Fatalf("%d kB are in memory", n)
		}
		if err := b.shed(most); err != nil {
			t.Fatal(err)
		}
		if n := resident(t, path); n == 0 && most > 0 || n > 0 && most == 0 {
			t.Errorf("%d kB are in memory, and %d bytes may be", n, most)
		}
	}
	if err := errors.Join(b.Close(), end()); err != nil {
		t.Fatal(err)
	}
}
