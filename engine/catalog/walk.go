package catalog

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/recognise"

	"golang.org/x/sys/unix"
)

// racy is how old a change must be to be told from a later one by its time, on file systems
// that count seconds in twos.
const racy = 2 * time.Second

// walk lists folders and compares them with what is known.
type walk struct {
	place
	before   looked // by the walk before this one
	old      tree
	trusting bool // size and modification time alone
	shallow  bool // folders whose own time is as it was are not listed
	racy     time.Duration
	listed   func(folders, entries int)

	mu      sync.Mutex // guards the rest
	more    *sync.Cond
	stack   []string
	busy    int
	found   []*node // of folders that were looked at; known ones that are as they were, too
	entries int
	young   map[string]bool // folders with changes that a later one could not be told from
	err     error
}

// place is where a root is, and what may not lie below it.
type place struct {
	root, device string
	home         map[inode]string
}

// looked is what a walk found, which the next one need not list again.
type looked struct {
	seen  tree            // folders whose own time is as it was then are not listed; nil: there was no such walk
	young map[string]bool // these are
}

// run looks at the folders from and all below them.
func (w *walk) run(ctx context.Context, from ...string) error {
	w.more, w.young = sync.NewCond(&w.mu), map[string]bool{}
	w.stack = append(w.stack, from...)
	stop := context.AfterFunc(ctx, func() { w.fail(ctx.Err()) })
	defer stop()
	var wg sync.WaitGroup
	for range max(2, min(8, 2*runtime.GOMAXPROCS(0))) {
		wg.Go(w.work)
	}
	wg.Wait()
	w.mu.Lock() // stop does not wait for a cancellation that has begun
	defer w.mu.Unlock()
	return w.err
}

func (w *walk) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = errors.Join(w.err, err)
	w.more.Broadcast()
}

func (w *walk) work() {
	l, err := newLister(w.place)
	if err != nil {
		w.fail(err)
		return
	}
	defer l.close()
	var scratch []entry
	for {
		path, ok := w.next()
		if !ok {
			return
		}
		var n *node
		var young bool
		n, scratch, young = w.look(l, path, scratch[:0])
		w.done(path, n, young)
	}
}

func (w *walk) next() (path string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.stack) == 0 && w.busy > 0 && w.err == nil {
		w.more.Wait()
	}
	if len(w.stack) == 0 || w.err != nil {
		w.more.Broadcast()
		return "", false
	}
	path = w.stack[len(w.stack)-1]
	w.stack = w.stack[:len(w.stack)-1]
	w.busy++
	return path, true
}

func (w *walk) done(path string, n *node, young bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	w.found = append(w.found, n)
	w.entries += n.size()
	if young {
		w.young[path] = true
	}
	if n.state != Unread && n.hasFolders() {
		for i := range n.all() {
			if e := &n.all()[i]; e.kind == folder && !e.gone && !e.lost {
				w.stack = append(w.stack, join(path, e.name))
			}
		}
	}
	if w.listed != nil && len(w.found)%1000 == 0 {
		w.listed(len(w.found), w.entries)
	}
	w.more.Broadcast()
}

// look lists one folder, unless it need not be, and compares it.
func (w *walk) look(l *lister, path string, scratch []entry) (_ *node, _ []entry, young bool) {
	old, seen := w.old[path], w.before.seen[path]
	if seen == nil && w.shallow && w.before.seen == nil && old != nil && old.state == Present && old.rules != "" {
		seen = old
	}
	if seen != nil && seen.state != Unread && !w.before.young[path] {
		if mtime, inode, err := l.stat(path); err == nil && mtime == seen.mtime && (w.trusting || inode == seen.inode) {
			return seen, scratch, false
		}
	}
	now, partial, err := l.list(path, scratch)
	if errors.As(err, new(*homeError)) {
		w.fail(err)
	}
	if err != nil {
		return unreadNode(old, path, err), now.entries, false
	}
	n := w.compare(old, &now)
	if partial != nil {
		n = n.partly(partial)
	}
	return n, now.entries, now.stirred || w.isYoung(n)
}

// partly is a folder with entries that could not be looked at: nothing in it is lost by that.
func (n *node) partly(cause error) *node {
	n.all()
	out := *n.but(Unread, "an entry could not be looked at: "+reason(cause))
	out.entries = slices.Clone(out.entries)
	out.reunite(nil)
	out.entries = slices.DeleteFunc(out.entries, func(e entry) bool { return e.isReunited() })
	for i := range out.entries {
		out.entries[i].lost = false
	}
	return &out
}

// isYoung reports whether a folder has changes that a later one could not be told from.
func (w *walk) isYoung(n *node) bool {
	if !n.changed {
		return false
	}
	now := time.Now()
	return recent(n.mtime, now, w.racy) || slices.ContainsFunc(n.all(), func(e entry) bool { return e.fresh && e.recent(now, w.racy, w.trusting) })
}

// ahead is how far another machine's clock may go before this one's. A time that is later than
// that was set by someone, and the next change has another.
const ahead = 24 * time.Hour

// recent reports whether a change at a time may be followed by one at the same time.
func recent(at int64, now time.Time, racy time.Duration) bool {
	return at > now.Add(-racy).UnixNano() && at < now.Add(ahead).UnixNano()
}

