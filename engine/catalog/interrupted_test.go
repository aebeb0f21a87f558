package catalog_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"bagpipe/engine/catalog"

	"pgregory.net/rapid"
)

// A first scan that ends once some of its items are made is gone on with: no file becomes a second
// item, though the records above were not done.
func TestFirstScanIsGoneOnWith(t *testing.T) {
	check(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r, t.TempDir())
		defer w.e.Close()
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
		done, err := w.e.Catalog.Scan(t.Context(), "c", catalog.Options{})
		w.must(err)
		if done.New == 0 || done.New > folders-most {
			t.Errorf("%d new items of %d after the first scan made most of them", done.New, folders)
		}
	})
}
