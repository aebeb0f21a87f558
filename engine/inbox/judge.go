package inbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
)

const growing = "is still growing"

// judge looks at one drop and puts it into one of the lists.
func (p *place) judge(ctx context.Context, name, path string) error {
	b, f := p.box, p.found
	marker := p.markers[name]
	looked := b.opt.Now()
	s, err := b.survey(ctx, path, p.set, false)
	if errors.Is(err, ErrGone) {
		return nil
	}
	f.present[path] = true
	p.left++
	d := Drop{Collection: p.collection, Batch: p.batch, Name: name, Path: path, Kind: s.Kind, Files: s.Files, Bytes: s.Bytes, Since: s.Newest, seen: seen{sig: s.Sig}}
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
	d.joins = p.mayHaveCompanions(d)
	if first && p.foundWhole(s, path) && !d.joins {
		b.noteMoved(path, looked)
	}
	d.byQuiet = p.set.Complete == ByQuiet && len(s.Lists) == 0
	if b.wasMovedIn(d) && !d.joins || marker.covers(d) || p.whole.covers(d) {
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
func (p *place) settle(ctx context.Context, d Drop, s content.Survey, reason string, quiet, still time.Duration) error {
	b, f := p.box, p.found
	if reason == "" {
		reason = p.sidecarGrows(d)
		if reason != "" {
			quiet, still = p.set.Quiet, 0
		}
	}
	if reason == "" && s.Bad == nil && !s.Empty() && !d.IsSet() {
		reason = b.lacking(ctx, d, s, p.set)
	}
	if reason == "" && p.paused == "" {
		if isBarred, err := p.bar(ctx, &d, s); isBarred || err != nil {
			return err
		}
	}
	if reason == "" && p.paused == "" {
		if w, late := p.lateFor(ctx, d, s); late {
			f.Waiting = append(f.Waiting, w)
			return nil
		}
	}
	if reason == "" && p.paused == "" { // an empty or a bad drop, too: set aside, its writer would write on in rejected/
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
	case s.Bad != nil:
		f.Bad = append(f.Bad, Rejected{Drop: d, Rule: s.Bad.Rule, Reason: s.Bad.Error()})
	case s.Empty():
		f.Bad = append(f.Bad, Rejected{Drop: d, Rule: content.RuleEmpty, Reason: "is empty"})
	default:
		f.Settled = append(f.Settled, d)
	}
	return nil
}

// whyWait says why a drop has not settled; quiet is for how long it must have been
// still by then, 0 when waiting alone does not help.
func (p *place) whyWait(d Drop, s content.Survey, still time.Duration) (reason string, quiet time.Duration) {
	switch patience := p.set.Quiet * emptyFactor; {
	case still < p.set.Quiet:
		return growing, p.set.Quiet
	case s.Temp != "":
		return fmt.Sprintf("holds an unfinished file: %s", layout.EncodePath(s.Temp)), 0
	case p.set.Complete == ByMarker && d.Marker == "" && p.whole == nil && p.batch != "":
		return "waits for its marker, " + layout.EncodePath(p.set.markersOf(d.Name)) + ", or that of batch " + string(p.batch), 0
	case p.set.Complete == ByMarker && d.Marker == "" && p.whole == nil:
		return "waits for its marker, " + layout.EncodePath(p.set.markersOf(d.Name)), 0
	case p.closed != "":
		return p.closed + "; give its folder another name", 0
	case s.Bad != nil:
		return "", 0
	case s.Empty() && still < patience:
		return "is empty so far", patience
	}
	return "", 0
}

// late adds to the reason of a drop that has been on its way for too long: since the
// oldest change of anything in it, which is what another process can see too.
func (w Waiting) late(s content.Survey, limit time.Duration, now time.Time) Waiting {
	since := now.Sub(s.Oldest)
	if s.Oldest.IsZero() || since < limit {
		return w
	}
	w.Late = true
	w.Reason += fmt.Sprintf("; on its way since %s, longer than inbox: growing: %s: has its copy stopped?", layout.FormatTime(s.Oldest), limit)
	return w
}

// clockMargin is more than what file systems round their times by.
const clockMargin = 3 * time.Second

// foundWhole proves without events that a drop was renamed into its place: it was
// not there when its folder was listed the last time, and what it consists of is
// older than that. A copy's files are new, and nobody can set back the time of a
// file's last change (ctime) or of its birth.
func (p *place) foundWhole(s content.Survey, path string) bool {
	if p.foreign || p.before.IsZero() || s.Files == 0 {
		return false
	}
	limit := p.before.Add(-clockMargin)
	if !s.Modified.Before(limit) {
		return false
	}
	if s.Kind == Folder {
		return s.Below.Before(limit)
	}
	birth, ok := birthOf(path)
	return ok && birth.Before(limit)
}

// lacking says what the lists of a drop want and the drop has not got. The answer
// is kept for as long as the drop does not change.
func (b *Box) lacking(ctx context.Context, d Drop, s content.Survey, set *settling) string {
	if s.Kind != Folder || len(set.Lists) == 0 {
		return ""
	}
	if len(s.Lists) == 0 {
		if set.Complete != ByList {
			return ""
		}
		return "waits for the list of its files, " + strings.Join(set.Lists, " or ")
	}
	b.observed.mu.Lock()
	seen := b.seen[d.Path]
	b.observed.mu.Unlock()
	if seen.looked {
		return seen.lacks
	}
	lacks := lackingOf(ctx, d.Path, s.Lists)
	b.observed.mu.Lock()
	defer b.observed.mu.Unlock()
	if now, ok := b.seen[d.Path]; ok && now.sig == d.sig && ctx.Err() == nil {
		now.lacks, now.looked = lacks, true
		b.seen[d.Path] = now
	}
	return lacks
}
