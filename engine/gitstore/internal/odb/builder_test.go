package odb

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// record is a text of one key a line, of which one version differs from another in a few lines.
func record(item, version int) []byte {
	var b bytes.Buffer
	for line := range 120 {
		at := 0
		if line == version%120 {
			at = version
		}
		fmt.Fprintf(&b, "  \"key-%d-%d\": \"value %d\",\n", item, line, at)
	}
	return b.Bytes()
}

// A blob whose version before stands in the same pack becomes a difference from it, and is read as it was by the DB and by
// Git; so is one whose version before lies in the share of another goroutine, and one at the end of a long chain.
func TestABlobIsADifferenceFromTheVersionBefore(t *testing.T) {
	const items = 3 * minShare
	fresh, large := NewBuilder(), 0
	want, last := map[Hash][]byte{}, make([]Hash, items)
	for version := range 3 {
		for item := range items {
			data := record(item, version)
			large += alone(data)
			last[item] = fresh.AddBlob(data, last[item])
			want[last[item]] = data
		}
	}
	for version := range 2 * maxChain {
		data := record(0, 3+version)
		large += alone(data)
		last[0] = fresh.AddBlob(data, last[0])
		want[last[0]] = data
	}
	last[1] = fresh.AddBlob([]byte("quite another text"), last[1]) // no difference is shorter
	want[last[1]] = []byte("quite another text")
	pack, index, name := fresh.Finish()
	if len(pack) > large*2/3 {
		t.Errorf("with differences the pack has %d bytes, without %d", len(pack), large)
	}
	readBack(t, pack, index, name, want)
}

// readBack has Git and a DB read the blobs of a pack.
func readBack(t *testing.T, pack, index []byte, name Hash, want map[Hash][]byte) {
	t.Helper()
	dir := t.TempDir()
	packs := filepath.Join(dir, "objects", "pack")
	if err := os.MkdirAll(packs, 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(packs, "pack-"+name.String())
	for ext, data := range map[string][]byte{".pack": pack, ".idx": index} {
		if err := os.WriteFile(path+ext, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "verify-pack", path+".idx").CombinedOutput(); err != nil {
		t.Errorf("git verify-pack: %v: %s", err, out)
	}
	db, err := Open(filepath.Join(dir, "objects"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for h, data := range want {
		if typ, got, err := db.ReadUncached(h); err != nil || typ != TypeBlob || !bytes.Equal(got, data) {
			t.Fatalf("%s: %s, %d bytes of %d, %v", h, typ, len(got), len(data), err)
		}
	}
}

// alone is how many bytes of a pack a blob takes that is no difference.
func alone(data []byte) int {
	b := NewBuilder()
	b.AddBlob(data, Hash{})
	pack, _, _ := b.Finish()
	return len(pack) - 32
}

// New records that are as long as another differ from it in what is their own, and are kept as that.
func TestRecordsBegunAlikeAreDifferences(t *testing.T) {
	b, large, want := NewBuilder(), 0, map[Hash][]byte{}
	for item := range 4 * minShare {
		data := record(0, 0)
		for i, own := range []int{100, 900, 2000} {
			copy(data[own:], fmt.Sprintf("%x", sha256.Sum256([]byte{byte(item), byte(i)})))
		}
		large += alone(data)
		want[b.AddBlob(data, Hash{})] = data
	}
	pack, index, name := b.Finish()
	if len(pack) > large*2/3 {
		t.Errorf("as differences the records take %d bytes, %d alone", len(pack), large)
	}
	readBack(t, pack, index, name, want)
}

// Blobs of which every second follows the one before in the pack, as a step's end and the next one's claim do.
func BenchmarkPackOfRecords(b *testing.B) {
	var records [100][2][]byte
	for item := range records {
		records[item] = [2][]byte{record(item, 1), record(item, 2)}
	}
	for name, follows := range map[string]bool{"each alone": false, "every second follows": true} {
		b.Run(name, func(b *testing.B) {
			builder := NewBuilder()
			for range b.N {
				builder.Reset()
				for _, r := range records {
					old := builder.AddBlob(r[0], Hash{})
					if !follows {
						old = Hash{}
					}
					builder.AddBlob(r[1], old)
				}
				builder.Finish()
			}
		})
	}
}
