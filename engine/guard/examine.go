package guard

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// The rules are: the commits of a window are gone through, parents first. Each is
// a branch: which items differ from what is committed there, because they were
// mended, or were touched within the window. A commit is held against its parent,
// a merge against the join of its parents; what its branch holds in the end is
// what should be, and that is what its children are held against. So a record is
// never put back to an older state than the last acknowledged one, however long
// nobody looked, and each breach is found in the commit that made it.

// branch is how the items should be at one commit; those not in it are as they
// are committed there.
type branch struct {
	items map[layout.ItemID]*verdict
	files map[string]*fileVerdict // see restored
	// signers is the list of those who sign as it should be, where the window begins or ends; nil: as it is committed.
	signers *fileVerdict
}

func newBranch() *branch {
	return &branch{items: map[layout.ItemID]*verdict{}, files: map[string]*fileVerdict{}}
}

func (b *branch) clone() *branch {
	return &branch{items: maps.Clone(b.items), files: maps.Clone(b.files), signers: b.signers}
}

// onlyOpen keeps what has to be answered.
func (b *branch) onlyOpen() *branch {
	maps.DeleteFunc(b.items, func(_ layout.ItemID, v *verdict) bool { return len(v.breaches) == 0 })
	return b
}

// want is an item as it should be, on the branch of a commit.
func (b *branch) want(id layout.ItemID, commit gitstore.Hash) version {
	if v := b.items[id]; v != nil && (!v.stands || len(v.breaches) > 0) {
		return v.want
	}
	return version{at: commit} // what stood earlier on it may have been delivered since
}

// examiner goes through one window.
type examiner struct {
	*looker
	reading  *gitstore.Scanning
	beside   []*looker // look at the items of a commit that touched many
	w        window
	seed     *branch // at w.from
	branches map[gitstore.Hash]*branch
	heirs    map[gitstore.Hash]int       // children yet to come
	fromHere map[gitstore.Hash]bool      // it descends from w.from
	within   map[gitstore.Hash]bool      // it is one of the window
	tell     func(layout.ItemID, breach) // of each breach, once; may be nil

	signing
	offered bool   // the commits ask to be joined
	wrong   string // with the signature of the commit at hand; "": nothing
}

func newExaminer(g *Guard, w window, seed *branch) *examiner {
	return &examiner{looker: &looker{g: g}, w: w, seed: seed,
		branches: map[gitstore.Hash]*branch{}, heirs: map[gitstore.Hash]int{}, fromHere: map[gitstore.Hash]bool{w.from: true}, within: map[gitstore.Hash]bool{}}
}

// all holds commits, parents first, against their parents, and gives the last one's branch.
func (x *examiner) all(ctx context.Context, commits []gitstore.Commit) (last *branch, err error) {
	last = x.seed
	x.reading = gitstore.NewScanning(x.g.ledger.Store, false)
	defer func() { err = errors.Join(err, x.reading.Close()) }()
	x.read = x.reading.Scan()
	for _, c := range commits {
		x.within[c.Hash] = true
		here := len(c.Parents) == 0 && x.fromHere[gitstore.Hash{}]
		for _, p := range c.Parents {
			x.heirs[p]++
			here = here || x.fromHere[p]
		}
		x.fromHere[c.Hash] = here
	}
	if err := x.readLists(ctx, commits); err != nil {
		return nil, err
	}
	if err := x.cover(ctx, commits); err != nil {
		return nil, err
	}
	ahead, stop := lookAhead(ctx, x, commits)
	defer stop()
	for i, c := range commits {
		x.begin()
		if last, err = x.commit(ctx, c, ahead(i)); err != nil {
			return nil, err
		}
		last.signers = x.lists[c.Hash]
	}
	return last, nil
}

