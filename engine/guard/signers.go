package guard

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/trust"
	"bagpipe/layout"
)

// The rules are: the first list of those who sign is anybody's. A change counts when a key signed it that
// is listed where the change is made; and, where another line changed the list as well, one that is listed
// on that line, or that such a change added. Of two lines the list is that of the one whose change counts for the
// other; both, where each does. Where neither does, such as with two first lists, there is no join: a
// branch stays out, and what somebody merged by hand is put back to what this workspace had. A change
// that does not count is put back.

// sided is the list on one side of a join.
type sided struct {
	at   gitstore.Hash
	list []byte
}

var errTwoLists = fault.New(fault.Refused, "both sides changed "+layout.SignersFile+
	", and no key that the other one lists signed that: take the list of the other side, commit that, and join again")

// joinSigners gives the list of a join, the same whichever side comes first; was is that of their base.
func joinSigners(ctx context.Context, l *ledger.Ledger, was []byte, a, b sided) ([]byte, error) {
	switch {
	case sameLines(a.list, b.list):
		return slices.MaxFunc([][]byte{a.list, b.list}, bytes.Compare), nil
	case sameLines(a.list, was):
		return b.list, nil
	case sameLines(b.list, was):
		return a.list, nil
	}
	ofA, errA := counts(ctx, l, was, a, b)
	ofB, errB := counts(ctx, l, was, b, a)
	switch err := errors.Join(errA, errB); {
	case err != nil:
		return nil, err
	case ofA && ofB:
		return uniteLines(was, a.list, b.list), nil
	case ofA:
		return a.list, nil
	case ofB:
		return b.list, nil
	}
	return nil, errTwoLists
}

// counts reports whether one side's list is that of the last change there that counts for the other side.
func counts(ctx context.Context, l *ledger.Ledger, was []byte, side, other sided) (bool, error) {
	commits, err := l.Store.Beyond(ctx, side.at, other.at)
	if err != nil {
		return false, err
	}
	accepted := other.list
	var last []byte
	done := false
	for _, h := range commits {
		now, err := listAt(l, []gitstore.Hash{h})
		if err != nil {
			return false, err
		}
		v, err := l.Store.At(h)
		if err != nil {
			return false, err
		}
		c, err := v.About()
		if err != nil {
			return false, err
		}
		kept := false
		for _, p := range c.Parents {
			then, err := listAt(l, []gitstore.Hash{p})
			if err != nil {
				return false, err
			}
			kept = kept || sameLines(then, now)
		}
		merged := len(c.Parents) > 1 && len(without(linesOf(now), linesOf(append(slices.Clip(accepted), was...)))) == 0
		if !kept && (merged || vouch(l, trust.ParseSigners(accepted), h) == nil) {
			added := without(linesOf(now), linesOf(was))
			accepted = append(slices.Clip(accepted), "\n"+strings.Join(added, "\n")+"\n"...)
			last, done = now, true
		}
	}
	return done && sameLines(last, side.list), nil
}

// uniteLines takes away what either side took away, and adds what either added, sorted.
func uniteLines(was, a, b []byte) []byte {
	old, ofA, ofB := linesOf(was), linesOf(a), linesOf(b)
	kept := slices.DeleteFunc(slices.Clone(old), func(line string) bool { return !slices.Contains(ofA, line) || !slices.Contains(ofB, line) })
	added := without(append(ofA, ofB...), old)
	slices.Sort(added)
	all := append(kept, slices.Compact(added)...)
	if len(all) == 0 {
		return nil
	}
	return []byte(strings.Join(all, "\n") + "\n")
}

func linesOf(list []byte) (lines []string) {
	for line := range strings.Lines(string(list)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func without(lines, others []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(others, line) })
}

func sameLines(a, b []byte) bool {
	x, y := linesOf(a), linesOf(b)
	return len(without(x, y)) == 0 && len(without(y, x)) == 0
}

// signers joins the list where both sides changed it.
func (j *joining) signers(ctx context.Context, a, b []byte) ([]byte, error) {
	was, err := ledger.ReadOptional(j.base, layout.SignersFile)
	if err != nil {
		return nil, err
	}
	return joinSigners(ctx, j.ledger, was, sided{j.a.Commit(), a}, sided{j.b.Commit(), b})
}

