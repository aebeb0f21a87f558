package guard

import (
	"context"
	"fmt"
	"slices"

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
	rivals  map[gitstore.Hash][]byte       // by a merge of two lists, of which nobody can tell which was first, the one it left
	covered map[gitstore.Hash]bool         // commits that a signed one rests on
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