// parent gives the branch at a parent of c: its own when no other child needs it.
func (x *examiner) parent(h gitstore.Hash) *branch {
	b := x.branches[h]
	if b == nil {
		if h == x.w.from {
			return x.seed.clone()
		}
		return newBranch()
	}
	if x.heirs[h]--; x.heirs[h] > 0 {
		return b.clone()
	}
	delete(x.branches, h)
	return b
}

// commit holds one commit against its parents; known is what was found of it ahead.
func (x *examiner) commit(ctx context.Context, c gitstore.Commit, known foreseen) (*branch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	main := x.mainParent(c)
	at := x.parent(main)
	touched, files, err := known.touched, known.files, known.err
	if touched == nil && err == nil {
		touched, files, err = x.changed(ctx, main, c.Hash)
	}
	if err != nil {
		return nil, err
	}
	others := map[gitstore.Hash]*branch{}
	for _, p := range c.Parents {
		if p == main {
			continue
		}
		b := x.parent(p)
		others[p] = b
		if x.bases[p], err = x.g.ledger.Store.Base(ctx, main, p); err != nil {
			return nil, err
		}
		for id := range b.items {
			touched[id] = true
		}
	}
	if len(c.Parents) == 0 {
		main = gitstore.Hash{}
	}
	if x.wrong, err = x.unsigned(ctx, c, main, at); err != nil {
		return nil, err
	}
	if len(others) > 0 && x.wrong == "" {
		if touched, err = x.ofJoin(ctx, c, at, others, touched); err != nil {
			return nil, err
		}
	}
	for ids := range slices.Chunk(slices.Collect(maps.Keys(touched)), itemsAtOnce) {
		done, err := x.lookAll(ctx, against{c, main, at, others}, ids, known.looked)
		if err != nil {
			return nil, err
		}
		for i, id := range ids {
			if err := x.item(ctx, c, main, at, others, id, done[i]); err != nil {
				return nil, err
			}
		}
	}
	if err := errors.Join(x.pinned(c, main, at, files), x.settings(ctx, against{c, main, at, others}, files)); err != nil {
		return nil, err
	}
	x.branches[c.Hash] = at
	return at, nil
}

// ofJoin gives those of the items touched by a merge that are to be held against their parents:
// where the merge is the join of what was committed, items that one side alone touched are what
// they were on that side, which was looked at, unless something is to be answered there.
func (x *examiner) ofJoin(ctx context.Context, c gitstore.Commit, at *branch, others map[gitstore.Hash]*branch, touched map[layout.ItemID]bool) (map[layout.ItemID]bool, error) {
	both, is, err := x.g.Joiner.both(ctx, c)
	if err != nil || !is {
		return touched, err
	}
	of := maps.Clone(both)
	open := func(items map[layout.ItemID]*verdict) {
		for id, v := range items {
			if len(v.breaches) > 0 || v.want.at.IsZero() {
				of[id] = true
			}
		}
	}
	open(at.items)
	for _, b := range others {
		open(b.items)
	}
	for id := range touched {
		if !of[id] { // the main parent's verdict may be of before the other side touched it
			at.items[id] = &verdict{want: version{at: c.Hash}, stands: true}
		}
	}
	return of, nil
}

// mainParent is the parent whose line holds what this workspace knew.
func (x *examiner) mainParent(c gitstore.Commit) gitstore.Hash {
	for _, p := range c.Parents {
		if x.fromHere[p] {
			return p
		}
	}
	if len(c.Parents) == 0 {
		return gitstore.Hash{}
	}
	return c.Parents[0]
}

