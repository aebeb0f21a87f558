package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"bagpipe/layout/disk/faultfs"
)

// copyRoot gives a workspace of its own to each round of a sweep.
func copyRoot(t *testing.T, template string) string {
	t.Helper()
	root := fastDir(t)
	if err := os.CopyFS(root, os.DirFS(template)); err != nil {
		t.Fatal(err)
	}
	return root
}

// ledger is what the callers were answered.
type ledger struct {
	mu    sync.Mutex
	acked []Hash
	last  map[string]string // by path: the value acknowledged last
	maybe map[string]string // the value of an edit that failed: it may be there or not
}

func newLedger() *ledger { return &ledger{last: map[string]string{}, maybe: map[string]string{}} }

// put commits two files of a folder, as an item has them; path is the one, and both hold the text.
func (l *ledger) put(s *Store, path, text string) error {
	other := filepath.Dir(path) + "/m.json"
	h, err := tryPut(s, path, text, other, text)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.acked = append(l.acked, h)
	}
	for _, path := range []string{path, other} {
		if err != nil {
			l.maybe[path] = text
			continue
		}
		l.last[path] = text
		delete(l.maybe, path)
	}
	return err
}

// work is what the sweeps interrupt: single commits, a group of several, an
// item edited twice. Errors are expected once the machine has stopped.
func (l *ledger) work(s *Store) error {
	ctx := context.Background()
	errs := []error{s.Repair(ctx), l.put(s, "items/a/e.json", "1"), l.put(s, "items/a/e.json", "2")}
	var wg sync.WaitGroup
	group := make([]error, 4)
	for i := range group {
		wg.Go(func() { group[i] = l.put(s, fmt.Sprintf("items/b%d/e.json", i), "3") })
	}
	wg.Wait()
	errs = append(errs, group...)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return errors.Join(l.put(s, "items/a/e.json", "4"), s.CaughtUp(ctx))
}

