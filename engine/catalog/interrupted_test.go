package catalog_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"bagpipe/engine/catalog"
	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"

	"pgregory.net/rapid"
)

// A first scan that ends once some of its items are made is gone on with: no file becomes a second
// item, though the records above were not done.
func TestFirstScanIsGoneOnWith(t *testing.T) {
	check(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		const (
			folders = 510 // more than the records of one commit
			most    = folders * 9 / 10
		)
		for i := range folders {
			sub := w.at(fmt.Sprintf("a/b/%d", i))
			w.must(os.MkdirAll(sub, 0o755))
			w.must(os.WriteFile(sub+"/1.dat", fmt.Append(nil, i), 0o644))
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		_, err := w.e.Catalog.Scan(ctx, "c", catalog.Options{Told: func(p catalog.Progress) {
			if p.Stage != "recognise" {
				return
			}
			for seen := 0; seen < most && ctx.Err() == nil; time.Sleep(time.Millisecond) { // they are made meanwhile
				seen = 0
				for range w.e.Index.Loaded().Items() {
					seen++
				}
			}
			stop()
		}})
		if err == nil {
			t.Fatal("the scan was not interrupted")
		}
		made := 0
		for range w.e.Index.Loaded().Items() {
			made++
		}
		if row, err := w.e.Catalog.Row("c"); err != nil || row.Items != made {
			t.Errorf("%d items are counted of %d that were made: %v", row.Items, made, err)
		}
		done, err := w.e.Catalog.Scan(t.Context(), "c", catalog.Options{})
		w.must(err)
		if done.New == 0 || done.New > folders-most {
			t.Errorf("%d new items of %d after the first scan made most of them", done.New, folders)
		}
	})
}

// A catalog is not removed while it is scanned. Where its settings go all the same, as by a push, the scan ends, and makes no
// more items.
func TestRemovedDuringAScan(t *testing.T) {
	check(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		ctx := context.Background()
		w.must(os.WriteFile(w.at("a"), []byte("a"), 0o644))
		looks := 0
		_, err := w.e.Catalog.Scan(ctx, "c", catalog.Options{Told: func(catalog.Progress) {
			if looks++; looks > 1 {
				return
			}
			if err := w.e.Catalog.Remove(ctx, "c"); !fault.Is(err, fault.Busy) {
				r.Errorf("removed while it is scanned: %v", err)
			}
			_, err := w.e.Ledger.Store.Commit(ctx, func(gitstore.Reader) (*gitstore.Change, error) {
				return &gitstore.Change{Files: map[string][]byte{"catalogs/c.yaml": nil}, Author: gitstore.Signature{Name: "A", Email: "a@example.org"}, Message: "gone"}, nil
			})
			w.must(err)
		}})
		if looks == 0 || err == nil || err.Error() != "catalog c was removed while it was scanned; no more items are made for it" {
			r.Errorf("a scan of a catalog that is gone: %v", err)
		}
		for it := range w.e.Index.Loaded().Items() {
			r.Errorf("item %s was made for it", it.ID)
		}
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A scan that makes items which the one before had left counts them as new.
func TestItemsThatWereLeftAreCountedAsNew(t *testing.T) {
	check(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		w.must(os.WriteFile(w.at("a"), []byte("a"), 0o644))
		random := w.e.Ledger.Random
		w.e.Ledger.Random = readerFunc(func(b []byte) (int, error) { // its identifier is made once it was recognised
			_ = os.Remove(w.at("a"))
			return random.Read(b)
		})
		done, err := w.e.Catalog.Scan(t.Context(), "c", catalog.Options{})
		if w.must(err); done.New != 0 || done.Later != 1 {
			t.Fatalf("%d new, %d left of one that vanished", done.New, done.Later)
		}
		w.e.Ledger.Random = random
		w.must(os.WriteFile(w.at("a"), []byte("back"), 0o644))
		if done, err = w.e.Catalog.Scan(t.Context(), "c", catalog.Options{}); err != nil || done.New != 1 || done.Versions != 0 {
			t.Errorf("%d new, %d versions of one that was left: %v", done.New, done.Versions, err)
		}
	})
}
