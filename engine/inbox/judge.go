package inbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

const growing = "is still growing"

// judge looks at one drop and puts it into one of the lists.
func (p *place) judge(ctx context.Context, name, path string) error {
	b, f := p.box, p.found
	marker := p.markers[name]
	looked := b.opt.Now()
	s, err := b.lookFor(ctx, path, p.set)
	if errors.Is(err, ErrGone) {
		return nil
	}
	f.present[path] = true
	p.left++
	d := Drop{Collection: p.collection, Batch: p.batch, Name: name, Path: path, Kind: s.kind, Files: s.files, Bytes: s.bytes, Since: s.newest, sig: s.sig}
	d.Sidecars, d.Shared = p.sidecars[name], p.shared
	if marker != nil {
		d.Marker, d.markerSeen = marker.path, marker.seen
	}
	if errors.Is(err, ErrChanged) {
		now := b.opt.Now()
		b.observe(d, now)
		d.Since = now
		f.Waiting = append(f.Waiting, Waiting{Drop: d, Reason: growing, Until: now.Add(p.set.Quiet)})
		return nil
	}
	if err != nil {
		b.observe(d, looked)
		return err
	}
	still, first := b.stillFor(d, p.foreign)
	// The names are looked at last: an inbox may hold many files that merely wait.
	if first && p.foundWhole(s, path) && !p.mayHaveCompanions(d) {
		b.noteMoved(path, looked)
	}
	d.byQuiet = p.set.Complete == ByQuiet && len(s.lists) == 0
	if b.wasMovedIn(d) && !p.mayHaveCompanions(d) || marker.covers(d) || p.whole.covers(d) {
		still, d.byQuiet = max(still, unseenFactor*p.set.Quiet), false
	}
	reason, quiet := p.whyWait(d, s, still)
	if why, sibling := p.awaits(d); reason == "" && why != "" {
		reason, quiet, still = why, p.set.Quiet, sibling
	}
	return p.settle(ctx, d, s, reason, quiet, still)
}

// settle puts a drop into one of the lists: with a reason it waits, at least for what is
// left of quiet.
func (p *place) settle(ctx context.Context, d Drop, s survey, reason string, quiet, still time.Duration) error {
	b, f := p.box, p.found
	if reason == "" {
		reason = p.sidecarGrows(d)
		if reason != "" {
			quiet, still = p.set.Quiet, 0
		}
	}
	if reason == "" && s.bad == nil && !s.empty() && !d.IsSet() {
		reason = b.lacking(ctx, d, s, p.set)
	}
	if reason == "" && p.paused == "" {
		if isBarred, err := p.bar(ctx, &d, s); isBarred || err != nil {
			return err
		}
	}
	if reason == "" && p.paused == "" {
		if why := p.lateFor(d, s); why != "" {
			f.Waiting = append(f.Waiting, Waiting{Drop: d, Reason: why, Barred: true,
				Remedies: []fault.Remedy{{Verb: fault.AddDrop, Name: d.Path, Collection: d.Collection, Batch: d.Batch}}})
			return nil
		}
	}
	if reason == "" && p.paused == "" && s.bad == nil && !s.empty() {
		reason, quiet = p.writersOf(ctx, d, still)
	}
	switch {
	case reason != "":
		w := Waiting{Drop: d, Reason: reason}
		if quiet > 0 {
			w.Until = b.opt.Now().Add(quiet - still)
		}
		if p.closed == "" {
			w = w.late(s, p.set.Growing, b.opt.Now())
		}
		f.Waiting = append(f.Waiting, w)
	case p.paused != "":
		f.Waiting = append(f.Waiting, Waiting{Drop: d, Reason: p.paused})
	case s.bad != nil:
		f.Bad = append(f.Bad, Rejected{Drop: d, Rule: s.bad.Rule, Reason: s.bad.Error()})
	case s.empty():
		f.Bad = append(f.Bad, Rejected{Drop: d, Rule: RuleEmpty, Reason: "is empty"})
	default:
		f.Settled = append(f.Settled, d)
	}
	return nil
}

