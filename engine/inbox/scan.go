package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/layout"
)

const (
	asidePrefix  = ".bagpipe-" // followed by the item's identifier
	setAsideName = ".rejected" // where a drop on another file system is kept
)

// findings is what a scan has gathered.
type findings struct {
	settled []Drop
	waiting []Waiting
	bad     []Rejected
	present map[string]bool // paths seen, for pruning observations
}

// Scan looks at everything in the inbox. Each list is sorted, oldest change
// first. What cannot be looked at is in err; the rest is complete nonetheless.
func (b *Box) Scan(ctx context.Context) (settled []Drop, waiting []Waiting, bad []Rejected, err error) {
	f := &findings{present: map[string]bool{}}
	begun := b.opt.Now()
	err = b.scanCollections(ctx, f)
	if ctx.Err() != nil {
		return nil, nil, nil, ctx.Err()
	}
	b.prune(f.present)
	b.announce(f.waiting, b.opt.Now().Sub(begun))
	slices.SortStableFunc(f.settled, func(x, y Drop) int { return x.Since.Compare(y.Since) })
	slices.SortStableFunc(f.waiting, func(x, y Waiting) int { return x.Since.Compare(y.Since) })
	slices.SortStableFunc(f.bad, func(x, y Rejected) int { return x.Since.Compare(y.Since) })
	if err != nil {
		err = fmt.Errorf("scan inbox: %w", err)
	}
	return f.settled, f.waiting, f.bad, err
}

func (b *Box) scanCollections(ctx context.Context, f *findings) error {
	dir := b.path(layout.InboxDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if reason := notCollection(e); reason != "" {
			f.waiting = append(f.waiting, b.stray(e, path, reason))
			continue
		}
		errs = append(errs, b.scanCollection(ctx, f, layout.Name(e.Name()), path))
	}
	return errors.Join(errs...)
}

// notCollection says why an entry of inbox/ is no collection.
func notCollection(e fs.DirEntry) string {
	if e.Type()&fs.ModeSymlink != 0 {
		return "a collection is a folder, not a link; mount the folder here instead"
	}
	if !e.IsDir() {
		return "put it into a collection's folder, as inbox/default/"
	}
	if strings.HasPrefix(e.Name(), ".") {
		return "hidden folders are no collections"
	}
	if _, err := layout.ParseName(e.Name()); err != nil {
		return "is no collection: " + err.Error()
	}
	return ""
}

func (b *Box) stray(e fs.DirEntry, path, reason string) Waiting {
	d := Drop{Name: e.Name(), Path: path, Kind: File}
	if e.IsDir() {
		d.Kind = Folder
	}
	if info, err := e.Info(); err == nil {
		d.Since = info.ModTime()
	}
	return Waiting{Drop: d, Reason: reason}
}

func (b *Box) scanCollection(ctx context.Context, f *findings, c layout.Name, dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	foreign := isNetwork(dir)
	var errs []error
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := filepath.Join(dir, e.Name())
		if reason := b.unfinished(e.Name()); reason != "" {
			if reason != ownName {
				f.waiting = append(f.waiting, b.strayIn(c, e, path, reason))
			}
			continue
		}
		errs = append(errs, b.judge(ctx, f, c, e.Name(), path, foreign))
	}
	return errors.Join(errs...)
}

func (b *Box) strayIn(c layout.Name, e fs.DirEntry, path, reason string) Waiting {
	w := b.stray(e, path, reason)
	w.Collection = c
	return w
}

const ownName = "own" // not a reason: a name this package uses, shown nowhere

// unfinished says why the name alone makes a drop wait.
func (b *Box) unfinished(name string) string {
	if name == setAsideName {
		return ownName
	}
	if id, ok := strings.CutPrefix(name, asidePrefix); ok {
		if b.inIntake(id) {
			return ownName
		}
		return "was set aside by a copy that nobody finishes; rename it to take it anew"
	}
	if b.ignore.match(name) {
		return "its name marks it as unfinished; it is taken once it is renamed"
	}
	return ""
}

