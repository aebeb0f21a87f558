package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// The rules of sync rounds are:
//
// Whoever writes calls Begin before the first write, and Durable when the bytes and names
// written so far are to survive a power cut. A Durable that arrives while a round of its
// file system is under way waits for the next round: a round makes durable what was
// written before it began, and nothing else. A round of few files syncs them one by one; a
// round of many syncs the whole file system once.
//
// The kernel reports a failed write of a file system once to each open descriptor
// (Linux 5.8 and later, see syncfs(2)). The descriptor is therefore opened by the first
// Begin, and a failure is answered to every Writing begun before it, not only to those
// that waited: their bytes may be the ones that are lost.
//
// A file system in memory keeps nothing that a sync could make durable: its rounds ask the
// kernel once, gather nobody and list no tree.

// oneByOne is how many files and folders a round syncs each by itself. Above it one
// syncfs takes less time, measured on ext4 with files of some kilobytes.
const oneByOne = 24

// A round waits for gather while more than fewWriters write: on ext4 a sync of the file
// system takes some milliseconds of processor time, for one writer or for a hundred.
const (
	fewWriters = 4
	gather     = 3 * time.Millisecond
)

// Rounds makes what many writers wrote durable together. The zero value is ready. A
// process has one, so that all its writers share the rounds.
type Rounds struct {
	mu  sync.Mutex // guards fss
	fss map[uint64]*roundsFS

	// Test doubles; nil means the operating system.
	syncFS   func(fd int) error
	inMemory func(fd int) bool
}

// roundsFS is one file system that somebody writes to.
type roundsFS struct {
	dir    *os.File // opened before the writes of every Writing
	memory bool     // it keeps its files in memory alone

	turn chan struct{} // of one place, taken for a round

	mu      sync.Mutex // guards the rest
	writers int
	next    *round // takes those who wait; nil when nobody does
	failure error  // of the last round that failed
	failed  int    // rounds that failed so far
}

// round is one sync for all who wait.
type round struct {
	trees, folders []string
	ended          chan struct{}
}

// Writing is one writer's stay on a file system.
type Writing struct {
	rounds *Rounds
	dev    uint64
	fs     *roundsFS
	failed int // rounds that had failed when it began
}

// Begin says that its caller is about to write to the file system of dir, which is a
// folder. The caller calls End when it writes no more.
func (r *Rounds) Begin(dir string) (*Writing, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return nil, fmt.Errorf("begin to write in %s: %w", dir, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.fss[st.Dev]
	if f == nil {
		d, err := Open(dir)
		if err != nil {
			return nil, fmt.Errorf("begin to write: %w", err)
		}
		f = &roundsFS{dir: d, memory: r.memory(int(d.Fd())), turn: make(chan struct{}, 1)}
		if r.fss == nil {
			r.fss = map[uint64]*roundsFS{}
		}
		r.fss[st.Dev] = f
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writers++
	return &Writing{rounds: r, dev: st.Dev, fs: f, failed: f.failed}, nil
}

// End gives the file system up; one that nobody writes to can be unmounted. It may be
// called twice, and of nil.
func (w *Writing) End() error {
	if w == nil || w.fs == nil {
		return nil
	}
	w.rounds.mu.Lock()
	defer w.rounds.mu.Unlock()
	f := w.fs
	w.fs = nil
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writers--; f.writers > 0 {
		return nil
	}
	delete(w.rounds.fss, w.dev)
	return f.dir.Close()
}

// Durable returns when the trees (regular files and folders, with all below them) and the
// names in the folders are durable as they were when it was called. All are on the file
// system of the Writing. The name of a link is durable with its folder's.
func (w *Writing) Durable(trees, folders []string) error {
	f := w.fs
	f.mu.Lock()
	mine := f.next
	lead := mine == nil
	if lead {
		mine = &round{ended: make(chan struct{})}
		f.next = mine
	}
	mine.trees = append(mine.trees, trees...)
	mine.folders = append(mine.folders, folders...)
	f.mu.Unlock()
	if lead {
		f.hold(mine, w.rounds.sync())
	}
	<-mine.ended
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed > w.failed {
		return f.failure
	}
	return nil
}

// hold waits for the round under way, then holds r for all who joined it by then.
func (f *roundsFS) hold(r *round, syncFS func(int) error) {
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	if f.busy() {
		time.Sleep(gather)
	}
	f.mu.Lock()
	f.next = nil // from here on the next round begins to fill
	f.mu.Unlock()
	err := f.sync(r, syncFS)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.failed++
		f.failure = err
	}
	close(r.ended)
}

// busy reports whether so many write that a round had better wait for them.
func (f *roundsFS) busy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writers > fewWriters && !f.memory
}

// sync makes what r names durable, one by one while it is little. Where a file cannot be
// opened, because its writer removed it or forbade it, the file system is synced, which
// opens none: one writer's file is no fault of the others in the round.
func (f *roundsFS) sync(r *round, syncFS func(int) error) error {
	each, ok := map[string]bool(nil), false
	if !f.memory {
		each, ok = r.few()
	}
	if ok {
		var group errgroup.Group
		group.SetLimit(8)
		for path := range each {
			group.Go(func() error { return SyncDir(path) })
		}
		err := group.Wait()
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	if err := syncFS(int(f.dir.Fd())); err != nil {
		return fmt.Errorf("sync the file system of %s: %w", f.dir.Name(), err)
	}
	return nil
}

// few lists the files and folders that r makes durable. It answers false when they are
// more than oneByOne, or when a tree cannot be listed.
func (r *round) few() (each map[string]bool, ok bool) {
	each = map[string]bool{}
	for _, folder := range r.folders {
		each[folder] = true
	}
	for _, tree := range r.trees {
		err := filepath.WalkDir(tree, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() || d.Type().IsRegular() {
				each[p] = true
			}
			if len(each) > oneByOne {
				return errMany
			}
			return nil
		})
		if err != nil {
			return nil, false
		}
	}
	return each, len(each) <= oneByOne
}

var errMany = errors.New("more files than are synced one by one")

func (r *Rounds) sync() func(int) error {
	if r.syncFS != nil {
		return r.syncFS
	}
	return unix.Syncfs
}

func (r *Rounds) memory(fd int) bool {
	if r.inMemory != nil {
		return r.inMemory(fd)
	}
	var s unix.Statfs_t
	return unix.Fstatfs(fd, &s) == nil && (s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC)
}
