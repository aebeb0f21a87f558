package inbox

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"

	"github.com/rjeczalik/notify"
	"golang.org/x/sys/unix"
)

// Run calls wake whenever a Scan is worthwhile, until ctx ends: at once, at least
// every Rescan, when the first of the waiting drops can have settled (the last
// Scan tells), Quiet after an event, and at once after a drop was renamed into its
// place. wake must not block.
//
// Events are hints that a scan is due earlier than the timer has it. notify drops
// them when nobody reads and says nothing when the kernel's queue overflows;
// either costs at most one Rescan. Only inbox/ and the collections' folders are
// watched: a watch below them would follow a taken folder into its item and stay
// there for good.
//
// An inbox that takes long to scan is scanned less often than Rescan says, so
// that the idle share of a core stays under 2 %.
func (b *Box) Run(ctx context.Context, wake func()) error {
	w := &watcher{box: b}
	defer w.stop()
	w.refresh()
	due := b.opt.Now().Add(b.opt.Rescan)
	fresh := true // no Scan has planned since the last wake
	timer := time.NewTimer(b.opt.Rescan)
	defer timer.Stop()
	wake()
	for {
		var at time.Time
		now := b.opt.Now
		select {
		case <-ctx.Done():
			return nil
		case event := <-w.events:
			at = now().Add(b.quietAt(event.Path()))
			if b.noteMove(event) {
				at = now().Add(b.pace())
			}
		case d := <-b.next:
			at = now().Add(d)
			if fresh {
				due, fresh = at, false
				timer.Reset(d)
			}
		case <-timer.C:
			due, fresh = now().Add(b.opt.Rescan), true
			timer.Reset(b.opt.Rescan)
			w.refresh()
			wake()
			continue
		}
		if at.Before(due) {
			due = at
			timer.Reset(at.Sub(now()))
		}
	}
}

// quietAt is what must pass after an event at this path until a scan is due.
func (b *Box) quietAt(path string) time.Duration {
	c, _, _ := strings.Cut(strings.TrimPrefix(path, b.path(layout.InboxDir)+"/"), "/")
	return b.settlingOf(layout.Name(c)).Quiet
}

// noteMove remembers a drop that was renamed into its place: it is whole, and need
// not wait for Quiet. One whose event is lost settles like any other.
func (b *Box) noteMove(event notify.EventInfo) bool {
	raw, ok := event.Sys().(*unix.InotifyEvent)
	if !ok || raw.Mask&unix.IN_MOVED_TO == 0 {
		return false
	}
	b.noteMoved(event.Path(), b.opt.Now())
	return true
}

// pace is the pause between scans that events ask for.
func (b *Box) pace() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(busyShare*b.took, 2*time.Millisecond)
}

// eventBuffer holds what a moment's renames make. Events beyond it are lost: any
// one of them makes a scan due, and drops settle without them.
const eventBuffer = 256

// watcher keeps the watches of inbox/ and its collections. Its owner is Run.
type watcher struct {
	box    *Box
	events chan notify.EventInfo // nil: nothing is watched
	dirs   map[string]uint64     // by path: its inode
	failed bool
}

// refresh sets the watches anew if the folders are not those watched.
func (w *watcher) refresh() {
	if !w.box.opt.Watch || w.failed {
		return
	}
	dirs := w.box.watchable()
	if maps.Equal(dirs, w.dirs) {
		return
	}
	w.stop()
	w.dirs = dirs
	w.events = make(chan notify.EventInfo, eventBuffer)
	for dir := range dirs {
		// The slash keeps a folder whose name ends in three dots from being
		// taken for notify's sign of a whole tree.
		if err := w.box.watch(dir+"/", w.events, notify.Create); err != nil {
			w.failed = true
			w.box.opt.Log.Warn("the inbox is not watched but polled", "every", w.box.opt.Rescan,
				"error", fmt.Errorf("watch %s: %w", dir, err))
			w.stop()
			return
		}
	}
}

func (w *watcher) stop() {
	if w.events != nil {
		notify.Stop(w.events)
		w.events = nil
	}
}

// watchable lists inbox/ and the collections' folders that lie on local file
// systems; changes to the others by other machines make no events.
func (b *Box) watchable() map[string]uint64 {
	root := b.path(layout.InboxDir)
	dirs := map[string]uint64{}
	add := func(dir string) {
		info, err := os.Lstat(dir)
		if err == nil && info.IsDir() && !content.IsNetwork(dir) {
			dirs[dir] = info.Sys().(*syscall.Stat_t).Ino
		}
	}
	add(root)
	entries, err := os.ReadDir(root)
	if err != nil {
		return dirs
	}
	for _, e := range entries {
		if notCollection(e) != "" {
			continue
		}
		add(filepath.Join(root, e.Name()))
		if b.settlingOf(layout.Name(e.Name())).Batches {
			addBatches(filepath.Join(root, e.Name()), add)
		}
	}
	return dirs
}

// maxBatchWatches keeps a collection from using up the system's watches; what is
// dropped into further batches is found on the timer.
const maxBatchWatches = 256

func addBatches(collection string, add func(string)) {
	entries, err := os.ReadDir(collection)
	if err != nil {
		return
	}
	n := 0
	for _, e := range entries {
		if e.IsDir() && n < maxBatchWatches {
			add(filepath.Join(collection, e.Name()))
			n++
		}
	}
}
