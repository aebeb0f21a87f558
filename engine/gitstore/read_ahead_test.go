package gitstore

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// TestReadAheadChangesNothing: a large group is read ahead, by hints that are right,
// stale, or name nothing, and is what it would be without.
func TestReadAheadChangesNothing(t *testing.T) {
	const items = 2 * aheadFrom
	path := func(i int) string { return fmt.Sprintf("items/%d/%d", i%16, i) }
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	files := map[string][]byte{}
	for i := range items {
		files[path(i)+"/e.json"] = fmt.Appendf(nil, "0 of %d\n", i)
		files[path(i)+"/kept.json"] = fmt.Appendf(nil, "kept of %d\n", i)
	}
	if _, err := s.Commit(context.Background(), func(Reader) (*Change, error) {
		return &Change{Files: files, Message: "populate"}, nil
	}); err != nil {
		t.Fatal(err)
	}
	for round := 1; round <= 3; round++ {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openRoot(t, root, testOptions()) // nothing in memory
		running, hold := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { // while it is applied, the others gather
			_, err := s.Commit(context.Background(), func(Reader) (*Change, error) {
				close(running)
				<-hold
				return nil, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		<-running
		for i := range items {
			hint := path(i)
			switch i % 5 {
			case 1:
				hint = "items/99/nothing"
			case 2:
				hint = path(i) + "/e.json"
			}
			wg.Go(func() {
				_, err := s.CommitTo(context.Background(), hint, func(r Reader) (*Change, error) {
					data, err := r.ReadFile(path(i) + "/e.json")
					if want := fmt.Sprintf("%d of %d\n", round-1, i); err != nil || string(data) != want {
						return nil, fmt.Errorf("item %d was %q, %v", i, data, err)
					}
					return &Change{Files: map[string][]byte{path(i) + "/e.json": fmt.Appendf(nil, "%d of %d\n", round, i)}, Message: "again"}, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		for len(s.owner.gather.requests) < items {
			runtime.Gosched()
		}
		close(hold)
		wg.Wait()
		if s.owner.ahead.root.IsZero() {
			t.Fatal("nothing was read ahead")
		}
	}
	for i := range items {
		if got := readTip(t, s, path(i)+"/e.json") + readTip(t, s, path(i)+"/kept.json"); got != fmt.Sprintf("3 of %d\nkept of %d\n", i, i) {
			t.Errorf("item %d: %q", i, got)
		}
	}
	fsck(t, root)
}
