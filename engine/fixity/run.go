package fixity

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/act"
	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/index"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/steps/target"

	"golang.org/x/sync/errgroup"
)

// Checks checks items of a workspace.
type Checks struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	folder   *folder.Folders
	index    *index.Keeper
	act      *act.Acts
	targets  *target.Pool
	book     *book
	who      ledger.Actor // the author of the checks

	// Gone gives the items of a catalog of which a scan found that the object is gone.
	Gone func(catalog layout.Name) (map[layout.ItemID]bool, error)
}

// New gives the checks of a workspace.
func New(l *ledger.Ledger, s *settings.Source, f *folder.Folders, i *index.Keeper, a *act.Acts, t *target.Pool) *Checks {
	return &Checks{ledger: l, settings: s, folder: f, index: i, act: a, targets: t, book: &book{}, who: l.ByPerson()}
}

// ByEngine gives the checks that no person asked for: the engine is the author of their commits, as of
// a schedule's or those that a target's settings want.
func ByEngine(c *Checks) *Checks {
	as := *c
	as.who = c.ledger.ByEngine()
	as.act = c.act.As(as.who)
	return &as
}

// Result is what was found of one item.
type Result struct {
	Item       layout.ItemID                 `json:"item"`
	Collection layout.Name                   `json:"collection"`
	Label      string                        `json:"label"`
	Copies     map[string]layout.FixityCheck `json:"copies"`

	noted       map[layout.Name]map[int]layout.DepositCopy // those on targets, as they are known now
	known       map[layout.Name]map[int]layout.DepositCopy // all on record
	read        map[layout.Name]bool                       // targets whose copies were read
	catalog     layout.Name                                // where its object stays; "": it was taken in
	version     int                                        // the item's
	targetsOnly bool                                       // the copies of the workspace were not looked at
	partly      bool                                       // some of these were
	recorded    bool                                       // the item's record has the look
	healed      []string                                   // copies that were replaced
	unhealed    error                                      // why damaged copies could not be
}

// Failed names the copies that are not what they were, sorted.
func (r Result) Failed() (copies []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Copies)) {
		if r.Copies[name].Outcome == layout.FixityFailed {
			copies = append(copies, name)
		}
	}
	return copies
}

// Newer says that the object in place was written since it was catalogued; "": it was not.
func (r Result) Newer() string {
	for _, found := range r.Copies {
		if found.Outcome == layout.FixityNewer {
			return found.Message
		}
	}
	return ""
}

// toldNothing reports whether all copies that are wanted are away, or newer than their records.
func (r Result) toldNothing() bool {
	nothing := false
	for _, found := range r.Copies {
		switch found.Outcome {
		case layout.FixityPassed, layout.FixityFailed:
			return false
		case layout.FixityDown, layout.FixityNewer:
			nothing = true
		}
	}
	return nothing
}

// Aside names the copies of which a mend set bytes aside that are there still, sorted.
func (r Result) Aside() (copies []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Copies)) {
		if r.Copies[name].Aside != "" {
			copies = append(copies, name)
		}
	}
	return copies
}

// Elsewhere reports whether nothing of the item is here, which is no damage of one that came in at
// another site.
func (r Result) Elsewhere() bool {
	for _, found := range r.Copies {
		if found.Outcome != layout.FixityAbsent {
			return false
		}
	}
	return len(r.Copies) > 0
}

// Which are the items to check.
type Which struct {
	Items  []layout.ItemID // none: all
	Sample float64         // of those, this part of 1, those checked longest ago first; 0: all
	Mend   bool            // replaces damaged copies on targets from sound ones
	Older  time.Duration   // of those, which were not checked for so long; 0: all
	// Parallel is how many are checked at once; 0: as many as there are processors, and two.
	Parallel int

	of Sweep // whose looks count; zero: those at all copies
}

// Run checks items and records what was found, one commit an item; told is called by one
// goroutine at a time. Items that are being worked on are passed over, and counted. An
// error of one item is joined to err, and the others go on, unless the store is not there.
func (c *Checks) Run(ctx context.Context, which Which, told func(Result)) (passedOver int, err error) {
	if c.ledger.ReadOnly {
		return 0, gitstore.ErrReadOnly
	}
	items, err := c.choose(which)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex // guards what follows, and calls of told
	var errs []error
	passed := 0
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(which.Parallel, max(2, runtime.GOMAXPROCS(0))))
	for _, id := range items {
		group.Go(func() error {
			r, err := alone(ctx, c, which.Mend, id, func() (Result, error) {
				r, err := c.Check(ctx, id)
				if err == nil && which.Mend {
					r = heal(ctx, c, r, nil)
				}
				if err == nil {
					err = cmp.Or(ctx.Err(), c.record(ctx, r))
				}
				return r, err
			})
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, errAtWork) {
				passed++
				return nil
			}
			if err != nil {
				if fault.Is(err, fault.Busy) || ctx.Err() != nil {
					return err // it is so of all
				}
				errs = append(errs, err)
				return nil
			}
			if r.unhealed != nil {
				errs = append(errs, r.unhealed)
			}
			told(r)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return passed, err
	}
	return passed, errors.Join(errs...)
}

// choose lists the items, those checked longest ago first.
func (c *Checks) choose(which Which) ([]layout.ItemID, error) {
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	items := slices.Clone(which.Items)
	if len(items) == 0 {
		for it := range c.index.Loaded().Items() {
			if !it.Disposed() {
				items = append(items, it.ID)
			}
		}
	}
	if which.Sample == 0 && which.Older == 0 {
		return items, nil
	}
	now := c.ledger.Now()
	which.of.Of = cmp.Or(which.of.Of, OfItems)
	last, err := seenBySweeps(v, which.of, now, len(items))
	if err != nil {
		return nil, err
	}
	for _, id := range items {
		// What cannot be read, or is to come, says nothing: the check itself tells of it.
		if d, err := ledger.ReadDeposits(v, id); err == nil {
			if at := oldest(d, which.of.view()); !at.After(now.Add(clockSkew)) && at.After(last[id]) {
				last[id] = at
			}
		}
	}
	if which.Older > 0 {
		items = slices.DeleteFunc(items, func(id layout.ItemID) bool { return now.Sub(last[id]) < which.Older })
	}
	slices.SortFunc(items, func(a, b layout.ItemID) int { return cmp.Or(last[a].Compare(last[b]), cmp.Compare(mixed(a), mixed(b))) })
	if which.Sample > 0 {
		items = items[:min(len(items), int(float64(len(items))*which.Sample+0.9999))]
	}
	return items, nil
}

// clockSkew is how far another machine's clock may be ahead of this one.
const clockSkew = 24 * time.Hour

// mixed spreads items that were checked at the same time.
func mixed(id layout.ItemID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return h.Sum64()
}

// oldest is when the copy of a view was looked at that was looked at longest ago; zero: none was.
func oldest(d layout.Deposits, w view) (at time.Time) {
	for name, versions := range d.Targets {
		for _, c := range versions {
			if w.target(name) && (at.IsZero() || c.Verified.Before(at)) {
				at = c.Verified
			}
		}
	}
	for name, c := range d.Copies {
		if !w.local(name) {
			continue
		}
		if at.IsZero() || c.At.Before(at) {
			at = c.At
		}
	}
	return at
}
