package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// checkedFile names the commit up to which everything others committed has been
// looked at.
const checkedFile = layout.StateDir + "/checked"

// fewArrivals is how many answers a command gives besides its own item's; a run
// gives all.
const fewArrivals = 256

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

// openArrivals notes what came since the last look, at Open.
func (e *Engine) openArrivals() error {
	a := &e.arrivals
	a.touched, a.verdicts, a.pinned = map[layout.ItemID]bool{}, map[layout.ItemID]*verdict{}, map[string]*pinnedVerdict{}
	a.news = make(chan struct{}, 1)
	v, err := e.store.Tip()
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tip = v.Commit()
	a.saved = e.readChecked()
	if a.saved == a.tip {
		return nil
	}
	from := a.saved
	if from.IsZero() {
		if from, err = e.lastOwnCommit(v.Commit()); err != nil || from == a.tip {
			return err
		}
	}
	a.windows = append([]window{{from, a.tip}}, a.windows...)
	a.unlisted = true
	return nil
}

// readChecked gives zero when the file is not there, damaged, or names a commit
// this repository has not.
func (e *Engine) readChecked() gitstore.Hash {
	data, err := os.ReadFile(e.path(checkedFile))
	if err != nil {
		return gitstore.Hash{}
	}
	h, err := gitstore.ParseHash(strings.TrimSpace(string(data)))
	if err != nil {
		return gitstore.Hash{}
	}
	if _, err := e.store.At(h); err != nil {
		return gitstore.Hash{}
	}
	return h
}

// maxFirstParents bounds the search for a Bagpipe's commit.
const maxFirstParents = 10_000

// lastOwnCommit finds the newest commit by a Bagpipe on the first-parent line; the
// tip itself when there is none.
func (e *Engine) lastOwnCommit(tip gitstore.Hash) (gitstore.Hash, error) {
	next := tip
	n := 0
	for c, err := range e.store.History(context.Background(), gitstore.HistoryOptions{From: tip}) {
		if err != nil {
			return gitstore.Hash{}, fmt.Errorf("look for the last commit of a Bagpipe: %w", err)
		}
		if n++; n > maxFirstParents {
			break
		}
		if c.Hash != next {
			continue
		}
		if c.Committer.Name == committerName && strings.HasPrefix(c.Committer.Email, committerEmail) {
			return c.Hash, nil
		}
		if len(c.Parents) == 0 {
			break
		}
		next = c.Parents[0]
	}
	return tip, nil
}

// saveChecked writes checkedFile when there is nothing left to look at. It is not
// synced: an older one costs time only.
func (e *Engine) saveChecked() {
	a := &e.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tip == a.saved || a.tip.IsZero() || len(a.windows)+len(a.verdicts)+len(a.pinned) > 0 || a.lookAll || len(a.looking) > 0 {
		return
	}
	name := e.path(checkedFile)
	temp := fmt.Sprintf("%s.%s", name, e.id)
	err := os.WriteFile(temp, []byte(a.tip.String()+"\n"), 0o666)
	if errors.Is(err, os.ErrNotExist) { // .bagpipe was removed; whoever needs it makes it
		return
	}
	if err == nil {
		err = os.Rename(temp, name)
	}
	if err != nil {
		e.o.Log.Warn("remember what was checked", "err", err)
		return
	}
	a.saved = a.tip
}

// arrived notes one move of the branch; the store's owner goroutine calls it.
func (e *Engine) arrived(adv gitstore.Advance) {
	a := &e.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tip = adv.To
	if len(adv.Changes) == 0 || !adv.Changes[0].Foreign || a.touched == nil {
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
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// again asks for another look after one that failed, such as on a full disk.
func (a *arrivals) again(ctx context.Context) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
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

// errUnseen is an item that others touched, and that has not been looked at.
var errUnseen = errors.New("another writer's change to the item has not been looked at")

// unseen tells whether the item must be looked at before anything happens to it.
func (a *arrivals) unseen(id layout.ItemID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unlisted || a.lookAll || a.touched[id] || a.looking[id] || a.verdicts[id] != nil
}

// transact is store.Commit of a change to one item. What others did to it is
// looked at first, and answered.
func (e *Engine) transact(ctx context.Context, id layout.ItemID, apply func(gitstore.Reader) (*gitstore.Change, error)) error {
	for {
		_, err := e.store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
			if e.arrivals.unseen(id) {
				return nil, errUnseen
			}
			return apply(r)
		})
		if !errors.Is(err, errUnseen) {
			return err
		}
		if err := e.look(ctx, id); err != nil {
			return err
		}
	}
}

// look looks at everything that arrived, and answers for one item.
func (e *Engine) look(ctx context.Context, id layout.ItemID) error {
	if !e.arrivals.unseen(id) {
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
// work goes on between.
func (e *Engine) lookAtAll(ctx context.Context) error {
	for {
		if left, err := e.answerSome(ctx); err != nil || !left {
			return err
		}
	}
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
