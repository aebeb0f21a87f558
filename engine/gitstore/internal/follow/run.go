package follow

import (
	"errors"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/trees"
)

const (
	retryPause = time.Second // after the disk took nothing

	// lag is how long files are left to change again before they are written: a step
	// takes two transitions, and an item often several steps in a row, while writing a
	// file costs more than committing it.
	lag = time.Second
)

// errStopped ends workOut when the store closes.
var errStopped = errors.New("the store is closing")

// Run writes until Finish; then it writes the rest and marks the end.
func (f *Follower) Run() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.lost.yes && !f.done:
			f.workOut()
		case len(f.backlog.queue) > 0 && f.backlog.batch == 0:
			f.linger()
		case len(f.backlog.queue) > 0:
			f.step()
		case f.done:
			f.end()
			return
		default:
			if !f.half {
				f.mark.reached(f.tip)
			}
			f.changed.Wait()
		}
	}
}

// linger lets files change again, and then takes all that are queued as the next batch.
func (f *Follower) linger() {
	if !f.pressed() {
		f.mu.Unlock()
		timer := time.NewTimer(lag)
		select {
		case <-timer.C:
		case <-f.hurry:
		case <-f.o.Stop:
		}
		timer.Stop()
		f.mu.Lock()
	}
	f.backlog.batch = len(f.backlog.queue)
}

// step writes the oldest pending files without the lock, several folders side by side.
func (f *Follower) step() {
	folders := f.backlog.takeFolders()
	first := folders[0].files[0]
	f.busy = first
	f.mark.reached(first.from)
	f.mu.Unlock()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(folders), mostWriters, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(folders); i = next.Add(1) - 1 {
				f.files.writeAll(&folders[i])
			}
		})
	}
	wg.Wait()
	f.mu.Lock()
	f.busy = nil
	failed, again := false, false
	for _, d := range slices.Backward(folders) { // so that those put back are in order
		for i, p := range slices.Backward(d.files) {
			failed = failed || d.errs[i] != nil
			again = f.wrote(d.paths[i], p, d.errs[i]) || again
		}
	}
	if !failed {
		f.room.err = nil
	}
	f.changed.Broadcast()
	if again {
		f.pause()
	}
}

// wrote notes the end of one write. A file that found no room is tried again, after a pause;
// any other failure (a folder in the way) concerns this file alone, and is tried again at the
// next start. So is every failure after Finish.
func (f *Follower) wrote(path string, p *pending, err error) (again bool) {
	if err == nil {
		return false
	}
	full := isFull(err)
	if f.room.err == nil || !full { // of a full disk it is said once
		f.o.Repo.Log.Error("write followed file", "path", path, "error", err)
	}
	if full {
		f.room.err = err
	}
	if !full || f.done {
		f.mark.broken = true
		return false
	}
	if !f.lost.yes {
		f.backlog.putBack(path, p)
	}
	return true
}

func isFull(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO},
		func(full error) bool { return errors.Is(err, full) })
}

// pause waits without the lock; the end of the store ends it early.
func (f *Follower) pause() {
	f.room.refused++
	f.changed.Broadcast()
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-time.After(retryPause):
	case <-f.o.Stop:
	}
}

// workOut writes the files that may not be as committed since lost.from. Files that are
// committed meanwhile are queued behind them.
func (f *Follower) workOut() {
	from, to := f.lost.from, f.tip
	f.lose(to)
	f.lost.yes, f.lost.working = false, true
	f.mu.Unlock()
	err := trees.DiffCommits(f.o.Repo.DB, from, to, func(path string, blob odb.Hash) error {
		if !f.o.Wants(path) {
			return nil
		}
		return f.writeAgain(path, blob)
	})
	if err == nil && from.IsZero() { // no mark says what was written before
		err = f.o.Gone(to, func(path string) error { return f.writeAgain(path, odb.Hash{}) })
	}
	f.mu.Lock()
	f.lost.working = false
	switch {
	case err == nil:
		f.room.err = nil
		f.mark.ready = true
	case isFull(err):
		f.room.err = err
		f.lose(from)
		f.pause()
	default: // after a stop, the next start goes on from the old mark
		f.mark.broken = true
		if !errors.Is(err, errStopped) {
			f.o.Repo.Log.Error("bring followed files in line", "from", from.String(), "to", to.String(), "error", err)
		}
	}
	f.changed.Broadcast()
}

// writeAgain writes one file of workOut that is not as committed; only a full disk and the
// end of the store end workOut.
func (f *Follower) writeAgain(path string, blob odb.Hash) error {
	select {
	case <-f.o.Stop:
		return errStopped
	default:
	}
	err := f.files.bringInLine(path, blob)
	if err == nil || isFull(err) {
		return err
	}
	f.o.Repo.Log.Error("write followed file", "path", path, "error", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark.broken = true
	return nil
}

// end marks the files that were written, and lets another process follow. When the process
// that followed has ended before it saw this one's commits, their files are written here.
func (f *Follower) end() {
	if !f.turn.held && len(f.turn.missed) > 0 {
		f.writeMissed()
	}
	f.mark.atEnd(f.tip, f.turn.held && !f.lost.yes)
	f.unlock()
	if f.turn.held {
		f.writeLate()
	}
}

func (f *Follower) unlock() {
	if err := f.turn.lock.Unlock(); err != nil {
		f.o.Repo.Log.Warn("unlock", "file", f.turn.lock.Path(), "error", err)
	}
}

// writeLate writes what another process committed after this one looked last: that one may have
// ended while this one still followed, and left it to it.
func (f *Follower) writeLate() {
	tip, err := f.o.Tip()
	if err != nil || tip == f.tip {
		return
	}
	if ok, err := f.turn.lock.TryLock(); err != nil || !ok {
		return // another process follows, and goes on from the mark
	}
	defer f.unlock()
	err = trees.DiffCommits(f.o.Repo.DB, f.tip, tip, func(path string, blob odb.Hash) error {
		if !f.o.Wants(path) {
			return nil
		}
		return f.files.bringInLine(path, blob)
	})
	if err != nil {
		f.o.Repo.Log.Warn("write followed files at the end; the next start will", "error", err)
	}
	f.mark.atEnd(tip, err == nil && !f.lost.yes)
}

func (f *Follower) writeMissed() {
	if ok, err := f.turn.lock.TryLock(); err != nil || !ok {
		return // the other process lives, and looks at the branch
	}
	if err := f.writeAtTip(slices.Sorted(maps.Keys(f.turn.missed))); err != nil {
		f.o.Repo.Log.Warn("write followed files at the end; Repair will", "error", err)
	}
}

func (f *Follower) writeAtTip(paths []string) error {
	tip, err := f.o.Tip()
	if err != nil {
		return err
	}
	c, err := f.o.Repo.DB.ReadCommit(tip)
	if err != nil {
		return err
	}
	for _, path := range paths {
		data, err := trees.ReadFile(f.o.Repo.DB, c.Tree, path)
		deleted := errors.Is(err, fs.ErrNotExist)
		if err == nil || deleted {
			err = f.files.write(path, &pending{data: data, deleted: deleted})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
