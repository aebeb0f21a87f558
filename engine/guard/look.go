package guard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// looker finds what commits did to items. It is one goroutine's.
type looker struct {
	g     *Guard
	read  *gitstore.Scan
	views map[gitstore.Hash]gitstore.View // of the commit at hand
	bases map[gitstore.Hash]gitstore.Hash // of the commit at hand: what its main parent has in common with another
}

// begin turns to another commit.
func (x *looker) begin() {
	x.views, x.bases = map[gitstore.Hash]gitstore.View{}, map[gitstore.Hash]gitstore.Hash{}
}

// changed lists the items, and the files beside them, that differ between two commits.
func (x *looker) changed(ctx context.Context, from, to gitstore.Hash) (items map[layout.ItemID]bool, files []string, err error) {
	items = map[layout.ItemID]bool{}
	var before gitstore.View
	if !from.IsZero() {
		if before, err = x.view(from); err != nil {
			return nil, nil, err
		}
	}
	now, err := x.view(to)
	if err != nil {
		return nil, nil, err
	}
	err = x.read.Diff(before, now, func(d gitstore.Difference) error {
		if id, rest, ok := layout.ItemOfPath(d.Path); ok {
			var was, is []byte
			if rest == layout.DeliveryJSON {
				var errWas, errIs error
				was, errWas = x.read.Blob(d, d.Was)
				is, errIs = x.read.Blob(d, d.Is)
				if err := errors.Join(errWas, errIs); err != nil {
					return err
				}
			}
			if ledger.IsJudged(rest, was, is) {
				items[id] = true
			}
		}
		moved, err := ledger.MovedLines(x.read, d)
		if err != nil {
			return err
		}
		for id := range moved {
			items[id] = true
		}
		if !strings.HasPrefix(d.Path, layout.ItemsDir+"/") && !layout.IsRetiredPath(d.Path) {
			files = append(files, d.Path)
		}
		return ctx.Err()
	})
	return items, files, err
}

// looked is what a commit did to an item's records.
type looked struct {
	before, now       ledger.Records
	mended            ledger.Records // now, as it may be
	what              []string       // the breaches
	misstates         bool           // they are of the records' own statements
	untrue            bool           // one is of what stands beside them
	unclaimed, forged []string       // attempts that nobody made
	conflict          string         // see unsettled
}

// stood and stands report whether there are records in the tip, before and now.
func (l *looked) stood() bool { return !l.before.Absent() && l.before.Retired == (layout.Standing{}) }
func (l *looked) stands() bool {
	return l.stood() && !l.now.Absent() && l.now.Retired == (layout.Standing{})
}

// look holds an item's records against what they were.
func (x *looker) look(ctx context.Context, c gitstore.Commit, main gitstore.Hash, want version, others map[gitstore.Hash]*branch, id layout.ItemID) (l looked, err error) {
	view, err := x.view(c.Hash)
	if err != nil {
		return l, err
	}
	plans := x.g.ledger.PlansAt(view)
	if l.before, err = x.joined(id, want, others, plans); err != nil {
		return l, err
	}
	if l.now, err = ledger.StandingOf(x.g.ledger, view, id); err != nil {
		return l, err
	}
	held := hold(id, l.before, l.now, plans)
	l.mended, l.what = held.mended, held.breaches
	if len(l.what) > 0 && l.now.Absent() && l.before.Retired != (layout.Standing{}) {
		_, err := ledger.ReadRetired(view, id)
		if newer, is := errors.AsType[*layout.SchemaError](err); is {
			l.what = []string{"left a record that cannot be used: " + newer.Error()}
		} else if err != nil {
			return l, err
		}
	}
	if stray, err := x.stray(ctx, c, id, l.before, l.now); err != nil {
		return l, err
	} else if stray != "" && len(l.what) == 0 {
		l.mended, l.what = l.before, []string{stray}
		l.mended.Retired = layout.Standing{}
	}
	if len(others) == 0 && l.stood() {
		untrue, err := untrueBeside(x.view, cmp.Or(want.at, want.beside, main), view, id, l.before, l.now)
		if err != nil {
			return l, err
		}
		l.what, l.untrue = append(l.what, untrue.what...), len(untrue.what) > 0
		if len(l.what) == 0 {
			as, err := untrueSummary(view, id, l.before, l.now)
			if err != nil {
				return l, err
			}
			if as != nil {
				l.mended.Manifest, l.what = as, []string{"changed quality in " + layout.ManifestJSON}
			}
		}
	}
	if len(others) == 0 && !nameless(c) && !ledger.ByBagpipe(c) && l.stands() && !bytes.Equal(l.mended.Deposits, l.before.Deposits) {
		if l.mended.Deposits = l.before.Deposits; len(l.what) == 0 || !bytes.Equal(l.now.Deposits, l.before.Deposits) {
			l.what = append(l.what, "changed "+layout.DepositsJSON+", which engines do alone")
		}
	}
	unfounded, err := disposals(ctx, x.g.ledger, view, id, l.before, &l.mended, plans)
	if err != nil {
		return l, err
	}
	l.what = append(l.what, unfounded...)
	if len(l.what) > 0 || held.is == nil {
		held.decode(l.before, l.mended)
	}
	l.unclaimed, l.forged = madeUp(x.g.ledger.ID, c, held.was, held.is)
	l.unclaimed = append(l.unclaimed, madeUpItem(c, l.before, l.now, held.is)...)
	if len(l.what) == 0 && len(others) == 0 && len(l.unclaimed) == 0 {
		l.what = misstated(c, id, l.now, plans)
		l.misstates = len(l.what) > 0
	}
	if len(l.what) == 0 {
		l.conflict = unsettled(l.now)
	}
	return l, nil
}

