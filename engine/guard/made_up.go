package guard

import (
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// madeUp tells of attempts that nobody made, and of those in this engine's name; see the
// package comment.
func (g *Guard) madeUp(c gitstore.Commit, before, now ledger.Records) (unclaimed, forged []string) {
	a, errA := state.Decode(before.Execution)
	b, errB := state.Decode(now.Execution)
	if errA != nil || errB != nil { // an item is new, or judged as it was
		return nil, nil
	}
	forged = state.Forged(a, b, g.ledger.ID)
	back := func(t gitstore.Trailer) bool { return t.Key == "Bagpipe-Recovered" || t.Key == answersTrailer }
	switch {
	case ledger.ByBagpipe(c) && slices.ContainsFunc(c.Trailers, back): // what was done comes back as a whole
		return nil, forged
	case ledger.ByBagpipe(c):
		return state.Unclaimed(a, b, state.Person{}), forged
	}
	return state.Unclaimed(a, b, state.Person{Address: ledger.OneLine("<"+c.Author.Email+">", 200), Hand: c.Author.Email == c.Committer.Email}), forged
}

// misstated tells of statuses in a commit by hand that do not follow from its record.
func misstated(c gitstore.Commit, id layout.ItemID, now ledger.Records, plans state.Plans) []string {
	m, err := layout.DecodeManifest(now.Manifest)
	if err != nil || ledger.ByBagpipe(c) || !now.Sound(id) {
		return nil
	}
	return state.Misstated(now.Execution, m.Since, plans)
}
