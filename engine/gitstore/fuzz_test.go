package gitstore

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/worktree"
)

// fuzzEdits reads edits out of arbitrary bytes: paths of a small alphabet, so
// that names are prefixes of each other, and folders come and go.
func fuzzEdits(data []byte) []map[string][]byte {
	const names = "aab.-09~\xc3_"
	var edits []map[string][]byte
	take := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	for len(data) > 0 && len(edits) < 200 {
		edit := map[string][]byte{}
		for range 1 + take()%3 {
			path := "items"
			for range 1 + take()%4 {
				n := take()
				path += "/" + names[n%len(names):n%len(names)+1]
				if n > 128 {
					path += names[n%7 : n%7+1]
				}
			}
			switch n := take(); {
			case n < 40:
				edit[path] = nil
			case n < 60:
				edit[path] = bytes.Repeat([]byte{byte(n)}, 60_000+n*300)
			default:
				edit[path] = []byte(fmt.Sprint(n, len(data)))
			}
		}
		edits = append(edits, edit)
	}
	return edits
}

// FuzzPackWriter asserts that git index-pack --strict takes what the writer
// wrote, and makes the very same index of it.
func FuzzPackWriter(f *testing.F) {
	f.Add([]byte("a"))
	f.Add([]byte("\x00\x03\x05\x09\x01\xff\x02\x03\x01\x05\x00\x03\x05\x09\x01\x00"))
	seed := make([]byte, 4000)
	for i := range seed {
		seed[i] = byte(i * i * 31 >> 3)
	}
	f.Add(seed)
	bare := f.TempDir()
	git(f, bare, "init", "-q", "--bare", ".")
	f.Fuzz(func(t *testing.T, data []byte) {
		db, err := odb.Open(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := worktree.New(db, Hash{})
		if err != nil {
			t.Fatal(err)
		}
		b := odb.NewBuilder()
		w.BeginGroup()
		who := odb.Person{Name: "a", Email: "b", When: time.Unix(1_800_000_000, 0)}
		var parents []Hash
		for _, edit := range fuzzEdits(data) {
			if _, clean, err := w.Edit(b, edit); err != nil {
				if !clean {
					t.Fatal(err)
				}
				continue
			}
			commit := odb.AppendCommit(nil, w.RootHash(b), parents, who, who, "edit\n")
			parents = []Hash{b.AddCommit(commit)}
		}
		if b.Len() == 0 {
			return
		}
		pack, index, _ := b.Finish()
		checkPack(t, bare, pack, index)
	})
}

func checkPack(t *testing.T, bare string, pack, index []byte) {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "x.pack")
	if err := os.WriteFile(name, pack, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := tryGit(bare, "index-pack", "--strict", "-o", filepath.Join(dir, "x.idx"), name); err != nil {
		t.Fatalf("git index-pack --strict: %v\n%s", err, out)
	}
	want, err := os.ReadFile(filepath.Join(dir, "x.idx"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(index, want) {
		t.Error("git's index of the pack is another")
	}
	if !odb.Whole(pack, index) {
		t.Error("the pack is not whole by our own check")
	}
}