// stray says so where a commit says that an item's records last stood in one that does not lead
// to it, and may be gone some day, or beside which other files stood.
func (x *looker) stray(ctx context.Context, c gitstore.Commit, id layout.ItemID, before, now ledger.Records) (string, error) {
	if now.Retired == before.Retired || now.Retired == (layout.Standing{}) {
		return "", nil
	}
	leads, err := LeadsTo(ctx, x.g.ledger, now.Retired, c)
	if err != nil {
		return "", err
	}
	if !leads {
		return "retired the item by records in a commit that is not in the history", nil
	}
	if len(c.Parents) != 1 || before.Retired != (layout.Standing{}) {
		return "", nil
	}
	view, err := x.view(c.Parents[0])
	if err != nil {
		return "", err
	}
	same, err := ledger.SameBeside(x.g.ledger, view, now.Retired, id)
	if err != nil || same {
		return "", err
	}
	return "retired the item by a commit where what stands beside its records was another", nil
}

// joined is what an item's records should be before a commit: those of its main parent, joined
// with those of the others.
func (x *looker) joined(id layout.ItemID, want version, others map[gitstore.Hash]*branch, plans state.Plans) (ledger.Records, error) {
	before, err := recordsOf(x.g.ledger, x.view, want, id)
	for p, b := range others {
		other := version{at: p}
		if v := b.items[id]; v != nil {
			other = v.want
		}
		if err == nil {
			before, err = x.join(id, before, other, version{at: x.bases[p]}, plans)
		}
	}
	return before, err
}

// join unites the records of two parents.
// What an answer left out does not come back by a branch that still has it.
func (x *looker) join(id layout.ItemID, before ledger.Records, other, base version, plans state.Plans) (ledger.Records, error) {
	o, err := recordsOf(x.g.ledger, x.view, other, id)
	if err != nil || !o.Sound(id) {
		return before, err
	}
	if !before.Sound(id) {
		return o, nil
	}
	was, err := recordsOf(x.g.ledger, x.view, base, id)
	if err != nil {
		return before, err
	}
	united, err := JoinRecords(id, was, before, o, plans)
	if err != nil {
		return before, err
	}
	a, errA := state.Decode(before.Execution)
	b, errB := state.Decode(united.Execution)
	if err := errors.Join(errA, errB); err != nil {
		return before, err
	}
	b, _ = state.Mend(a, b, plans)
	united.Execution = b.Encode()
	return united, nil
}

// view is kept for the commit at hand: there may be very many items.
func (x *looker) view(h gitstore.Hash) (v gitstore.View, err error) {
	v, ok := x.views[h]
	if !ok {
		if v, err = x.read.At(h); err == nil {
			x.views[h] = v
		}
	}
	return v, err
}

// recordsOf reads an item's records as they should be; at opens a commit.
func recordsOf(l *ledger.Ledger, at func(gitstore.Hash) (gitstore.View, error), v version, id layout.ItemID) (ledger.Records, error) {
	if v.at.IsZero() {
		return v.files, nil
	}
	view, err := at(v.at)
	if err != nil {
		return ledger.Records{}, err
	}
	return ledger.StandingOf(l, view, id)
}
