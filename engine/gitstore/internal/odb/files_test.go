package odb

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Where few files may be open at once, packs with large indexes are read all the same.
func TestManyLargeIndexesWithFewOpenFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "pack"), 0o777); err != nil {
		t.Fatal(err)
	}
	var names []Hash
	for k := range 150 {
		b := NewBuilder()
		for i := range 1200 {
			h := b.AddBlob(fmt.Appendf(nil, "%d-%d", k, i), Hash{})
			if i%100 == 0 {
				names = append(names, h)
			}
		}
		pack, index, name := b.Finish()
		path := filepath.Join(dir, "pack", "pack-"+name.String())
		for ext, data := range map[string][]byte{".pack": pack, ".idx": index} {
			if err := os.WriteFile(path+ext, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = 128
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}()
	db, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range names {
				if _, _, err := db.ReadUncached(names[(i+g*97)%len(names)]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
