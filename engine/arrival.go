package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// fewArrivals is how many answers a command gives besides its own item's; a run
// gives all.
const fewArrivals = 1024

// arrivals is what others committed and what is left to do about it.
type arrivals struct {
	turn sync.Mutex // held while windows are looked at and answered

	mu       sync.Mutex // guards the rest
	tip      gitstore.Hash
	windows  []window               // not yet looked at, oldest first
	unlisted bool                   // the items of the first window are not in touched
	touched  map[layout.ItemID]bool // in windows
	looking  map[layout.ItemID]bool // in the windows being looked at
	lookAll  bool                   // unlisted, of those
	verdicts map[layout.ItemID]*verdict
	pinned   map[string]*pinnedVerdict // by digest
	saved    gitstore.Hash             // what checkedFile holds
	news     chan struct{}             // there are windows
	told     int                       // answers
}

func (a *arrivals) init() {
	a.touched, a.verdicts, a.pinned = map[layout.ItemID]bool{}, map[layout.ItemID]*verdict{}, map[string]*pinnedVerdict{}
	a.news = make(chan struct{}, 1)
}

// window is one move of the branch by others.
type window struct{ from, to gitstore.Hash }

// verdict is an item to be answered for.
type verdict struct {
	want     version // its records as they should be
	breaches []breach
}

// breach is what one commit did.
type breach struct {
	commit gitstore.Commit
	what   []string
	forged bool // kept; the item is held for it
}

type pinnedVerdict struct {
	data   []byte
	commit gitstore.Commit
}

// arrived notes one move of the branch; an observer.
func (e *Engine) arrived(adv gitstore.Advance) {
	a := &e.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tip = adv.To
	// One without changes is looked at too: it may hold something and its removal.
	if len(adv.Changes) > 0 && !adv.Changes[0].Foreign {
		return
	}
	if n := len(a.windows); n > 0 && a.windows[n-1].to == adv.From {
		a.windows[n-1].to = adv.To
	} else if n == 0 || a.windows[n-1].to != adv.To {
		a.windows = append(a.windows, window{adv.From, adv.To})
	}
	for _, c := range adv.Changes {
		if id, _, ok := layout.ItemOfPath(c.Path); ok {
			a.touched[id] = true
		}
	}
	a.wake()
}

// wake asks for a look.
func (a *arrivals) wake() {
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// since is where the first window begins that has not been looked at.
func (a *arrivals) since() (from gitstore.Hash, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.windows) == 0 {
		return gitstore.Hash{}, false
	}
	return a.windows[0].from, true
}

// unseen reports whether the item must be looked at before anything happens to it.
func (e *Engine) unseen(id layout.ItemID) bool {
	a := &e.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unlisted || a.lookAll || a.touched[id] || a.looking[id] || a.verdicts[id] != nil
}

// look looks at everything that arrived, and answers for one item.
func (e *Engine) look(ctx context.Context, id layout.ItemID) error {
	if !e.unseen(id) {
		return nil
	}
	e.arrivals.turn.Lock()
	defer e.arrivals.turn.Unlock()
	if err := e.examine(ctx); err != nil {
		return err
	}
	return e.answerItems(ctx, []layout.ItemID{id})
}

// lookAtFew looks at everything that arrived, and answers for a few items: what a
// command does before it writes.
func (e *Engine) lookAtFew(ctx context.Context) error {
	_, err := e.answerSome(ctx)
	return err
}

// lookAtAll answers for everything that arrived, some at a time, so that other
// work goes on between. What is left when stop says so is for the next run.
func (e *Engine) lookAtAll(ctx context.Context, stop func() bool) error {
	for !stop() {
		if left, err := e.answerSome(ctx); err != nil || !left {
			return err
		}
	}
	return nil
}

func (e *Engine) answerSome(ctx context.Context) (left bool, err error) {
	a := &e.arrivals
	a.turn.Lock()
	defer a.turn.Unlock()
	if err := e.examine(ctx); err != nil {
		return false, err
	}
	if err := e.answerPinned(ctx); err != nil {
		return false, err
	}
	a.mu.Lock()
	ids := make([]layout.ItemID, 0, min(len(a.verdicts), fewArrivals))
	for id := range a.verdicts {
		if ids = append(ids, id); len(ids) == fewArrivals {
			break
		}
	}
	a.mu.Unlock()
	slices.Sort(ids)
	err = e.answerItems(ctx, ids)
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.windows)+len(a.verdicts) > 0, err
}

// examine looks at the windows noted so far and makes verdicts of them. The turn
// is the caller's.
func (e *Engine) examine(ctx context.Context) (err error) {
	a := &e.arrivals
	for {
		a.mu.Lock()
		if len(a.windows) == 0 {
			a.mu.Unlock()
			return nil
		}
		windows := a.windows
		wasUnlisted := a.unlisted
		a.looking, a.lookAll = a.touched, a.unlisted
		a.windows, a.unlisted, a.touched = nil, false, map[layout.ItemID]bool{}
		seed := &branch{items: maps.Clone(a.verdicts), pinned: maps.Clone(a.pinned)}
		a.mu.Unlock()
		for _, w := range windows {
			if seed, err = e.examineWindow(ctx, w, seed); err != nil {
				break
			}
			seed = seed.onlyOpen()
		}
		a.mu.Lock()
		if err != nil { // to be looked at again
			a.windows = append(windows, a.windows...)
			a.unlisted = wasUnlisted
			maps.Copy(a.touched, a.looking)
		} else {
			a.verdicts, a.pinned = seed.items, seed.pinned
		}
		a.looking, a.lookAll = nil, false
		a.mu.Unlock()
		if err != nil {
			return fmt.Errorf("look at what others committed: %w", err)
		}
	}
}

// plansAt gives the definitions of records read at r.
func (e *Engine) plansAt(r gitstore.Reader) state.Plans {
	return func(digest string) *state.Definition {
		d, err := e.pinnedPlan(r, digest)
		if err != nil {
			return nil
		}
		return d
	}
}

// stopped tells whether the person wants the run to end.
func (r *run) stopped(ctx context.Context) bool {
	select {
	case <-r.o.Drain:
		return true
	default:
		return ctx.Err() != nil
	}
}

// guard looks at what others commit, as it comes.
func (r *run) guard(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.e.arrivals.news:
		}
		if err := r.e.lookAtAll(ctx, r.pool.Draining); err != nil && ctx.Err() == nil {
			r.broken(err)
			time.AfterFunc(time.Second, r.e.arrivals.wake) // such as a full disk
		}
	}
}
