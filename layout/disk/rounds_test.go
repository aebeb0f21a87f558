package disk

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// manyIn makes a folder with more files than a round syncs one by one.
func manyIn(t *testing.T, dir string) string {
	t.Helper()
	for i := range oneByOne + 1 {
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func begin(t *testing.T, r *Rounds, dir string) *Writing {
	t.Helper()
	w, err := r.Begin(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.End(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// TestRoundBeginsAfterTheWrites: whoever comes while a round is under way is answered by
// the next one, and all who come meanwhile share it.
func TestRoundBeginsAfterTheWrites(t *testing.T) {
	dir := manyIn(t, t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		var begun, answered atomic.Int32
		goOn := make(chan struct{})
		r := &Rounds{syncFS: func(int) error { begun.Add(1); <-goOn; return nil }}
		var waiting sync.WaitGroup
		wait := func(w *Writing) {
			waiting.Go(func() {
				if err := w.Durable([]string{dir}, nil); err != nil {
					t.Error(err)
				}
				answered.Add(1)
			})
		}
		first := begin(t, r, dir)
		wait(first)
		synctest.Wait() // the first round is under way
		for range 10 {
			wait(begin(t, r, dir))
		}
		synctest.Wait()
		if n, rounds := answered.Load(), begun.Load(); n != 0 || rounds != 1 {
			t.Errorf("%d answered in %d rounds before the first ended", n, rounds)
		}
		goOn <- struct{}{}
		time.Sleep(2 * gather)
		synctest.Wait()
		if n, rounds := answered.Load(), begun.Load(); n != 1 || rounds != 2 {
			t.Errorf("after one round %d are answered, and %d rounds begun; want 1 and 2", n, rounds)
		}
		goOn <- struct{}{}
		waiting.Wait()
		if n, rounds := answered.Load(), begun.Load(); n != 11 || rounds != 2 {
			t.Errorf("%d answered in %d rounds; want 11 in 2", n, rounds)
		}
	})
}

// TestFailedRoundFailsAllWhoWrote: a failed sync of a file system does not say whose bytes
// are lost.
func TestFailedRoundFailsAllWhoWrote(t *testing.T) {
	dir := manyIn(t, t.TempDir())
	lost := errors.New("input/output error")
	fail := true
	r := &Rounds{syncFS: func(int) error {
		if fail {
			return lost
		}
		return nil
	}}
	one, other := begin(t, r, dir), begin(t, r, dir)
	if err := one.Durable([]string{dir}, nil); !errors.Is(err, lost) {
		t.Errorf("the one that waited: %v", err)
	}
	fail = false
	if err := other.Durable([]string{dir}, nil); !errors.Is(err, lost) {
		t.Errorf("the one that wrote before the failure and waited after it: %v", err)
	}
	if err := begin(t, r, dir).Durable([]string{dir}, nil); err != nil {
		t.Errorf("one that began after the failure: %v", err)
	}
}

// TestFewAreSyncedOneByOne: a lone small output does not wait for what others wrote to
// the file system; and a tree that is gone is no failure of the others.
func TestFewAreSyncedOneByOne(t *testing.T) {
	dir, whole := t.TempDir(), 0
	r := &Rounds{syncFS: func(int) error { whole++; return nil }, inMemory: func(int) bool { return false }}
	w := begin(t, r, dir)
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := w.Durable([]string{dir}, []string{filepath.Dir(dir)}); err != nil || whole != 0 {
		t.Errorf("%v, the whole file system was synced %d times", err, whole)
	}
	if err := w.Durable([]string{filepath.Join(dir, "gone")}, nil); err != nil || whole != 1 {
		t.Errorf("with a tree that is gone: %v, the whole file system was synced %d times", err, whole)
	}
}

// TestAFileThatCannotBeOpened: what one writer forbade or removed is no failure of a round.
func TestAFileThatCannotBeOpened(t *testing.T) {
	dir, whole := t.TempDir(), 0
	r := &Rounds{syncFS: func(int) error { whole++; return nil }, inMemory: func(int) bool { return false }}
	w := begin(t, r, dir)
	if err := w.Durable(nil, []string{filepath.Join(dir, "removed meanwhile")}); err != nil || whole != 1 {
		t.Errorf("%v, the whole file system was synced %d times", err, whole)
	}
}

// TestInMemoryNothingIsSyncedOneByOne: where a sync makes nothing durable, no file is opened
// for one.
func TestInMemoryNothingIsSyncedOneByOne(t *testing.T) {
	dir, whole := t.TempDir(), 0
	r := &Rounds{syncFS: func(int) error { whole++; return nil }, inMemory: func(int) bool { return true }}
	if err := begin(t, r, dir).Durable([]string{dir}, nil); err != nil || whole != 1 {
		t.Errorf("%v, the whole file system was synced %d times", err, whole)
	}
}

func TestFoldersTo(t *testing.T) {
	for _, c := range []struct {
		root, dir string
		want      []string
	}{
		{"/store/", "/store/3/f", []string{"/store/3/f", "/store/3", "/store"}},
		{"/store", "/store", []string{"/store"}},
	} {
		if got := FoldersTo(c.root, c.dir); !slices.Equal(got, c.want) {
			t.Errorf("from %s to %s: %v", c.root, c.dir, got)
		}
	}
}

// TestNobodyHoldsAFileSystemAfterwards: a store can be unmounted between deposits.
func TestNobodyHoldsAFileSystemAfterwards(t *testing.T) {
	r := &Rounds{}
	one, other := begin(t, r, t.TempDir()), begin(t, r, t.TempDir())
	for _, w := range []*Writing{one, other, one} {
		if err := w.End(); err != nil {
			t.Error(err)
		}
	}
	if len(r.fss) != 0 {
		t.Errorf("%d file systems are held open", len(r.fss))
	}
	if _, err := r.Begin(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("begin in a folder that is not there: %v", err)
	}
}