// readLists notes which of some commits, parents first, do not have the list that they should.
func (x *examiner) readLists(ctx context.Context, commits []gitstore.Commit) error {
	x.lists, x.rivals = map[gitstore.Hash]*fileVerdict{}, map[gitstore.Hash][]byte{}
	if x.seed.signers != nil {
		x.lists[x.w.from] = x.seed.signers
	}
	for _, c := range commits {
		v, err := x.list(ctx, c)
		if err != nil {
			return err
		}
		if v != nil {
			x.lists[c.Hash] = v
		}
	}
	return nil
}

// listAt is the list that counts at a commit.
func (x *examiner) listAt(h gitstore.Hash) ([]byte, error) {
	if v := x.lists[h]; v != nil {
		return v.data, nil
	}
	return listAt(x.g.ledger, []gitstore.Hash{h})
}

// list judges the list at a commit; nil: it is as it should be.
func (x *examiner) list(ctx context.Context, c gitstore.Commit) (*fileVerdict, error) {
	main := x.mainParent(c)
	before, err := x.listAt(main)
	if err != nil {
		return nil, err
	}
	now, err := listAt(x.g.ledger, []gitstore.Hash{c.Hash})
	if err != nil {
		return nil, err
	}
	for _, p := range c.Parents {
		if before, err = x.listOfMerge(ctx, c, main, p, before, now); err != nil {
			return nil, err
		}
	}
	if sameLines(now, before) {
		return nil, nil
	}
	signers := trust.ParseSigners(before)
	if signers.None() || vouch(x.g.ledger, signers, c.Hash) == nil {
		return nil, nil
	}
	for merge, list := range x.rivals {
		if ledger.ByBagpipe(c) && answers(c, merge) && sameLines(list, now) {
			x.lists[main] = &fileVerdict{data: list, commit: c} // an engine could tell
			return nil, nil
		}
	}
	for _, p := range c.Parents {
		if v := x.lists[p]; v != nil && string(v.data) == string(before) {
			return v, nil
		}
	}
	return &fileVerdict{data: before, commit: c}, nil
}

// listOfMerge gives the list of a merge, before being that without its parent p.
func (x *examiner) listOfMerge(ctx context.Context, c gitstore.Commit, main, p gitstore.Hash, before, now []byte) ([]byte, error) {
	theirs, err := x.listAt(p)
	if err != nil || p == main || string(theirs) == string(before) {
		return before, err
	}
	base, err := x.g.ledger.Store.Base(ctx, main, p)
	if err != nil {
		return nil, err
	}
	was, err := listAt(x.g.ledger, []gitstore.Hash{base})
	if err != nil {
		return nil, err
	}
	united, err := joinSigners(ctx, x.g.ledger, was, sided{main, before}, sided{p, theirs})
	if !errors.Is(err, errTwoLists) {
		return united, err
	}
	if x.fromHere[p] { // nobody can tell which was first
		if sameLines(theirs, now) {
			before, theirs = theirs, before
		}
		x.rivals[c.Hash] = theirs
	}
	return before, nil
}

// listToJoin judges the list that a branch would bring to the tip; nil: none, or one that counts there.
func (x *examiner) listToJoin(ctx context.Context, last gitstore.Commit) (*fileVerdict, error) {
	if x.tip.IsZero() || x.tip == x.w.from {
		return nil, nil
	}
	was, errWas := listAt(x.g.ledger, []gitstore.Hash{x.w.from})
	here, errHere := listAt(x.g.ledger, []gitstore.Hash{x.tip})
	theirs, errTheirs := x.listAt(last.Hash)
	if err := errors.Join(errWas, errHere, errTheirs); err != nil {
		return nil, err
	}
	if sameLines(theirs, was) || sameLines(theirs, here) || trust.ParseSigners(here).None() {
		return nil, nil
	}
	ok, err := counts(ctx, x.g.ledger, was, sided{last.Hash, theirs}, sided{x.tip, here})
	if ok || err != nil {
		return nil, err
	}
	return &fileVerdict{commit: last}, nil
}
