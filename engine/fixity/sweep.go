package fixity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// The rules are: a sweep looks at many items, and commits one record of all of them, in pages:
//
//	fixity/2026/11/KEY-0001.json   {"at": ["tape"], "items": {"3fa9…": {"at": "…", "copies": {"source": "ok", "vault": "away"}, "recorded": true}},
//	                                "of": "items", "schema": 1}
//	fixity/2026/11/KEY.json        {"away": {"vault": 12}, "begun": "…", "by": "nightly", "bytes": 72910411, "changed": 1, "ended": "…",
//	                                "healed": 1, "missing": 0, "of": "items", "ok": 4211, "pages": 5, "schema": 1,
//	                                "at": ["tape"],
//	                                "stopped": "…", "unreadable": 0}
//
// A page is committed once it is full, the record at the end: a crash keeps the pages, and
// what they have counts as looked at, by sweeps of the same copies: a look at the store says
// nothing of a tape. An item's own record changes where a copy of it is not
// as it was, or was not and is sound again: the row is recorded then.

// What a sweep looks at.
const (
	OfItems    = "items"    // all copies
	OfStore    = "store"    // the bags in the store
	OfTargets  = "targets"  // the copies on targets
	OfCatalogs = "catalogs" // objects that stay where they are
)

// What is found of a copy, beside ok and away.
const (
	HowChanged    = "changed"
	HowMissing    = "missing"
	HowUnreadable = "unreadable"

	howOK   = "ok"
	howAway = "away"
)

// SweepDir holds the records of sweeps.
const SweepDir = "fixity"

const (
	sweepSchema = 1
	pageRows    = 1000
	// A sweep that finds so many of its first items damaged, healed or not, finds a disk at fault, and stops.
	firstItems, mostFailed = 100, 10
)

// Sweep is what to look at.
type Sweep struct {
	Of       string        // "": OfItems
	At       []layout.Name // of targets only these; none: all
	Sample   float64       // of the items this part of 1; 0: all
	Older    time.Duration // only those that were not looked at for so long; 0: all
	Every    time.Duration // as many as it takes to look at each once in so long, by the time since the last sweep
	Rate     int64         // bytes in a second; 0: any
	Heal     bool          // damaged copies on targets are replaced from sound ones
	Parallel int           // items at once; 0: as many as there are processors, and two
	By       string        // a schedule, or a person
}

// Swept is what a sweep found: fixity/YYYY/MM/KEY.json.
type Swept struct {
	Schema int           `json:"schema"`
	Of     string        `json:"of"`
	At     []layout.Name `json:"at,omitempty"` // of targets only these
	By     string        `json:"by"`
	Begun  time.Time     `json:"begun"`
	Ended  time.Time     `json:"ended"`
	Pages  int           `json:"pages"`
	Outcomes
	Away    map[string]int `json:"away,omitempty"`    // copies, by target; objects, by "catalog NAME"
	Newer   int            `json:"newer,omitempty"`   // objects that were written since they were catalogued
	Bytes   int64          `json:"bytes"`             // that were read, and written where it healed
	Passed  int            `json:"passed,omitempty"`  // over, as they are worked on
	Stopped string         `json:"stopped,omitempty"` // why it did not go on
}

// Outcomes is how many items a sweep found how, each by the worst of its copies.
type Outcomes struct {
	OK         int `json:"ok"`
	Changed    int `json:"changed"`
	Missing    int `json:"missing"`
	Unreadable int `json:"unreadable"`
	Healed     int `json:"healed"`
}

// Checked is how many items were looked at.
func (s *Swept) Checked() int { return s.OK + s.Damaged() + s.Healed }

// Damaged is how many items have a copy that is not as it was, and was not healed.
func (s *Swept) Damaged() int { return s.Changed + s.Missing + s.Unreadable }

// view is which copies the sweep looks at.
func (w Sweep) view() view {
	v := view{at: w.At}
	if w.Of == OfStore || w.Of == OfTargets || w.Of == OfCatalogs {
		v.of = w.Of
	}
	return v
}

// row is one item in a page.
type row struct {
	At       time.Time         `json:"at"`
	Copies   map[string]string `json:"copies"`
	Recorded bool              `json:"recorded,omitempty"` // the item's own record has the look, too
}

type page struct {
	Schema int                   `json:"schema"`
	Of     string                `json:"of,omitempty"` // "": OfItems
	At     []layout.Name         `json:"at,omitempty"`
	Items  map[layout.ItemID]row `json:"items"`
}

// sweeping is a sweep under way. mu guards what follows it.
type sweeping struct {
	*Checks
	key  string
	what Sweep

	mu   sync.Mutex
	out  Swept
	page page
	errs []error
}