func (b *Box) inIntake(id string) bool {
	if _, err := layout.ParseItemID(id); err != nil {
		return false
	}
	_, err := os.Lstat(b.path(layout.IntakeDir, id))
	return err == nil
}

// judge looks at one drop and puts it into one of the lists.
func (b *Box) judge(ctx context.Context, f *findings, c layout.Name, name, path string, foreign bool) error {
	s, err := b.look(ctx, path)
	if errors.Is(err, ErrGone) {
		return nil
	}
	f.present[path] = true
	d := Drop{Collection: c, Name: name, Path: path, Kind: s.kind, Files: s.files, Bytes: s.bytes, Since: s.newest, sig: s.sig}
	if errors.Is(err, ErrChanged) {
		now := b.opt.Now()
		d.Since = now
		f.waiting = append(f.waiting, Waiting{Drop: d, Reason: growing, Until: now.Add(b.opt.Quiet)})
		return nil
	}
	if err != nil {
		return err
	}
	still := b.stillFor(d, foreign)
	wait := func(reason string, quiet time.Duration) {
		w := Waiting{Drop: d, Reason: reason}
		if quiet > 0 {
			w.Until = b.opt.Now().Add(quiet - still)
		}
		f.waiting = append(f.waiting, w)
	}
	if b.wasMovedIn(d) {
		still = max(still, b.opt.Quiet)
	}
	switch patience := b.opt.Quiet * emptyFactor; {
	case still < b.opt.Quiet:
		wait(growing, b.opt.Quiet)
	case s.temp != "":
		wait(fmt.Sprintf("holds an unfinished file: %s", layout.EncodePath(s.temp)), 0)
	case s.bad != nil:
		f.bad = append(f.bad, Rejected{Drop: d, Rule: s.bad.Rule, Reason: s.bad.Error()})
	case s.empty() && still < patience:
		wait("is empty so far", patience)
	case s.empty():
		f.bad = append(f.bad, Rejected{Drop: d, Rule: RuleEmpty, Reason: "is empty"})
	default:
		f.settled = append(f.settled, d)
	}
	return nil
}

const growing = "is still growing"

// stillFor is how long the drop has not changed: by its own times where they can
// be trusted, by this process's watching elsewhere.
func (b *Box) stillFor(d Drop, foreign bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.opt.Now()
	s, ok := b.seen[d.Path]
	if !ok || s.sig != d.sig {
		s = sighting{sig: d.sig, since: now}
		b.seen[d.Path] = s
	}
	watched, age := now.Sub(s.since), now.Sub(d.Since)
	if foreign || age < 0 {
		return watched
	}
	return max(watched, age)
}

// wasMovedIn tells whether the drop was renamed into its place, whole, and has not
// changed since.
func (b *Box) wasMovedIn(d Drop) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, ok := b.moved[string(d.Collection)+"/"+d.Name]
	return ok && !d.Since.After(at)
}

// prune forgets observations of what is gone.
func (b *Box) prune(present map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.moved, func(name string, at time.Time) bool {
		return !present[b.path(layout.InboxDir, name)] && b.opt.Now().Sub(at) > b.opt.Quiet
	})
	for path := range b.seen {
		if !present[path] {
			delete(b.seen, path)
		}
	}
}

// Scanning takes at most one part of scanShare of the time when nothing changes,
// and of busyShare while drops grow.
const (
	scanShare = 50
	busyShare = 5
)

// announce tells Run when to scan next: when the first of the waiting can settle,
// or after Rescan, or later where this scan took long.
func (b *Box) announce(waiting []Waiting, took time.Duration) {
	now, due := b.opt.Now(), max(b.opt.Rescan, scanShare*took)
	for _, w := range waiting {
		if !w.Until.IsZero() {
			due = min(due, w.Until.Sub(now))
		}
	}
	due = max(due, busyShare*took, time.Millisecond)
	b.mu.Lock()
	b.took = took
	b.mu.Unlock()
	select {
	case <-b.next: // an older announcement nobody read
	default:
	}
	select {
	case b.next <- due:
	default: // another scan was faster; its announcement serves as well
	}
}
