package guard

import (
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
	back := func(t gitstore.Trailer) bool { return t.Key == "Bagpipe-Recovered" || t.Key == answersTrailer }
	switch {
	case nameless(c):
		return nil, forged
	case ledger.ByBagpipe(c) && slices.ContainsFunc(c.Trailers, back): // what was done comes back as a whole
		return nil, forged
	case ledger.ByBagpipe(c):
		return state.Unclaimed(a, b, state.Person{}), forged
	}
	return state.Unclaimed(a, b, state.Person{Address: ledger.OneLine("<"+c.Author.Email+">", 200), Hand: c.Author.Email == c.Committer.Email}), forged
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
