package feed

import (
	"context"
	"slices"
	"sync"

	"bagpipe/engine/gitstore"
)

// mostAhead is how many bytes of bodies are looked up while commits are listed.
const mostAhead = 32 << 20

// lookAhead has workers look commits up while these are being listed, which one goroutine does, since each
// commit names the next. The newest commits are listed first, and posts come to the list from the oldest on: a
// commit for which no worker was free, or no room, is looked up in its turn.
type lookAhead struct {
	begin func() // begins the work with the first stretch
	next  []gitstore.Met
	todo  chan []gitstore.Met
	work  sync.WaitGroup
	scans []*gitstore.Scan // one for each worker, once they are begun

	mu    sync.Mutex // guards the rest
	found found
	size  int // bytes of bodies
}

// found is what stretches of mostTogether commits are. The places by commit have no pointers, which the collector of
// memory would follow.
type found struct {
	stretches [][]activity
	place     map[gitstore.Hash]int
}

// of gives what a commit is, if it was looked up.
func (f *found) of(h gitstore.Hash) (a activity, is bool) {
	n, is := f.place[h]
	if is {
		a = f.stretches[n/mostTogether][n%mostTogether]
	}
	return a, is
}

// newLookAhead gives one of so many workers.
func newLookAhead(ctx context.Context, f *Feeds, workers int, of *gitstore.Scanning) *lookAhead {
	a := &lookAhead{todo: make(chan []gitstore.Met, 1), found: found{place: map[gitstore.Hash]int{}}}
	a.begin = sync.OnceFunc(func() {
		for range workers {
			scan := of.Scan()
			a.scans = append(a.scans, scan)
			a.work.Go(func() {
				known := map[recipients]recipients{}
				for some := range a.todo {
					a.lookUp(ctx, some, func(m gitstore.Met) activity {
						return f.activityOf(ctx, func(gitstore.Hash) (gitstore.Commit, gitstore.View, error) { return scan.Read(m) }, m.Hash)
					}, known)
				}
			})
		}
	})
	return a
}

// met has a commit looked up, with those that are met before and after it, if a worker is free.
func (a *lookAhead) met(m gitstore.Met) {
	if a.next = append(a.next, m); len(a.next) < mostTogether {
		return
	}
	a.begin()
	slices.Reverse(a.next)
	select {
	case a.todo <- a.next:
		a.next = make([]gitstore.Met, 0, mostTogether)
	default:
		a.next = a.next[:0]
	}
}

// end waits for the workers.
func (a *lookAhead) end() (found, []*gitstore.Scan) {
	close(a.todo)
	a.work.Wait()
	return a.found, a.scans
}

// lookUp looks a stretch of commits up. What it keeps of them is in few pieces: there may be 100,000. known are the
// recipients that the worker met.
func (a *lookAhead) lookUp(ctx context.Context, some []gitstore.Met, look func(gitstore.Met) activity, known map[recipients]recipients) {
	a.mu.Lock()
	full := a.size > mostAhead
	a.mu.Unlock()
	if full {
		return
	}
	stretch, size := make([]activity, len(some)), 0
	for i, m := range some {
		if ctx.Err() != nil {
			return
		}
		stretch[i] = look(m)
		size += len(stretch[i].body)
	}
	bodies := make([]byte, 0, size)
	for i := range stretch {
		s := &stretch[i]
		begin := len(bodies)
		bodies = append(bodies, s.body...)
		s.body = bodies[begin:]
		if of, is := known[s.of]; is {
			s.of = of
		} else if len(known) < mostKnown {
			known[s.of] = s.of
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, m := range some {
		a.found.place[m.Hash] = len(a.found.stretches)*mostTogether + i
	}
	a.found.stretches = append(a.found.stretches, stretch)
	a.size += size
}
