package guard

import (
	"bagpipe/engine/ledger"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// fewArrivals is how many answers a command gives besides its own item's; a run
// gives all.
const fewArrivals = 1024

// arrivals is what others committed and what is left to do about it.
type Guard struct {
	ledger *ledger.Ledger

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
	News     chan struct{}             // there are windows
	told     int                       // answers
}

func (a *Guard) init() {
	a.touched, a.verdicts, a.pinned = map[layout.ItemID]bool{}, map[layout.ItemID]*verdict{}, map[string]*pinnedVerdict{}
	a.News = make(chan struct{}, 1)
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
func (g *Guard) Arrived(adv gitstore.Advance) {
	a := g
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
	a.Wake()
}

// wake asks for a look.
func (a *Guard) Wake() {
	select {
	case a.News <- struct{}{}:
	default:
	}
}

// since is where the first window begins that has not been looked at.
func (a *Guard) Since() (from gitstore.Hash, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.windows) == 0 {
		return gitstore.Hash{}, false
	}
	return a.windows[0].from, true
}

// unseen reports whether the item must be looked at before anything happens to it.
func (g *Guard) Unseen(id layout.ItemID) bool {
	a := g
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unlisted || a.lookAll || a.touched[id] || a.looking[id] || a.verdicts[id] != nil
}

// look looks at everything that arrived, and answers for one item.
func (g *Guard) Look(ctx context.Context, id layout.ItemID) error {
	if !g.Unseen(id) {
		return nil
	}
	g.turn.Lock()
	defer g.turn.Unlock()
	if err := g.examine(ctx); err != nil {
		return err
	}
	return g.answerItems(ctx, []layout.ItemID{id})
}

// lookAtFew looks at everything that arrived, and answers for a few items: what a
// command does before it writes.
func (g *Guard) LookAtFew(ctx context.Context) error {
	_, err := g.answerSome(ctx)
	return err
}

// lookAtAll answers for everything that arrived, some at a time, so that other
// work goes on between. What is left when stop says so is for the next run.
func (g *Guard) LookAtAll(ctx context.Context, stop func() bool) error {
	for !stop() {
		if left, err := g.answerSome(ctx); err != nil || !left {
			return err
		}
	}
	return nil
}

func (g *Guard) answerSome(ctx context.Context) (left bool, err error) {
	a := g
	a.turn.Lock()
	defer a.turn.Unlock()
	if err := g.examine(ctx); err != nil {
		return false, err
	}
	if err := g.answerPinned(ctx); err != nil {
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
	err = g.answerItems(ctx, ids)
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.windows)+len(a.verdicts) > 0, err
}

// examine looks at the windows noted so far and makes verdicts of them. The turn
// is the caller's.
func (g *Guard) examine(ctx context.Context) (err error) {
	a := g
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
			if seed, err = g.examineWindow(ctx, w, seed); err != nil {
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
