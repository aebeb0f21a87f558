package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/trust"
	"bagpipe/layout"
)

// The rules are: whether a signature counts is asked of the list in the commit's parent, as it should be
// there: a list that a branch changed unsigned, or began where the tip that it is joined to has one already,
// vouches for nothing. Of those whose commits must be signed (trust: require:), by the settings in the parent or
// at that tip, one that is not is kept, the items that it touched are held, and settings are put
// back. A commit of a site counts as
// signed when a later one of the same window, by a site and signed, rests on it. The join of two commits is
// signed by nobody: it follows from them.

// Whose commits may have to be signed.
const (
	People = "people"
	Sites  = "sites"
)

// signing is what an examiner knows of those who sign.
type signing struct {
	tip     gitstore.Hash                  // what the window's commits are joined to; zero: an audit's
	lists   map[gitstore.Hash]*fileVerdict // the lists that are not committed as they should be
	rivals  map[gitstore.Hash]*rival       // by a merge of two lists, of which nobody can tell which was first
	covered map[gitstore.Hash]bool         // commits that a signed one rests on
}

// rival is the list that a merge of two left.
type rival struct {
	list    []byte
	of      gitstore.Commit
	settled bool // an engine could tell, and has answered
}

// classesOf says whose a commit is; none: it is nobody's. Who pretends to join is held to be anybody.
func (x *examiner) classesOf(ctx context.Context, c gitstore.Commit) ([]string, error) {
	switch {
	case c.Committer.Email == gitstore.JoinerEmail:
		_, is, err := x.g.Joiner.both(ctx, c)
		if is || err != nil {
			return nil, err
		}
		return []string{People, Sites}, nil
	case ledger.ByBagpipe(c):
		return []string{Sites}, nil
	}
	return []string{People}, nil
}

// Vouched says why nobody who was listed in the commit's first parent vouches for a commit;
// nil: somebody does. none reports whether there was no list.
func Vouched(l *ledger.Ledger, c gitstore.Commit) (none bool, err error) {
	data, err := listAt(l, c.Parents)
	if err != nil {
		return false, err
	}
	return VouchedBy(l, data, c.Hash)
}

// VouchedBy is Vouched by a list.
func VouchedBy(l *ledger.Ledger, list []byte, h gitstore.Hash) (none bool, err error) {
	signers := trust.ParseSigners(list)
	return signers.None(), vouch(l, signers, h)
}

// listAt is the list as the first of some commits has it.
func listAt(l *ledger.Ledger, commits []gitstore.Hash) ([]byte, error) {
	if len(commits) == 0 || commits[0].IsZero() {
		return nil, nil
	}
	v, err := l.Store.At(commits[0])
	if err != nil {
		return nil, err
	}
	return ledger.ReadOptional(v, layout.SignersFile)
}

func vouch(l *ledger.Ledger, signers trust.Signers, h gitstore.Hash) error {
	v, err := l.Store.At(h)
	if err != nil {
		return err
	}
	payload, armored, err := v.Signed()
	if err == nil {
		_, _, err = signers.Vouch(payload, armored)
	}
	return err
}

// brought reports whether a commit comes to the tip from another line.
func (x *examiner) brought(c gitstore.Commit) bool {
	return !x.tip.IsZero() && (x.tip != x.w.from || !x.fromHere[c.Hash])
}

// unsigned says what is wrong with a commit that has to be signed; "" is nothing.
func (x *examiner) unsigned(ctx context.Context, c gitstore.Commit, main gitstore.Hash, at *branch) (string, error) {
	if main.IsZero() || x.covered[c.Hash] {
		return "", nil
	}
	wanted, err := x.requires(main, at)
	if err == nil && x.brought(c) {
		var there []string
		there, err = x.requires(x.tip, x.atTip())
		wanted = slices.Concat(wanted, there)
	}
	if err != nil || len(wanted) == 0 {
		return "", err
	}
	classes, err := x.classesOf(ctx, c)
	if err != nil || !slices.ContainsFunc(classes, func(class string) bool { return slices.Contains(wanted, class) }) {
		return "", err
	}
	signers, err := x.signers(ctx, c, main)
	if err != nil || signers.None() {
		return "", err
	}
	if err := vouch(x.g.ledger, signers, c.Hash); err != nil {
		return fmt.Sprintf("in a commit that nobody who is listed vouches for: %v", err), nil
	}
	return "", nil
}

