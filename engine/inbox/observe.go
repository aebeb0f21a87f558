package inbox

import (
	"maps"
	"sync"
	"time"

	"bagpipe/engine/inbox/internal/content"
)

// observed is what this process has seen of drops that it did not take yet.
type observed struct {
	now    func() time.Time
	mu     sync.Mutex           // guards the rest
	seen   map[string]sighting  // by path
	moved  map[string]time.Time // when a drop was renamed into its place, by path
	listed map[string]time.Time // when a folder of drops was last listed, by path
}

// sighting is a signature and since when this process has seen it unchanged.
type sighting struct {
	sig    content.Signature
	since  time.Time
	last   time.Time // when it was seen last
	lacks  string    // of its lists, when they were read
	looked bool      // they were
	asked  time.Time // when nobody was found to hold it open for writing
}

// observe notes the drop as it is. first tells that it was not there when its folder
// was listed the last time.
func (o *observed) observe(d Drop, at time.Time) (s sighting, first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok := o.seen[d.Path]
	if !ok || s.sig != d.sig {
		// Times of files are a clock's tick behind: a change just after the rename
		// bears a time from before it.
		if moved, there := o.moved[d.Path]; ok && there && !moved.After(s.last) {
			delete(o.moved, d.Path)
		}
		s = sighting{sig: d.sig, since: at}
	}
	s.last = at
	o.seen[d.Path] = s
	return s, !ok
}

// stillFor is how long the drop has not changed: by its own times where they can
// be trusted, by this process's watching elsewhere.
func (o *observed) stillFor(d Drop, foreign bool) (still time.Duration, first bool) {
	now := o.now()
	s, first := o.observe(d, now)
	watched, age := now.Sub(s.since), now.Sub(d.Since)
	if foreign || age < 0 {
		return watched, first
	}
	return max(watched, age), first
}

func (o *observed) noteMoved(path string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.moved[path] = at
}

// wasMovedIn tells whether the drop was renamed into its place, whole, and has not
// changed since.
func (o *observed) wasMovedIn(d Drop) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ok := o.moved[d.Path]
	return ok && !d.Since.After(at)
}

// prune forgets observations of what is gone.
func (o *observed) prune(f *findings) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.moved, func(path string, at time.Time) bool {
		return !f.present[path] && o.now().Sub(at) > clockMargin
	})
	maps.DeleteFunc(o.seen, func(path string, _ sighting) bool { return !f.present[path] })
	o.listed = f.listed
}

// seenSince is since when a file has been seen as it is; now for one that was not.
func (o *observed) seenSince(path string, now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s, ok := o.seen[path]; ok {
		return s.since
	}
	return now
}

// askedLately reports whether nobody was found to write to the drop as it is now, less
// than the given time ago. The answer counts for the list alone: the drop is asked again
// when it is taken.
func (o *observed) askedLately(d Drop, ago time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.seen[d.Path]
	return s.sig == d.sig && !s.asked.IsZero() && o.now().Sub(s.asked) < ago
}

func (o *observed) noteAsked(d Drop) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s, ok := o.seen[d.Path]; ok && s.sig == d.sig {
		s.asked = o.now()
		o.seen[d.Path] = s
	}
}
