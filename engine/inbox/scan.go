package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
)

// Found is what lies in the inbox. Each list is sorted, oldest change first.
type Found struct {
	Settled []Drop
	Waiting []Waiting
	Bad     []Rejected
	Batches []BatchFolder
	Paused  []string // why nothing is taken, from the inbox or from a collection
}

// findings is what a scan has gathered.
type findings struct {
	Found
	present map[string]bool      // paths seen, for pruning observations
	paused  string               // why nothing at all is taken
	listed  map[string]time.Time // folders of drops, and when they were listed
}

// Scan looks at everything in the inbox. What cannot be looked at is in err; the
// rest is complete nonetheless.
func (b *Box) Scan(ctx context.Context) (Found, error) {
	f := &findings{present: map[string]bool{}, listed: map[string]time.Time{}}
	begun := b.opt.Now()
	err := b.scanCollections(ctx, f)
	if ctx.Err() != nil {
		return Found{}, ctx.Err()
	}
	b.prune(f)
	err = errors.Join(err, b.sweepTakings())
	b.announce(f.Waiting, b.opt.Now().Sub(begun))
	slices.SortStableFunc(f.Settled, func(x, y Drop) int { return x.Since.Compare(y.Since) })
	slices.SortStableFunc(f.Waiting, func(x, y Waiting) int { return x.Since.Compare(y.Since) })
	slices.SortStableFunc(f.Bad, func(x, y Rejected) int { return x.Since.Compare(y.Since) })
	if err != nil {
		err = fmt.Errorf("scan inbox: %w", err)
	}
	return f.Found, err
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
	if f.paused = pausedIn(dir, layout.InboxDir); f.paused != "" {
		f.Paused = append(f.Paused, f.paused)
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.Name() == pauseName {
			continue
		}
		if reason := notCollection(e); reason != "" {
			w := b.stray(e, path, reason)
			w.Barred = e.IsDir() && !strings.HasPrefix(e.Name(), ".")
			f.Waiting = append(f.Waiting, w)
			continue
		}
		if b.unlisted(layout.Name(e.Name())) {
			w := b.stray(e, path, "is no collection, as it was not added; put it into inbox/default/ to have it taken in as one item")
			w.Barred, w.Remedies = true, []fault.Remedy{{Verb: fault.AddCollection, Name: e.Name()}}
			f.Waiting = append(f.Waiting, w)
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
		return "is no collection: " + err.Error() + "; put it into inbox/default/ to have it taken in as one item"
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
	p, err := b.openPlace(f, c, dir)
	if err != nil {
		return err
	}
	if p.paused = f.paused; p.paused == "" {
		if p.paused = pausedIn(dir, layout.InboxDir+"/"+string(c)); p.paused != "" {
			f.Paused = append(f.Paused, p.paused)
		}
	}
	if p.set.Batches {
		return p.scanBatches(ctx)
	}
	return p.scan(ctx)
}

func (p *place) scan(ctx context.Context) (err error) {
	if p.held, err = p.heldNames(); err != nil {
		return err
	}
	p.joinSets(ctx)
	var errs []error
	for _, e := range p.entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := filepath.Join(p.dir, e.Name())
		if p.box.isRules(e) {
			continue
		}
		if reason := p.unfinished(e.Name()); reason != "" {
			if reason != ownName {
				p.wait(e, path, reason)
			} else if strings.HasPrefix(e.Name(), asidePrefix) && e.Name() != setsName {
				p.left++ // is being copied
			}
			continue
		}
		if p.held[e.Name()] {
			continue
		}
		if s := p.sets[e.Name()]; s != nil && s.Lacks == "" {
			if e.Name() == s.Files[0] {
				errs = append(errs, p.judgeSet(ctx, s))
			}
			continue
		}
		isMarker, reason := p.isMarker(e)
		late := ""
		if about, yes := p.isSidecar(e); yes {
			if isMarker = true; about != "" && !p.names[about] {
				reason = "is about " + layout.EncodePath(about) + ", which is not here"
				if content.Exists(p.box.path(layout.RejectedDir, string(p.collection), about)) {
					reason = "is about " + layout.EncodePath(about) + ", which was rejected; it is read once that is put back"
					p.left-- // it keeps no batch open
				} else if late = p.lateSidecar(e, about); late != "" {
					reason = late
				}
			}
		}
		if reason != "" {
			p.wait(e, path, reason)
			p.found.Waiting[len(p.found.Waiting)-1].Barred = late != ""
		}
		if !isMarker {
			errs = append(errs, p.judge(ctx, e.Name(), path))
		}
	}
	return errors.Join(errs...)
}

// isRules tells whether an entry is a file of rules for the folder it lies in.
func (b *Box) isRules(e fs.DirEntry) bool {
	return b.opt.Rules != "" && e.Name() == b.opt.Rules && !e.IsDir()
}

func (p *place) wait(e fs.DirEntry, path, reason string) {
	w := p.box.stray(e, path, reason)
	w.Collection, w.Batch = p.collection, p.batch
	if !strings.HasPrefix(e.Name(), ".") {
		p.left++
	}
	p.found.Waiting = append(p.found.Waiting, w)
}

const ownName = "own" // not a reason: a name this package uses, shown nowhere

// unfinished says why the name alone makes a drop wait.
func (p *place) unfinished(name string) string {
	if name == setAsideName || name == pauseName || name == setsName || strings.HasPrefix(name, layout.UploadPrefix) {
		return ownName
	}
	if id, ok := strings.CutPrefix(name, asidePrefix); ok {
		if p.box.inIntake(id) {
			return ownName
		}
		return "was set aside by a copy that nobody finishes; rename it to take it anew"
	}
	if p.set.ignore.Match(name) {
		return "its name marks it as unfinished; it is taken once it is renamed"
	}
	return ""
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
