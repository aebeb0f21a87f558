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
	items  map[layout.ItemID]*verdict
	pinned map[string]*pinnedVerdict
	// signers is the list of those who sign as it should be; nil: as it is committed.
	signers *pinnedVerdict
}

func newBranch() *branch {
	return &branch{items: map[layout.ItemID]*verdict{}, pinned: map[string]*pinnedVerdict{}}
}

func (b *branch) clone() *branch {
	return &branch{items: maps.Clone(b.items), pinned: maps.Clone(b.pinned), signers: b.signers}
}

// onlyOpen keeps what has to be answered.
func (b *branch) onlyOpen() *branch {
	maps.DeleteFunc(b.items, func(_ layout.ItemID, v *verdict) bool { return len(v.breaches) == 0 })
	return b
}

// examiner goes through one window.
type examiner struct {
	g        *Guard
	w        window
	seed     *branch // at w.from
	branches map[gitstore.Hash]*branch
	heirs    map[gitstore.Hash]int  // children yet to come
	fromHere map[gitstore.Hash]bool // it descends from w.from
	within   map[gitstore.Hash]bool // it is one of the window
	read     *gitstore.Scan
	views    map[gitstore.Hash]gitstore.View // of the commit at hand
	bases    map[gitstore.Hash]gitstore.Hash // of the commit at hand: what its main parent has in common with another
	tell     func(layout.ItemID, breach)     // of each breach, once; may be nil

	covered map[gitstore.Hash]bool // commits that a signed one rests on
	wrong   string                 // with the signature of the commit at hand; "": nothing
}

// examineWindow gives the branch at the window's end.
func (g *Guard) examineWindow(ctx context.Context, w window, seed *branch) (*branch, error) {
	commits, err := g.commitsOf(ctx, w)
	if err != nil {
		return nil, err
	}
	return newExaminer(g, w, seed).all(ctx, commits)
}

func newExaminer(g *Guard, w window, seed *branch) *examiner {
	return &examiner{g: g, w: w, seed: seed,
		branches: map[gitstore.Hash]*branch{}, heirs: map[gitstore.Hash]int{}, fromHere: map[gitstore.Hash]bool{w.from: true}, within: map[gitstore.Hash]bool{}}
}

