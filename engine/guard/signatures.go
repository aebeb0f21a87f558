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

// The rules are: whether a signature counts is asked of the list in the commit's parent. The
// first list is anybody's. A change of it counts when a key signed it that was listed before;
// else the list is put back. Of those whose commits must be signed (trust: require:), one
// that is not is kept, and the items that it touched are held. A commit of a site counts as
// signed when a later one of the same window, by a site and signed, rests on it. Join commits
// are signed by nobody: they follow from their parents.

// Whose commits may have to be signed.
const (
	People = "people"
	Sites  = "sites"
)

// classOf says whose a commit is; "": it is nobody's.
func classOf(c gitstore.Commit) string {
	switch {
	case c.Committer.Email == gitstore.JoinerEmail:
		return ""
	case ledger.ByBagpipe(c):
		return Sites
	}
	return People
}

// Vouched says why nobody who was listed in the commit's first parent vouches for a commit;
// nil: somebody does. none reports whether there was no list.
func Vouched(l *ledger.Ledger, c gitstore.Commit) (none bool, err error) {
	signers, err := listAt(l, c.Parents)
	if err != nil {
		return false, err
	}
	return signers.None(), vouch(l, signers, c.Hash)
}

func listAt(l *ledger.Ledger, parents []gitstore.Hash) (trust.Signers, error) {
	if len(parents) == 0 {
		return trust.ParseSigners(nil), nil
	}
	v, err := l.Store.At(parents[0])
	if err != nil {
		return trust.Signers{}, err
	}
	data, err := ledger.ReadOptional(v, layout.SignersFile)
	return trust.ParseSigners(data), err
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

// signersAt is the list that counts for a commit: that of its parent, or the one that should
// be there.
func (x *examiner) signersAt(at *branch, main gitstore.Hash) (data []byte, err error) {
	if at.signers != nil {
		return at.signers.data, nil
	}
	if main.IsZero() {
		return nil, nil
	}
	v, err := x.view(main)
	if err != nil {
		return nil, err
	}
	return ledger.ReadOptional(v, layout.SignersFile)
}

// list judges a change of the list of those who sign.
func (x *examiner) list(c gitstore.Commit, main gitstore.Hash, at *branch, others map[gitstore.Hash]*branch) error {
	before, err := x.signersAt(at, main)
	if err != nil {
		return err
	}
	v, err := x.view(c.Hash)
	if err != nil {
		return err
	}
	now, err := ledger.ReadOptional(v, layout.SignersFile)
	if err != nil || string(now) == string(before) {
		at.signers = nil
		return err
	}
	signers := trust.ParseSigners(before)
	if signers.None() || vouch(x.g.ledger, signers, c.Hash) == nil {
		at.signers = nil
		return nil
	}
	for p, b := range others { // another parent's, where it counts
		was, err := x.signersAt(b, p)
		if err != nil {
			return err
		}
		if b.signers == nil && string(was) == string(now) {
			at.signers = nil
			return nil
		}
	}
	if at.signers == nil {
		at.signers = &pinnedVerdict{data: before, commit: c}
	}
	return nil
}

// unsigned says what is wrong with a commit that has to be signed; "" is nothing.
func (x *examiner) unsigned(c gitstore.Commit, main gitstore.Hash, at *branch) (string, error) {
	class := classOf(c)
	if class == "" || x.covered[c.Hash] || main.IsZero() {
		return "", nil
	}
	if wanted, err := x.requires(main, class); err != nil || !wanted {
		return "", err
	}
	before, err := x.signersAt(at, main)
	if err != nil {
		return "", err
	}
	signers := trust.ParseSigners(before)
	if signers.None() {
		return "", nil
	}
	if err := vouch(x.g.ledger, signers, c.Hash); err != nil {
		return fmt.Sprintf("changed the item in a commit that nobody who is listed vouches for: %v", err), nil
	}
	return "", nil
}

// requires reports whether those of a class must sign, by the settings at a commit.
func (x *examiner) requires(at gitstore.Hash, class string) (bool, error) {
	if x.g.Requires == nil {
		return false, nil
	}
	v, err := x.g.ledger.Store.At(at)
	if err != nil {
		return false, err
	}
	return slices.Contains(x.g.Requires(v), class), nil
}

// cover notes the commits of sites that a later one, which is signed, rests on. commits are
// parents first.
func (x *examiner) cover(commits []gitstore.Commit) error {
	x.covered = map[gitstore.Hash]bool{}
	if len(commits) == 0 {
		return nil
	}
	if wanted, err := x.requires(commits[len(commits)-1].Hash, Sites); err != nil || !wanted {
		return err
	}
	signed := map[gitstore.Hash]bool{} // by themselves, or covered
	for _, c := range slices.Backward(commits) {
		if classOf(c) != Sites {
			continue
		}
		if !signed[c.Hash] {
			none, err := Vouched(x.g.ledger, c)
			signed[c.Hash] = err == nil && !none
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