// whyWait says why a drop has not settled; quiet is for how long it must have been
// still by then, 0 when waiting alone does not help.
func (p *place) whyWait(d Drop, s survey, still time.Duration) (reason string, quiet time.Duration) {
	switch patience := p.set.Quiet * emptyFactor; {
	case still < p.set.Quiet:
		return growing, p.set.Quiet
	case s.temp != "":
		return fmt.Sprintf("holds an unfinished file: %s", layout.EncodePath(s.temp)), 0
	case p.set.Complete == ByMarker && d.Marker == "" && p.whole == nil && p.batch != "":
		return "waits for its marker, " + layout.EncodePath(p.set.markersOf(d.Name)) + ", or that of batch " + string(p.batch), 0
	case p.set.Complete == ByMarker && d.Marker == "" && p.whole == nil:
		return "waits for its marker, " + layout.EncodePath(p.set.markersOf(d.Name)), 0
	case p.closed != "":
		return p.closed + "; give its folder another name", 0
	case s.bad != nil:
		return "", 0
	case s.empty() && still < patience:
		return "is empty so far", patience
	}
	return "", 0
}

// late adds to the reason of a drop that has been on its way for too long: since the
// oldest change of anything in it, which is what another process can see too.
func (w Waiting) late(s survey, limit time.Duration, now time.Time) Waiting {
	since := now.Sub(s.oldest)
	if s.oldest.IsZero() || since < limit {
		return w
	}
	w.Late = true
	w.Reason += fmt.Sprintf("; on its way since %s, longer than inbox: growing: %s: has its copy stopped?", layout.FormatTime(s.oldest), limit)
	return w
}

// observe notes the drop as it is. first tells that it was not there when its folder
// was listed the last time.
func (b *Box) observe(d Drop, at time.Time) (s sighting, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.seen[d.Path]
	if !ok || s.sig != d.sig {
		// Times of files are a clock's tick behind: a change just after the rename
		// bears a time from before it.
		if moved, there := b.moved[d.Path]; ok && there && !moved.After(s.last) {
			delete(b.moved, d.Path)
		}
		s = sighting{sig: d.sig, since: at}
	}
	s.last = at
	b.seen[d.Path] = s
	return s, !ok
}

// stillFor is how long the drop has not changed: by its own times where they can
// be trusted, by this process's watching elsewhere.
func (b *Box) stillFor(d Drop, foreign bool) (still time.Duration, first bool) {
	now := b.opt.Now()
	s, first := b.observe(d, now)
	watched, age := now.Sub(s.since), now.Sub(d.Since)
	if foreign || age < 0 {
		return watched, first
	}
	return max(watched, age), first
}

// clockMargin is more than what file systems round their times by.
const clockMargin = 3 * time.Second

// foundWhole proves without events that a drop was renamed into its place: it was
// not there when its folder was listed the last time, and what it consists of is
// older than that. A copy's files are new, and nobody can set back the time of a
// file's last change (ctime) or of its birth.
func (p *place) foundWhole(s survey, path string) bool {
	if p.foreign || p.before.IsZero() || s.files == 0 {
		return false
	}
	limit := p.before.Add(-clockMargin)
	if !s.modified.Before(limit) {
		return false
	}
	if s.kind == Folder {
		return s.below.Before(limit)
	}
	birth, ok := birthOf(path)
	return ok && birth.Before(limit)
}

// birthOf is when a file was made, where its file system knows.
func birthOf(path string) (time.Time, bool) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}, false
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)), true
}

func (b *Box) noteMoved(path string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.moved[path] = at
}

// wasMovedIn tells whether the drop was renamed into its place, whole, and has not
// changed since.
func (b *Box) wasMovedIn(d Drop) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, ok := b.moved[d.Path]
	return ok && !d.Since.After(at)
}

// prune forgets observations of what is gone.
func (b *Box) prune(f *findings) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.moved, func(path string, at time.Time) bool {
		return !f.present[path] && b.opt.Now().Sub(at) > clockMargin
	})
	maps.DeleteFunc(b.seen, func(path string, _ sighting) bool { return !f.present[path] })
	b.listed = f.listed
}