// Sweep looks at items; told is called by one goroutine at a time. An error of one item is
// joined to err, and the others go on.
func (c *Checks) Sweep(ctx context.Context, what Sweep, told func(Result)) (Swept, error) {
	if c.ledger.ReadOnly {
		return Swept{}, gitstore.ErrReadOnly
	}
	what.Of = cmp.Or(what.Of, OfItems)
	items, err := c.toSweep(what)
	if err != nil {
		return Swept{}, err
	}
	intent, err := c.ledger.IntentKey()
	if err != nil {
		return Swept{}, err
	}
	begun := c.ledger.Now()
	s := &sweeping{Checks: c, key: begun.Format(SweepDir+"/2006/01/") + string(intent), what: what,
		out:  Swept{Schema: sweepSchema, Of: what.Of, At: what.At, By: what.By, Begun: begun, Away: map[string]int{}},
		page: page{sweepSchema, what.Of, what.At, map[layout.ItemID]row{}}}
	look := what.view()
	look.pace = newPace(what.Rate)
	stopped, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	group, gctx := errgroup.WithContext(stopped)
	group.SetLimit(cmp.Or(what.Parallel, max(2, runtime.GOMAXPROCS(0))))
	for _, id := range items {
		group.Go(func() error {
			if gctx.Err() != nil {
				return nil
			}
			r, err := alone(gctx, s.Checks, what.Heal, id, func() (Result, error) { return s.one(gctx, id, look) })
			return s.take(gctx, r, err, told, stop)
		})
	}
	err = group.Wait()
	s.out.Bytes = look.pace.bytes
	if cause := context.Cause(stopped); cause != nil && ctx.Err() == nil {
		s.out.Stopped, err = cause.Error(), nil
	}
	// What was found is recorded though the sweep was ended.
	return s.out, errors.Join(append(s.errs, err, s.end(context.WithoutCancel(ctx)))...)
}

// one looks at one item, heals it, and records what is wrong with it.
func (s *sweeping) one(ctx context.Context, id layout.ItemID, look view) (Result, error) {
	r, err := s.look(ctx, id, look)
	if err != nil {
		return r, err
	}
	before := len(r.Failed())
	if before > 0 && s.what.Heal {
		failed := r.Failed()
		if r = heal(ctx, s.Checks, r, look.pace); ctx.Err() != nil {
			return r, ctx.Err()
		}
		if fault.Is(r.unhealed, fault.Busy) { // whichever copy may be sound is away
			r.unhealed = nil
		}
		for _, name := range failed {
			if r.Copies[name].Outcome == layout.FixityPassed {
				r.healed = append(r.healed, name)
			}
		}
	}
	if before == 0 && !s.wasDamaged(r, look) {
		return r, nil
	}
	r.recorded = true
	return r, s.record(ctx, r)
}

// wasDamaged reports whether the item's record says that some copy is that was looked at, or is there no more.
func (s *sweeping) wasDamaged(r Result, look view) bool {
	v, err := s.ledger.Store.Tip()
	if err != nil {
		return true
	}
	d, err := ledger.ReadDeposits(v, r.Item)
	return err != nil || slices.ContainsFunc(Result{Copies: knownCopies(d)}.Failed(), func(name string) bool {
		found, looked := r.Copies[name]
		return looked && found.Outcome != layout.FixityDown && found.Outcome != layout.FixityNewer || !looked && look.of == "" && len(look.at) == 0
	})
}

// take counts what was found of an item.
func (s *sweeping) take(ctx context.Context, r Result, err error, told func(Result), stop context.CancelCauseFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, errAtWork):
		s.out.Passed++
		return nil
	case err != nil && (ctx.Err() != nil || fault.Is(err, fault.Busy)):
		return err // it is so of all
	case err != nil:
		s.errs = append(s.errs, err)
		return nil
	}
	if r.unhealed != nil {
		s.errs = append(s.errs, r.unhealed)
	}
	s.note(r)
	told(r)
	if n := s.out.Damaged() + s.out.Healed; n >= mostFailed && s.out.Checked() <= firstItems {
		stop(fmt.Errorf("%d of the first %d items are damaged: a disk may be at fault, and nothing more was read", n, s.out.Checked()))
	}
	if len(s.page.Items) < pageRows {
		return nil
	}
	return s.turn(ctx)
}

func (s *sweeping) note(r Result) {
	at := row{s.ledger.Now(), map[string]string{}, r.recorded}
	worst := howOK
	if r.Newer() != "" {
		s.out.Newer++
	}
	for name, found := range r.Copies {
		switch found.Outcome {
		case layout.FixityPassed:
			at.Copies[name] = howOK
		case layout.FixityDown:
			at.Copies[name] = howAway
			s.out.Away[r.awayAs(name)]++
		case layout.FixityNewer:
			at.Copies[name] = howAway // as what was catalogued
		case layout.FixityFailed:
			at.Copies[name] = cmp.Or(found.How, HowChanged)
			worst = at.Copies[name]
		}
	}
	delete(s.out.Away, "")
	seen := slices.ContainsFunc(slices.Collect(maps.Values(at.Copies)), func(how string) bool { return how != howAway })
	if len(r.Copies) == 0 || len(at.Copies) > 0 && !seen { // none is where was looked, or all are away
		return
	}
	switch {
	case worst == HowMissing:
		s.out.Missing++
	case worst == HowUnreadable:
		s.out.Unreadable++
	case worst != howOK:
		s.out.Changed++
	case len(r.healed) > 0:
		s.out.Healed++
	default:
		s.out.OK++
	}
	if seen {
		s.page.Items[r.Item] = at
	}
}

