package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/audience"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

const (
	parts     = 64
	keep      = 31 * 24 * time.Hour // entries, and the posts they are of
	mostEach  = 200                 // entries of one feed
	mostInAll = 1_000_000           // entries of all feeds
	atOnce    = 500                 // posts in one frame of a part
	cleanEach = time.Minute         // while nothing is posted
)

// version is that of the files; those of another are built anew.
const version = "3"

// Pending is a commit whose records could not be read: whether it is an activity is not known.
type Pending struct {
	Commit string    `json:"commit"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
}

// Feeds are the feeds of a workspace.
type Feeds struct {
	ledger  *ledger.Ledger
	dir     string
	workers int
	key     func() (string, error) // names a folder that no other has
	books   sync.Map               // gitstore.Hash of feeds/: *audience.Book

	mu      sync.Mutex // guards the rest
	shelf   *shelf     // nil: nothing was read, or it may not be as the files are
	turn    int        // the number of the lock, which grows
	waiting int        // posts without their feeds, as most: let no more be made
	cleaned time.Time
}

// New gives the feeds of a workspace.
func New(l *ledger.Ledger) *Feeds {
	return &Feeds{ledger: l, dir: l.Path(layout.FeedsDir), workers: runtime.GOMAXPROCS(0), key: func() (string, error) {
		key, err := l.IntentKey()
		return string(key), err
	}}
}

// Wanted reports whether the workspace has feeds: feeds/ in its history, or read before.
func (f *Feeds) Wanted() bool {
	v, err := f.ledger.Store.Tip()
	if err != nil {
		return false
	}
	h, err := v.TreeOf(audience.Dir)
	_, kept := os.Stat(f.dir)
	return err == nil && !h.IsZero() || kept == nil
}

// Cycle brings the feeds up to the tip of the history. One that is busy is left alone: it
// sees the newest commits with its next.
func (f *Feeds) Cycle(ctx context.Context) error {
	if !f.mu.TryLock() {
		return nil
	}
	defer f.mu.Unlock()
	return f.cycle(ctx)
}

func (f *Feeds) cycle(ctx context.Context) (err error) {
	v, err := f.ledger.Store.Tip()
	if err != nil {
		return err
	}
	if s := f.shelf; s != nil && s.through == v.Commit().String() && len(s.pending) == 0 && f.waiting == 0 && f.ledger.Now().Sub(f.cleaned) < cleanEach {
		return nil
	}
	return f.locked(func() error {
		if s := f.shelf; f.cleaned.IsZero() && s.through == v.Commit().String() && s.whole() {
			f.cleaned = f.ledger.Now() // by who goes on, later: a command that reads feeds has all of them
			return nil
		}
		book, err := f.bookAt(ctx, v)
		if err != nil {
			return err
		}
		if err := f.collect(ctx, v); err != nil {
			return fmt.Errorf("collect posts: %w", err)
		}
		if err := f.make(ctx, v, book); err != nil {
			return fmt.Errorf("make feeds: %w", err)
		}
		return f.clean(book.Keep)
	})
}

// locked does something under the lock of the folder, whose files were read.
func (f *Feeds) locked(do func() error) (err error) {
	if err := disk.MkdirAll(f.dir, 0o777); err != nil {
		return err
	}
	unlock, err := disk.LockDir(f.dir)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, unlock()); err != nil {
			f.shelf = nil
		}
	}()
	if err := f.load(); err != nil {
		return err
	}
	return do()
}

// load takes a turn, and reads what other processes added. The caller holds the lock.
func (f *Feeds) load() error {
	now, err := readIfThere(f.file("now"))
	if err != nil {
		return err
	}
	last, err := readIfThere(f.file("turn"))
	if err != nil {
		return err
	}
	turn, bad := strconv.Atoi(string(bytes.TrimSpace(last)))
	v, key, _ := strings.Cut(strings.TrimSpace(string(now)), " ")
	switch {
	case v != version || key == "" || filepath.Base(key) != key:
		if err := f.clear(); err != nil {
			return err
		}
	case f.shelf == nil || f.shelf.dir != f.file(key) || bad != nil || turn != f.turn: // others were here
		if f.shelf == nil || f.shelf.dir != f.file(key) {
			f.shelf = newShelf(f.file(key))
		}
		if err := f.shelf.load(); errors.Is(err, errDamaged) {
			f.warn("the feeds are built anew", "err", err)
			if err := f.clear(); err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
	}
	f.turn = max(turn, f.turn, f.shelf.turn()) + 1
	return os.WriteFile(f.file("turn"), fmt.Appendf(nil, "%d\n", f.turn), 0o666)
}

func readIfThere(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func (f *Feeds) warn(text string, args ...any) {
	if f.ledger != nil {
		f.ledger.Log.Warn(text, args...)
	}
}

func (f *Feeds) file(name string) string { return filepath.Join(f.dir, name) }

// newFolder makes a folder that does not count yet.
func (f *Feeds) newFolder() (*shelf, error) {
	key, err := f.key()
	if err != nil {
		return nil, err
	}
	return newShelf(f.file(key)), os.Mkdir(f.file(key), 0o777)
}

// count has a folder count, and removes all else. A crash in between leaves what the next
// one removes.
func (f *Feeds) count(s *shelf) error {
	if err := disk.WriteFile(f.file("now"), []byte(version+" "+filepath.Base(s.dir)+"\n"), 0o666); err != nil {
		return err
	}
	f.shelf = s
	entries, err := os.ReadDir(f.dir)
	for _, e := range entries {
		if name := e.Name(); name != "now" && name != "turn" && name != filepath.Base(s.dir) {
			err = errors.Join(err, os.RemoveAll(f.file(name)))
		}
	}
	return err
}

// clear begins with an empty folder; all is made anew.
func (f *Feeds) clear() error {
	s, err := f.newFolder()
	if err != nil {
		return err
	}
	return f.count(s)
}

// Regenerate makes all feeds anew from the history.
func (f *Feeds) Regenerate(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.locked(f.clear); err != nil {
		return err
	}
	return f.cycle(ctx)
}

// answer has the files read, and do ask them; damage that do finds has them built anew, once.
func (f *Feeds) answer(ctx context.Context, do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.locked(do)
	if !errors.Is(err, errDamaged) || f.ledger == nil {
		return err
	}
	f.warn("the feeds are built anew", "err", err)
	if err := errors.Join(f.locked(f.clear), f.cycle(ctx)); err != nil {
		return err
	}
	return f.locked(do)
}
