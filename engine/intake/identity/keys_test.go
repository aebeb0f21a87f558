package identity

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"bagpipe/layout"
)

func manyIDs(n int) []layout.ItemID {
	r := rand.New(rand.NewPCG(1, 2))
	ids := make([]layout.ItemID, n)
	for i := range ids {
		ids[i] = layout.ItemIDOf(r.Uint64() >> 8)
	}
	return ids
}

// Every key leads to its items, before and after entries are merged and written.
func TestKnownFindsAll(t *testing.T) {
	k := &Keys{}
	ids := manyIDs(3 * maxFresh)
	for i, id := range ids {
		k.Add(id, []uint64{uint64(i), 7})
		k.Add(id, []uint64{uint64(i)}) // twice is once
	}
	check := func(k *Keys) {
		t.Helper()
		for i, id := range ids {
			if got := k.candidates(uint64(i)); i != 7 && !slices.Equal(got, []layout.ItemID{id}) {
				t.Fatalf("key %d: %v, want %s", i, got, id)
			}
		}
		if n := len(k.candidates(7)); n != len(ids) {
			t.Errorf("%d items share a key, want %d", n, len(ids))
		}
		if got := k.candidates(1 << 60); len(got) != 0 {
			t.Errorf("nobody's key: %v", got)
		}
	}
	check(k)
	name := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.writeTo(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := decodeFile(name)
	if err != nil {
		t.Fatal(err)
	}
	check(&Keys{sorted: entries})
	for _, at := range []int64{0, 20, 40, 5000} { // damage anywhere is noticed
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		data[at] ^= 1
		if err := os.WriteFile(name+".x", data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := decodeFile(name + ".x"); err == nil {
			t.Errorf("a bit at %d was changed, and it was read", at)
		}
	}
	if err := os.Truncate(name, 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := decodeFile(name); err == nil {
		t.Error("a cut file was read")
	}
}

// A million items take no more than twenty bytes each.
func TestKnownIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("a million items")
	}
	ids := manyIDs(1_000_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	k := &Keys{}
	for i, id := range ids {
		k.Add(id, []uint64{digestKey(fmt.Sprintf("sha256:%016x%016x", uint64(i)*0x9e3779b97f4a7c15, i))})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / float64(len(ids))
	t.Logf("%.1f bytes an item", each)
	if each > 20 {
		t.Errorf("%.1f bytes an item, want at most 20", each)
	}
	runtime.KeepAlive(k)
	runtime.KeepAlive(ids)
}