// item holds one item, of which l is what the commit did, against what it should be.
func (x *examiner) item(ctx context.Context, c gitstore.Commit, main gitstore.Hash, at *branch, others map[gitstore.Hash]*branch, id layout.ItemID, l looked) error {
	want := at.want(id, main)
	open, err := x.open(ctx, main, at, others, id)
	if err != nil {
		return err
	}
	next := &verdict{want: version{at: c.Hash}, stands: len(l.what) == 0}
	switch {
	case len(l.what) > 0 && (l.now.Absent() || l.now.Retired != layout.Standing{}) && len(others) == 0: // kept by name: there may be very many
		next.want = want
	case len(l.what) > 0:
		next.want = version{files: l.mended, beside: c.Hash}
		if l.untrue || l.now.Absent() || l.now.Retired != (layout.Standing{}) {
			next.want.beside = cmp.Or(want.at, want.beside)
		}
	}
	if len(l.what) > 0 {
		b := breach{commit: c, what: l.what}
		switch {
		case l.misstates:
			b.lacks = true
		case len(others) > 0:
			b.lacks, err = x.onlyLacks(id, l.now, l.before, main, others)
		default:
			b.meant = meant(l.before, l.now)
		}
		if err != nil {
			return err
		}
		next.breaches = add(open, b)
		if len(next.breaches) > len(open) {
			x.found(id, next.breaches[len(next.breaches)-1])
		}
	} else { // such as a revert, which a join undid
		next.breaches = slices.DeleteFunc(open, func(b breach) bool {
			if b.conflict {
				return !slices.Contains(b.what, l.conflict)
			}
			return !b.forged && b.meant == nil || answers(c, b.commit.Hash)
		})
	}
	if open := len(next.breaches); l.conflict != "" {
		if next.breaches = add(next.breaches, breach{commit: c, what: []string{l.conflict}, conflict: true}); len(next.breaches) > open {
			x.found(id, next.breaches[open])
		}
	}
	if what, err := x.onTrust(ctx, c, main, l); err != nil {
		return err
	} else if what != "" {
		l.unclaimed = append(slices.Clip(l.unclaimed), what)
	}
	if len(l.unclaimed) > 0 {
		x.found(id, breach{commit: c, what: l.unclaimed, forged: true})
	}
	if forged := append(l.forged, l.unclaimed...); len(forged) > 0 {
		next.breaches = append(next.breaches, breach{commit: c, what: forged, forged: true})
	}
	if x.wrong != "" && !l.now.Same(l.before) && !onlyHolds(c, l.before, l.now) {
		b := breach{commit: c, what: []string{"changed the item " + x.wrong}, forged: true}
		next.breaches = append(next.breaches, b)
		x.found(id, b)
	}
	at.items[id] = next
	return nil
}

// found tells of a breach whoever wants to be told.
func (x *examiner) found(id layout.ItemID, b breach) {
	if x.tell != nil {
		x.tell(id, b)
	}
}

// onlyLacks reports whether a merge's records hold nothing but what the join of its parents,
// or one of these, has as well: it was made where no driver joins.
func (x *examiner) onlyLacks(id layout.ItemID, now, before ledger.Records, main gitstore.Hash, others map[gitstore.Hash]*branch) (bool, error) {
	of := []ledger.Records{before}
	for p := range others {
		r, err := recordsOf(x.g.ledger, x.view, version{at: p}, id)
		if err != nil {
			return false, err
		}
		of = append(of, r)
	}
	r, err := recordsOf(x.g.ledger, x.view, version{at: main}, id)
	if err != nil {
		return false, err
	}
	of = append(of, r)
	if now.Absent() {
		return slices.ContainsFunc(of, ledger.Records.Absent), nil
	}
	is, err := state.Decode(now.Execution)
	if err != nil {
		return false, nil
	}
	var records []*state.Execution
	for _, r := range of {
		if o, err := state.Decode(r.Execution); err == nil && o.Item == is.Item {
			records = append(records, o)
		}
	}
	for _, file := range []func(ledger.Records) []byte{
		func(r ledger.Records) []byte { return r.Manifest }, func(r ledger.Records) []byte { return r.Inventory }, func(r ledger.Records) []byte { return r.Deposits },
	} {
		if !slices.ContainsFunc(of, func(r ledger.Records) bool { return string(file(r)) == string(file(now)) }) {
			return false, nil
		}
	}
	return state.OnlyLacks(is, records...), nil
}