// all holds commits, parents first, against their parents, and gives the last one's branch.
func (x *examiner) all(ctx context.Context, commits []gitstore.Commit) (last *branch, err error) {
	last = x.seed
	reading := gitstore.NewScanning(x.g.ledger.Store, false)
	defer func() { err = errors.Join(err, reading.Close()) }()
	x.read = reading.Scan()
	for _, c := range commits {
		x.within[c.Hash] = true
		for _, p := range c.Parents {
			x.heirs[p]++
		}
	}
	if err := x.cover(commits); err != nil {
		return nil, err
	}
	for _, c := range commits {
		x.views, x.bases = map[gitstore.Hash]gitstore.View{}, map[gitstore.Hash]gitstore.Hash{}
		if last, err = x.commit(ctx, c); err != nil {
			return nil, err
		}
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

// commit holds one commit against its parents.
func (x *examiner) commit(ctx context.Context, c gitstore.Commit) (*branch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	main := x.mainParent(c)
	at := x.parent(main)
	touched, pinned, err := x.changed(ctx, main, c.Hash)
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
		x.fromHere[c.Hash] = x.fromHere[c.Hash] || x.fromHere[p]
	}
	x.fromHere[c.Hash] = x.fromHere[c.Hash] || x.fromHere[main]
	if len(c.Parents) == 0 {
		main = gitstore.Hash{}
	}
	if x.wrong, err = x.unsigned(c, main, at); err != nil {
		return nil, err
	}
	if err := x.list(c, main, at, others); err != nil {
		return nil, err
	}
	if len(others) > 0 && x.wrong == "" {
		if touched, err = x.ofJoin(ctx, c, at, others, touched); err != nil {
			return nil, err
		}
	}
	for id := range touched {
		if err := x.item(ctx, c, main, at, others, id); err != nil {
			return nil, err
		}
	}
	if err := x.pinned(c, main, at, pinned); err != nil {
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
			at.items[id] = &verdict{want: version{at: c.Hash}}
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

// changed lists the items and pinned definitions that differ between two commits.
func (x *examiner) changed(ctx context.Context, from, to gitstore.Hash) (items map[layout.ItemID]bool, pinned []string, err error) {
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
		if id, rest, ok := layout.ItemOfPath(d.Path); ok && ledger.IsJudged(rest, d.Is.IsZero()) {
			items[id] = true
		}
		moved, err := ledger.MovedLines(x.read, d)
		if err != nil {
			return err
		}
		for id := range moved {
			items[id] = true
		}
		if digest, ok := pinnedDigest(d.Path); ok {
			pinned = append(pinned, digest)
		}
		return ctx.Err()
	})
	return items, pinned, err
}

// looked is what a commit did to an item's records.
type looked struct {
	before, now       ledger.Records
	mended            ledger.Records // now, as it may be
	what              []string       // the breaches
	misstates         bool           // they are of the records' own statements
	unclaimed, forged []string       // attempts that nobody made
}

// look holds an item's records against what they were.
func (x *examiner) look(ctx context.Context, c gitstore.Commit, main gitstore.Hash, want version, others map[gitstore.Hash]*branch, id layout.ItemID) (l looked, err error) {
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
	if stray, err := x.stray(ctx, c, id, l.before, l.now); err != nil {
		return l, err
	} else if stray != "" && len(l.what) == 0 {
		l.mended, l.what = l.before, []string{stray}
		l.mended.Retired = layout.Standing{}
	}
	if len(others) == 0 {
		lost, err := lostDeliveries(x.view, main, view, id, l.now)
		if err != nil {
			return l, err
		}
		l.what = append(l.what, lost...)
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
	if len(l.what) == 0 && len(others) == 0 && len(l.unclaimed) == 0 {
		l.what = misstated(c, id, l.now, plans)
		l.misstates = len(l.what) > 0
	}
	return l, nil
}

// item holds one item against what it should be.
func (x *examiner) item(ctx context.Context, c gitstore.Commit, main gitstore.Hash, at *branch, others map[gitstore.Hash]*branch, id layout.ItemID) error {
	want := version{at: main}
	if was := at.items[id]; was != nil {
		want = was.want
	}
	open, err := x.open(ctx, main, at, others, id)
	if err != nil {
		return err
	}
	l, err := x.look(ctx, c, main, want, others, id)
	if err != nil {
		return err
	}
	next := &verdict{want: version{at: c.Hash}}
	switch {
	case len(l.what) > 0 && (l.now.Absent() || l.now.Retired != layout.Standing{}) && len(others) == 0: // kept by name: there may be very many
		next.want = want
	case len(l.what) > 0:
		next.want = version{files: l.mended, beside: cmp.Or(want.at, want.beside)}
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
		next.breaches = slices.DeleteFunc(open, func(b breach) bool { return !b.forged && b.meant == nil || answers(c, b.commit.Hash) })
	}
	if len(l.unclaimed) > 0 {
		x.found(id, breach{commit: c, what: l.unclaimed, forged: true})
	}
	if forged := append(l.forged, l.unclaimed...); len(forged) > 0 {
		next.breaches = append(next.breaches, breach{commit: c, what: forged, forged: true})
	}
	if x.wrong != "" && string(l.before.Manifest)+string(l.before.Execution) != string(l.now.Manifest)+string(l.now.Execution) {
		b := breach{commit: c, what: []string{x.wrong}, forged: true}
		next.breaches = append(next.breaches, b)
		x.found(id, b)
	}
	at.items[id] = next
	return nil
}

// stray says so where a commit says that an item's records last stood in one that does not lead
// to it, and may be gone some day, or beside which other files stood.
func (x *examiner) stray(ctx context.Context, c gitstore.Commit, id layout.ItemID, before, now ledger.Records) (string, error) {
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
func (x *examiner) joined(id layout.ItemID, want version, others map[gitstore.Hash]*branch, plans state.Plans) (ledger.Records, error) {
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

// join unites the records of two parents.
// What an answer left out does not come back by a branch that still has it.
func (x *examiner) join(id layout.ItemID, before ledger.Records, other, base version, plans state.Plans) (ledger.Records, error) {
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
func (x *examiner) view(h gitstore.Hash) (v gitstore.View, err error) {
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