// atTip is what should be at the tip otherwise than it is committed.
func (x *examiner) atTip() *branch {
	if x.tip == x.w.from {
		return x.seed
	}
	return newBranch()
}

// requires gives those who must sign, by the settings as they should be at a commit.
func (x *examiner) requires(h gitstore.Hash, at *branch) ([]string, error) {
	if x.g.Requires == nil {
		return nil, nil
	}
	v, err := x.g.ledger.Store.At(h)
	if err != nil {
		return nil, err
	}
	return x.g.Requires(mending{v, at.files}), nil
}

// signers are those whose signatures of a commit count.
func (x *examiner) signers(ctx context.Context, c gitstore.Commit, main gitstore.Hash) (trust.Signers, error) {
	before, err := x.listAt(main)
	if err != nil || !x.brought(c) {
		return trust.ParseSigners(before), err
	}
	there, err := x.listAt(x.tip)
	if err != nil || string(there) == string(before) {
		return trust.ParseSigners(before), err
	}
	base, err := x.g.ledger.Store.Base(ctx, x.tip, main)
	if err != nil {
		return trust.Signers{}, err
	}
	both, err := listAt(x.g.ledger, []gitstore.Hash{base})
	if trust.ParseSigners(both).None() { // the branch began its own
		before = there
	}
	return trust.ParseSigners(before), err
}

// cover notes the commits of sites that a later one, which is signed, rests on. commits are
// parents first.
func (x *examiner) cover(ctx context.Context, commits []gitstore.Commit) error {
	x.covered = map[gitstore.Hash]bool{}
	if len(commits) == 0 {
		return nil
	}
	wanted, err := x.requires(commits[len(commits)-1].Hash, x.atTip())
	if err == nil && !x.tip.IsZero() {
		var there []string
		there, err = x.requires(x.tip, x.atTip())
		wanted = slices.Concat(wanted, there)
	}
	if err != nil || !slices.Contains(wanted, Sites) {
		return err
	}
	signed := map[gitstore.Hash]bool{} // by themselves, or covered
	for _, c := range slices.Backward(commits) {
		if !ledger.ByBagpipe(c) || c.Committer.Email == gitstore.JoinerEmail {
			continue
		}
		if !signed[c.Hash] {
			signers, err := x.signers(ctx, c, x.mainParent(c))
			if err != nil {
				return err
			}
			signed[c.Hash] = !signers.None() && vouch(x.g.ledger, signers, c.Hash) == nil
		} else {
			x.covered[c.Hash] = true
		}
		if signed[c.Hash] {
			for _, p := range c.Parents {
				signed[p] = true
			}
		}
	}
	return nil
}

// answerSigners puts the list back. The turn is the caller's.
func (g *Guard) answerSigners(ctx context.Context) error {
	g.mu.Lock()
	v := g.signers
	g.mu.Unlock()
	if v == nil {
		return nil
	}
	did := false
	_, err := g.ledger.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		did = false
		now, err := ledger.ReadOptional(r, layout.SignersFile)
		if err != nil || string(now) == string(v.data) {
			return nil, err
		}
		did = true
		who := g.ledger.ByEngine()
		return &gitstore.Change{Files: map[string][]byte{layout.SignersFile: v.data}, Author: who.Author,
			Message: ledger.Message("answer: restored "+layout.SignersFile, breach{commit: v.commit}.by()+" changed it, and no key that was listed signed that",
				[]ledger.Trailer{{answersTrailer, v.commit.Hash.String()}, {"Bagpipe-Agent", who.Agent}})}, nil
	})
	if err != nil {
		return fmt.Errorf("restore %s: %w", layout.SignersFile, err)
	}
	g.mu.Lock()
	g.signers = nil
	g.mu.Unlock()
	if did {
		g.ledger.Warn(fmt.Sprintf("%s was changed by %s, and no key that was listed signed that; it has been restored", layout.SignersFile, breach{commit: v.commit}.by()))
	}
	return nil
}

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
	x.lists, x.rivals = map[gitstore.Hash]*fileVerdict{}, map[gitstore.Hash]*rival{}
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
	for merge, r := range x.rivals {
		if ledger.ByBagpipe(c) && answers(c, merge) && sameLines(r.list, now) {
			x.lists[main], r.settled = &fileVerdict{data: r.list, commit: c}, true
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
		x.rivals[c.Hash] = &rival{list: theirs, of: c}
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