func (e *entry) recent(now time.Time, racy time.Duration, trusting bool) bool {
	return e.kind != folder && (recent(e.ctime, now, racy) || trusting && recent(e.mtime, now, racy))
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// unreadNode keeps what is known of a folder that could not be listed.
func unreadNode(old *node, path string, err error) *node {
	if old == nil {
		old = &node{path: path, pages: 1}
	}
	return old.but(Unread, reason(err))
}

// but is the folder in another state.
func (n *node) but(state, why string) *node {
	if n.state == state && n.why == why {
		return n
	}
	out := *n
	out.state, out.why, out.changed = state, why, true
	return &out
}

func reason(err error) string {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return "it vanished while it was looked at"
	}
	return plainText(err)
}

// plainText is an error without paths.
func plainText(err error) string {
	if no := unix.Errno(0); errors.As(err, &no) {
		return no.Error()
	}
	return err.Error()
}

// compare gives the known folder where nothing differs, else what it is now. What vanished is
// lost, until it is settled.
func (w *walk) compare(old, now *node) *node {
	if old == nil {
		out := *now
		out.entries, out.changed = slices.Clone(now.entries), true
		for i := range out.entries {
			out.entries[i].fresh = true
		}
		return &out
	}
	if old.state == Present && (w.trusting || old.inode == now.inode) && old.mtime == now.mtime && w.sameEntries(old, now.entries) {
		return old
	}
	was := old.all()
	out := *old
	out.mtime, out.inode, out.state, out.why, out.changed = now.mtime, now.inode, Present, "", true
	out.entries = w.merge(was, now.entries)
	return &out
}

func (w *walk) sameEntries(old *node, now []entry) bool {
	i := 0
	same := old.each(func(e *entry) bool {
		if e.gone {
			return true
		}
		if i == len(now) || e.name != now[i].name || !w.same(e, &now[i]) {
			return false
		}
		i++
		return true
	})
	return same && i == len(now)
}

// same reports whether an entry is as it was.
func (w *walk) same(a, b *entry) bool {
	if a.kind != b.kind || !w.trusting && a.inode != b.inode {
		return false
	}
	return a.kind == folder || a.size == b.size && a.mtime == b.mtime && (w.trusting || a.ctime == b.ctime)
}

// merge carries over what is known of the entries that are there. What was there of another kind is lost, and what has
// another inode now may be.
func (w *walk) merge(old, now []entry) []entry {
	out := make([]entry, 0, len(now)+1)
	for len(old) > 0 || len(now) > 0 {
		switch {
		case len(now) == 0 || len(old) > 0 && old[0].name < now[0].name:
			e := old[0]
			e.lost = !e.gone
			out, old = append(out, e), old[1:]
		case len(old) == 0 || now[0].name < old[0].name:
			e := now[0]
			e.fresh = true
			out, now = append(out, e), now[1:]
		default:
			e, at, known := now[0], len(out), false
			e.fresh = true
			for out = append(out, e); len(old) > 0 && old[0].name == e.name; old = old[1:] {
				was := old[0]
				switch {
				case was.kind != e.kind || known:
					was.replace()
					out = append(out, was)
				case !w.trusting && was.mayBeElsewhere(&e):
					was.lost, was.replaced, was.back, known = !was.gone, true, true, true
					out = append(out, was)
				default:
					known = true
					e.verdict, e.item, e.waits = was.verdict, was.item, was.waits
					e.back = was.gone
					e.fresh = !was.isThere() || !w.same(&was, &e)
				}
			}
			out[at], now = e, now[1:]
		}
	}
	return out
}

// listed is what the walk found in a folder, for recognition to ask.
type listed struct {
	t    tree
	n    *node
	book *recognise.Book
}

// survey recognises by what the walk found.
func survey(s *scan) *recognise.Survey {
	return s.book.Survey(s.cat.Root, s.cat.Collection, recognise.Options{Limits: s.limits, Particular: true}, func(path string) recognise.Listed {
		if n := s.now[path]; n != nil && n.state == Present {
			return listed{s.now, n, s.book}
		}
		return nil
	})
}

func (l listed) Has(name string) bool {
	e := l.n.find(name)
	return e != nil && !e.gone
}

// Endings are found out once a scan: those of the folders below are kept with them.
func (l listed) Endings() recognise.Endings {
	if l.n.ends != nil {
		return *l.n.ends
	}
	var ends recognise.Endings
	for i := range l.n.all() {
		e := &l.n.all()[i]
		switch below := l.below(e); {
		case e.gone:
		case e.kind == folder && below.n == nil:
			ends = recognise.AllEndings()
		default:
			l.book.EndsOf(e.name, &ends)
			if e.kind == folder {
				ends.Join(below.Endings())
			}
		}
	}
	l.n.ends = &ends
	return ends
}

// below is a folder in this one; without a node it is not known.
func (l listed) below(e *entry) listed {
	if e.kind == folder {
		if n := l.t[join(l.n.path, e.name)]; n != nil && n.state == Present {
			return listed{l.t, n, l.book}
		}
	}
	return listed{}
}

func (l listed) Files(visit func(path string, size int64) bool) bool { return l.files("", visit) }

func (l listed) files(prefix string, visit func(path string, size int64) bool) bool {
	for i := range l.n.all() {
		e := &l.n.all()[i]
		switch below := l.below(e); {
		case e.gone:
		case e.kind != folder:
			if !visit(prefix+e.name, e.size) {
				return false
			}
		case below.n == nil || !below.files(prefix+e.name+"/", visit):
			return false
		}
	}
	return true
}