// check reopens the workspace on a healthy machine and asserts the laws.
func (l *ledger) check(t *testing.T, root string) {
	t.Helper()
	s, err := Open(root, followItems(testOptions()))
	if err != nil {
		t.Fatalf("open again: %v", err)
	}
	defer s.Close()
	fsck(t, root)
	l.checkCommits(t, root)
	if err := s.Repair(context.Background()); err != nil {
		t.Fatalf("repair: %v", err)
	}
	if err := l.put(s, "items/new/e.json", "5"); err != nil {
		t.Fatalf("commit after the crash: %v", err)
	}
	caughtUp(t, s)
	l.checkFiles(t, root, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fsck(t, root)
	checkNothingLeft(t, root)
}

func (l *ledger) checkCommits(t *testing.T, root string) {
	t.Helper()
	reachable := git(t, root, "rev-list", "main")
	for _, h := range l.acked {
		if !strings.Contains(reachable, h.String()) {
			t.Errorf("acknowledged %s is not reachable", h)
		}
	}
}

// checkFiles compares the committed and the followed files with the ledger.
func (l *ledger) checkFiles(t *testing.T, root string, s *Store) {
	t.Helper()
	for path, want := range l.last {
		got := readTip(t, s, path)
		if maybe, ok := l.maybe[path]; got != want && (!ok || got != maybe) {
			t.Errorf("%s is %q, acknowledged was %q", path, got, want)
		}
	}
	for path := range l.maybe {
		l.last[path] = readTip(t, s, path)
	}
	for path := range l.last {
		if committed, shown := readTip(t, s, path), file(t, root, path); committed != shown {
			t.Errorf("%s shows %q, committed is %q", path, shown, committed)
		}
	}
}

// checkNothingLeft asserts that no lock, mark or temporary file stayed.
func checkNothingLeft(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		if err != nil || d.IsDir() && !strings.HasSuffix(name, ".tmp") {
			return err
		}
		if strings.HasSuffix(name, ".lock") && !strings.Contains(path, "/.bagpipe/") || strings.HasSuffix(name, ".keep") ||
			strings.HasSuffix(name, ".tmp") || strings.HasPrefix(name, "tmp_") || strings.Contains(name, ".edited-") {
			t.Errorf("left behind: %s", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, ext := range []string{"pack", "idx"} {
		list, err := filepath.Glob(filepath.Join(root, ".git/objects/pack/pack-*."+ext))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			for _, other := range []string{".pack", ".idx"} {
				if _, err := os.Stat(strings.TrimSuffix(p, filepath.Ext(p)) + other); err != nil {
					t.Errorf("half a pack: %s", p)
				}
			}
		}
	}
}

// fastDir is a folder in memory where there is one: what the sweeps lose they
// lose by the books of faultfs, not by the disk.
func fastDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "gitstore")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// sweepEvery is 1 in the long run; the quick one looks at every few changes.
func sweepEvery() int {
	if os.Getenv("BAGPIPE_SOAK") != "" {
		return 1
	}
	return 4
}

func TestCrashSweep(t *testing.T) {
	template := initRoot(t, testOptions(), nil)
	for _, loss := range []faultfs.Loss{faultfs.Nothing, faultfs.Unsynced, faultfs.Bytes} {
		t.Run(loss.String(), func(t *testing.T) {
			t.Parallel()
			for k, stopped := 1+int(loss), true; stopped; k += sweepEvery() {
				stopped = crashAt(t, template, k, loss)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// crashAt stops the machine at the k-th change.
func crashAt(t *testing.T, template string, k int, loss faultfs.Loss) (stopped bool) {
	root := copyRoot(t, template)
	machine := faultfs.New(k, nil)
	o := followItems(testOptions())
	o.FS = machine
	l := newLedger()
	s, err := Open(root, o)
	if err == nil {
		err = errors.Join(l.work(s), s.Close())
	}
	what, stopped := machine.Failed()
	if err != nil && !stopped {
		t.Fatalf("without a fault: %v", err)
	}
	if err := machine.Cut(loss); err != nil {
		t.Fatal(err)
	}
	if loss == faultfs.Nothing {
		fsck(t, root)
	}
	l.check(t, root)
	if t.Failed() {
		t.Logf("stopped at change %d: %s (%v)", k, what, err)
	}
	return stopped
}

func TestInitCrashSweep(t *testing.T) {
	for _, loss := range []faultfs.Loss{faultfs.Nothing, faultfs.Unsynced, faultfs.Bytes} {
		t.Run(loss.String(), func(t *testing.T) {
			t.Parallel()
			for k, stopped := 1+int(loss), true; stopped; k += sweepEvery() {
				root := fastDir(t)
				machine := faultfs.New(k, nil)
				o := testOptions()
				o.FS = machine
				files := map[string][]byte{"bagpipe.yaml": []byte("schema: 1\n")}
				err := Init(context.Background(), root, o, files, "start", someone)
				what, failed := machine.Failed()
				if stopped = failed; err != nil && !stopped {
					t.Fatal(err)
				}
				if err := machine.Cut(loss); err != nil {
					t.Fatal(err)
				}
				again := Init(context.Background(), root, testOptions(), files, "start", someone)
				if again != nil && !errors.Is(again, fs.ErrExist) {
					t.Fatalf("stopped at change %d: %s: init again: %v", k, what, again)
				}
				s := openRoot(t, root, testOptions())
				if got := readTip(t, s, "bagpipe.yaml"); got != "schema: 1\n" {
					t.Fatalf("stopped at change %d: %s: settings %q", k, what, got)
				}
				fsck(t, root)
			}
		})
	}
}

// TestDiskFullAtEachChange fails one change for want of room: the group fails
// with a clear error, nothing acknowledged is lost, and the store goes on.
func TestDiskFullAtEachChange(t *testing.T) {
	template := initRoot(t, testOptions(), nil)
	for k, reached := 1, true; reached; k += sweepEvery() {
		root := copyRoot(t, template)
		machine := faultfs.NewTransient(0, nil)
		o := followItems(testOptions())
		o.FS = machine
		l := newLedger()
		s, err := Open(root, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Repair(context.Background()); err != nil {
			t.Fatal(err)
		}
		machine.FailNext(k, syscall.ENOSPC)
		for _, text := range []string{"1", "2", "3"} {
			if err := l.put(s, "items/a/e.json", text); err != nil && !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("error %v", err)
			}
		}
		what, failed := machine.Failed()
		reached = failed
		machine.FailNext(0, nil) // there is room from now on
		if err := l.put(s, "items/a/e.json", "4"); err != nil {
			t.Fatalf("full at change %d: %s: goes on with %v", k, what, err)
		}
		caughtUp(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		l.check(t, root)
		if t.Failed() {
			t.Fatalf("full at change %d: %s", k, what)
		}
	}
}
