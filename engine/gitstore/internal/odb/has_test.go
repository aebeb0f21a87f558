package odb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// An object is there also while its pack is packed again by others, and other readers
// look at the folder at the same time.
func TestHasBesideThosePackingAgain(t *testing.T) {
	dir := t.TempDir()
	path, blobs := onePack(t, dir, 3000) // a large index
	db, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	beside := func(do func() error) {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := do(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 3 {
		beside(func() error {
			n := 0
			for h := range blobs {
				if n++; n > 50 {
					break
				}
				if ok, err := db.Has(h); !ok || err != nil {
					return fmt.Errorf("%s: %v, %v", h, ok, err)
				}
			}
			return nil
		})
	}
	beside(func() error { db.Release(); return db.Rescan() })
	for i := range 400 {
		to := filepath.Join(filepath.Dir(path), fmt.Sprintf("pack-%040d", i))
		err := errors.Join(os.Link(path+".pack", to+".pack"), os.Link(path+".idx", to+".idx"),
			os.Remove(path+".idx"), os.Remove(path+".pack"))
		if err != nil {
			t.Fatal(err)
		}
		path = to
	}
	close(stop)
	wg.Wait()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