// awayAs is by which name a copy is counted that is away; "": it is counted by another name.
func (r Result) awayAs(name string) string {
	switch {
	case r.catalog != "" && name == Source:
		return "catalog " + string(r.catalog)
	case r.catalog != "" && name == Content: // the same object
		return ""
	}
	return name
}

// turn commits the page. mu is the caller's.
func (s *sweeping) turn(ctx context.Context) error {
	s.out.Pages++
	data, err := layout.EncodeJSON(s.page)
	if err != nil {
		return err
	}
	n := len(s.page.Items)
	s.page.Items = map[layout.ItemID]row{}
	return s.commit(ctx, fmt.Sprintf("%s-%04d.json", s.key, s.out.Pages), data, fmt.Sprintf("fixity: page %d, %s", s.out.Pages, layout.Count(n, "item")), nil)
}

// end commits the last page, and the record.
func (s *sweeping) end(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.page.Items) > 0 {
		if err := s.turn(ctx); err != nil {
			return err
		}
	}
	s.out.Ended = s.ledger.Now()
	data, err := layout.EncodeJSON(s.out)
	if err != nil {
		return err
	}
	outcome := layout.FixityPassed
	if s.out.Damaged() > 0 || s.out.Stopped != "" {
		outcome = layout.FixityFailed
	}
	return s.commit(ctx, s.key+".json", data, fmt.Sprintf("fixity: %s %s, %d damaged, %d healed", s.out.Of, layout.Count(s.out.Checked(), "item"), s.out.Damaged(), s.out.Healed),
		[]ledger.Trailer{{"Bagpipe-Sweep", outcome}})
}

func (s *sweeping) commit(ctx context.Context, path string, data []byte, subject string, trailers []ledger.Trailer) error {
	who := s.who
	_, err := s.ledger.Store.Commit(ctx, func(gitstore.Reader) (*gitstore.Change, error) {
		return &gitstore.Change{Files: map[string][]byte{path: data}, Author: who.Author,
			Message: ledger.Message(subject, s.out.Stopped, append(trailers, ledger.Trailer{"Bagpipe-Agent", who.Agent}))}, nil
	})
	return err
}

// toSweep lists the items of a sweep, those looked at longest ago first.
func (c *Checks) toSweep(what Sweep) ([]layout.ItemID, error) {
	which := Which{Sample: what.Sample, Older: what.Older, of: what}
	if which.Sample == 0 && which.Older == 0 {
		which.Sample = 1 // for the order
	}
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	if what.Of == OfCatalogs {
		if which.Items, err = inCatalogs(c, v); err != nil || len(which.Items) == 0 {
			return nil, err
		}
	}
	items, err := c.choose(which)
	if err != nil || what.Every == 0 {
		return items, err
	}
	last, err := lastSweep(v, what)
	if err != nil {
		return nil, err
	}
	since := c.ledger.Now().Sub(last)
	if last.IsZero() || since > what.Every {
		since = min(24*time.Hour, what.Every)
	}
	n := int(math.Ceil(float64(len(items)) * float64(max(since, 0)) / float64(what.Every)))
	due, err := c.choose(Which{Items: which.Items, Older: what.Every, Sample: 1, of: what})
	if err != nil {
		return nil, err
	}
	seen, err := seenBySweeps(v, what, c.ledger.Now(), len(items))
	if err != nil {
		return nil, err
	}
	// Those never looked at are not all due at once, when there are very many.
	due = slices.DeleteFunc(due, func(id layout.ItemID) bool { return seen[id].IsZero() })
	return items[:min(len(items), max(n, len(due), 1))], nil
}

// inCatalogs lists the items whose object stays in a catalog, but for those that its scan found gone.
func inCatalogs(c *Checks, v gitstore.View) (items []layout.ItemID, err error) {
	gone := map[layout.Name]map[layout.ItemID]bool{}
	for it := range c.index.Loaded().Items() {
		rec, err := c.ledger.Read(v, it.ID, "")
		if err != nil || rec.Manifest.Source.Place == nil || it.Disposed() {
			continue
		}
		name := rec.Manifest.Source.Place.Catalog
		if gone[name] == nil {
			if gone[name], err = c.Gone(name); fault.Is(err, fault.NotFound) {
				continue // the catalog was removed
			}
			if err != nil {
				return nil, err
			}
		}
		if !gone[name][it.ID] {
			items = append(items, it.ID)
		}
	}
	return items, nil
}
