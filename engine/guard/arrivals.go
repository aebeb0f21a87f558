package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// fewArrivals is how many answers a command gives besides its own item's; a run
// gives all.
const fewArrivals = 1024

// Guard holds the commits of others that nobody has looked at, and the verdicts that are
// to be answered.
type Guard struct {
	ledger *ledger.Ledger
	pace   pace

	turn sync.Mutex // held while windows are looked at and answered

	mu       sync.Mutex // guards the rest
	tip      gitstore.Hash
	windows  []window // not yet looked at, oldest first
	touched  touched  // in windows
	looking  touched  // in the windows being looked at
	verdicts map[layout.ItemID]*verdict
	restored
	saved gitstore.Hash // what checkedFile holds
	News  chan struct{} // there are windows
	told  []string      // the first of the answers that hold an item

	Joiner *Joiner

	// Requires says, by the settings committed there, whose commits must be signed from then
	// on: People, Sites. nil: nobody's.
	Requires func(gitstore.Reader) []string
}

// touched are the items that some windows touched; unlisted: those of the first are not listed.
type touched struct {
	items    map[layout.ItemID]bool
	unlisted bool
}

func (t touched) has(id layout.ItemID) bool { return t.unlisted || t.items[id] }

// New gives a guard that has not looked at anything; Open notes what came since the last
// look.
func New(l *ledger.Ledger) *Guard {
	return &Guard{ledger: l, pace: usualPace, Joiner: &Joiner{ledger: l}, touched: touched{items: map[layout.ItemID]bool{}}, verdicts: map[layout.ItemID]*verdict{},
		restored: restored{files: map[string]*fileVerdict{}}, News: make(chan struct{}, 1)}
}

// restored are files that are to be put back.
type restored struct {
	files   map[string]*fileVerdict // pinned definitions and settings, by path
	signers *fileVerdict            // the list of those who sign; nil: it is as it should be
}

// window is one move of the branch by others.
type window struct{ from, to gitstore.Hash }

// verdict is an item to be answered for.
type verdict struct {
	want     version // its records as they should be
	breaches []breach
	stands   bool // they are so as the branch has them committed
}

// breach is what one commit did.
type breach struct {
	commit gitstore.Commit
	what   []string
	forged bool // kept; the item is held for it
	// lacks is of a merge that only lacks what the join of its parents has, and of statuses that
	// do not follow from the record: it is completed.
	lacks bool
	// conflict is of values that two histories gave, and no hold: git joined a manifest alone, as it does commit by
	// commit where it rebases. They are kept, and the item is held.
	conflict bool
	// meant is what a revert means; nil: it is none.
	meant *state.Reversal
}

// fileVerdict is a file to be put back.
type fileVerdict struct {
	data   []byte // nil: there was none
	commit gitstore.Commit
	why    string // the commit was to be signed, and is not; "": nobody may change the file so
}

// Arrived notes one move of the branch; an observer.
func (g *Guard) Arrived(adv gitstore.Advance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tip = adv.To
	// One without changes is looked at too: it may hold something and its removal.
	if len(adv.Changes) > 0 && !adv.Changes[0].Foreign {
		return
	}
	if n := len(g.windows); n > 0 && g.windows[n-1].to == adv.From {
		g.windows[n-1].to = adv.To
	} else if n == 0 || g.windows[n-1].to != adv.To {
		g.windows = append(g.windows, window{adv.From, adv.To})
	}
	for _, c := range adv.Changes {
		if id, _, ok := layout.ItemOfPath(c.Path); ok {
			g.touched.items[id] = true
		}
		if layout.IsRetiredPath(c.Path) {
			lines, _ := layout.DecodeRetired(c.Data)
			for id := range lines.Items {
				g.touched.items[id] = true
			}
		}
	}
	g.Wake()
}

// Wake asks for a look.
func (g *Guard) Wake() {
	select {
	case g.News <- struct{}{}:
	default:
	}
}

// Since is where the first window begins that has not been looked at.
func (g *Guard) Since() (from gitstore.Hash, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.windows) == 0 {
		return gitstore.Hash{}, false
	}
	return g.windows[0].from, true
}

// Unseen reports whether the item must be looked at before anything happens to it.
func (g *Guard) Unseen(id layout.ItemID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.touched.has(id) || g.looking.has(id) || g.verdicts[id] != nil
}

// Look looks at everything that arrived, and answers for one item.
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

// LookAtFew looks at everything that arrived, and answers for a few items: what a
// command does before it writes.
func (g *Guard) LookAtFew(ctx context.Context) error {
	_, err := g.answerSome(ctx)
	return err
}

// LookAtAll answers for everything that arrived, some at a time, so that other
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
	g.turn.Lock()
	defer g.turn.Unlock()
	if err := g.examine(ctx); err != nil {
		return false, err
	}
	if err := errors.Join(g.answerSigners(ctx), g.answerFiles(ctx)); err != nil {
		return false, err
	}
	g.mu.Lock()
	ids := make([]layout.ItemID, 0, min(len(g.verdicts), fewArrivals))
	for id := range g.verdicts {
		if ids = append(ids, id); len(ids) == fewArrivals {
			break
		}
	}
	g.mu.Unlock()
	slices.Sort(ids)
	err = g.answerItems(ctx, ids)
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.windows)+len(g.verdicts) > 0, err
}

// examine looks at the windows noted so far and makes verdicts of them. The turn
// is the caller's.
func (g *Guard) examine(ctx context.Context) (err error) {
	for {
		g.mu.Lock()
		if len(g.windows) == 0 {
			g.mu.Unlock()
			return nil
		}
		windows := g.windows
		g.looking, g.windows, g.touched = g.touched, nil, touched{items: map[layout.ItemID]bool{}}
		seed := &branch{items: maps.Clone(g.verdicts), files: maps.Clone(g.files), signers: g.signers}
		g.mu.Unlock()
		for _, w := range windows {
			if seed, err = g.examineWindow(ctx, w, seed); err != nil {
				break
			}
			seed = seed.onlyOpen()
		}
		g.mu.Lock()
		if err != nil { // to be looked at again
			g.windows = append(windows, g.windows...)
			g.touched.unlisted = g.looking.unlisted
			maps.Copy(g.touched.items, g.looking.items)
		} else {
			g.verdicts, g.files, g.signers = seed.items, seed.files, seed.signers
		}
		g.looking = touched{}
		g.mu.Unlock()
		if err != nil {
			return fmt.Errorf("look at what others committed: %w", err)
		}
	}
}
