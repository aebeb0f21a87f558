package guard

import (
	"context"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// madeUp tells of attempts that nobody made, and of those in an engine's name; see the
// package comment.
func madeUp(engine layout.EngineID, c gitstore.Commit, a, b *state.Execution) (unclaimed, forged []string) {
	if a == nil || b == nil { // an item is new, or judged as it was
		return nil, nil
	}
	forged = state.Forged(a, b, engine)
	switch {
	case nameless(c), asAWhole(c):
		return nil, forged
	case ledger.ByBagpipe(c):
		return state.Unclaimed(a, b, state.Person{}), forged
	}
	return state.Unclaimed(a, b, state.Person{Address: ledger.OneLine("<"+c.Author.Email+">", 200), Hand: byHand(c)}), forged
}

// byHand reports whether a commit is a person's own, and was not merely brought along, as by a rebase.
func byHand(c gitstore.Commit) bool {
	return !ledger.ByBagpipe(c) && c.Author.Email == c.Committer.Email
}

const recoveredTrailer = "Bagpipe-Recovered"

// asAWhole reports whether a commit is by a Bagpipe that brings back what was done as a whole.
func asAWhole(c gitstore.Commit) bool {
	return ledger.ByBagpipe(c) && slices.ContainsFunc(c.Trailers, func(t gitstore.Trailer) bool { return t.Key == recoveredTrailer || t.Key == answersTrailer })
}

// madeUpItem says so where a commit made an item up; is is its record, nil where that cannot be used. A workspace
// admits an item with nothing done to it, and all else came by commits of their own.
func madeUpItem(c gitstore.Commit, before, now ledger.Records, is *state.Execution) []string {
	switch {
	case !before.Absent(), now.Absent(), now.Retired != layout.Standing{}, nameless(c), asAWhole(c):
		return nil
	case byHand(c), is != nil && !state.Admitted(is):
		return []string{"made the item up, which no workspace admitted so"}
	}
	return nil
}

// onTrust says so where a branch that asks to be joined brings an item back from a deposit, and nobody who is listed signed
// that: what was done to the item before stands in no commit.
func (x *examiner) onTrust(ctx context.Context, c gitstore.Commit, main gitstore.Hash, l looked) (string, error) {
	if !x.offered || !l.before.Absent() || l.now.Absent() || !asAWhole(c) || x.covered[c.Hash] {
		return "", nil
	}
	signers, err := x.signers(ctx, c, main)
	if err != nil || vouch(x.g.ledger, signers, c.Hash) == nil {
		return "", err
	}
	return "brought the item back from a deposit, in a commit that nobody who is listed vouches for", nil
}

// misstated tells of statuses in a commit by hand that do not follow from its record.
func misstated(c gitstore.Commit, id layout.ItemID, now ledger.Records, plans state.Plans) []string {
	if nameless(c) || ledger.ByBagpipe(c) {
		return nil
	}
	m, err := layout.DecodeManifest(now.Manifest)
	if err != nil || !now.Sound(id) {
		return nil
	}
	return state.Misstated(now.Execution, m.Since, plans)
}

// meant is what a commit means that only takes away what the record told of.
func meant(before, now ledger.Records) *state.Reversal {
	a, errA := state.Decode(before.Execution)
	b, errB := state.Decode(now.Execution)
	if errA != nil || errB != nil {
		return nil
	}
	if r, ok := state.Reverted(a, b); ok {
		return &r
	}
	return nil
}
