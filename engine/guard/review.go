package guard

import (
	"context"
	"errors"
	"slices"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Breach is what one commit did that is not lawful.
type Breach struct {
	Item   layout.ItemID // "": of a pinned definition
	Commit gitstore.Commit
	What   []string
	Open   bool // no later commit answered it
	// Peaceful is of a merge that only lacks something, and of a revert that only takes
	// away: an answer makes it whole, and holds nothing; and of values in conflict, for which it holds the item.
	Peaceful bool

	meant *state.Reversal
}

// Review holds commits, parents first, against their parents, and changes nothing. They are
// all that lead from one commit, zero for the empty history, to the last of them. It gives
// every breach, the first first; and the lists of those who sign as they should be, of the commits that have
// another. tip is what the commits are to be joined to; zero: they are in the history.
func (g *Guard) Review(ctx context.Context, from, tip gitstore.Hash, commits []gitstore.Hash) (told []Breach, lists map[gitstore.Hash][]byte, err error) {
	x := newExaminer(g, window{from: from}, newBranch())
	x.tip, x.offered = tip, !tip.IsZero()
	x.tell = func(id layout.ItemID, b breach) {
		what := b.what
		if b.conflict {
			what = []string{"left values in conflict, and nothing holds the item: " + strings.Join(what, "; ")}
		}
		told = append(told, Breach{Item: id, Commit: b.commit, What: what, Peaceful: b.lacks || b.meant != nil || b.conflict, meant: b.meant})
	}
	read := make([]gitstore.Commit, len(commits))
	for i, h := range commits {
		var err error
		if read[i], err = g.commit(h); err != nil {
			return nil, nil, err
		}
	}
	last, err := x.all(ctx, read)
	if err != nil {
		return nil, nil, err
	}
	for i, b := range told {
		v := last.items[b.Item]
		told[i].Open = v != nil && len(v.breaches) > 0
	}
	v := last.signers
	if v == nil && len(read) > 0 {
		if v, err = x.listToJoin(ctx, read[len(read)-1]); err != nil {
			return nil, nil, err
		}
	}
	if v != nil {
		told = append(told, Breach{Commit: v.commit, What: []string{"changed " + layout.SignersFile + ", and no key that was listed signed that"}, Open: true})
	}
	for _, r := range x.rivals {
		what := "joined two lists in " + layout.SignersFile + " that were begun apart, and no key that the other one lists signed either: which was first the history does not tell"
		told = append(told, Breach{Commit: r.of, What: []string{what}, Open: !r.settled})
	}
	for p, v := range last.files {
		what := "changed or removed a pinned definition"
		if v.why != "" {
			what = "changed " + p + " " + v.why
		}
		told = append(told, Breach{Commit: v.commit, What: []string{what}, Open: true})
	}
	lists = map[gitstore.Hash][]byte{}
	for h, v := range x.lists {
		lists[h] = v.data
	}
	return told, lists, nil
}

// Judge says what is not lawful in the change of an item's records by one commit.
func Judge(id layout.ItemID, before, now ledger.Records, plans state.Plans) []string {
	_, breaches := judge(id, before, now, plans)
	return breaches
}

// TooLate says why a revert that nothing answers means nothing any more where the records are as they are in v; "": it
// does mean something, or is none.
func (g *Guard) TooLate(v gitstore.View, b Breach) (why string, err error) {
	if b.meant == nil || !b.Open {
		return "", nil
	}
	x, of, err := g.recordAt(v, b.Item)
	if x != nil && slices.ContainsFunc(b.meant.Intents, func(k layout.IntentKey) bool { _, there := x.Intents[k]; return !there }) {
		if v, err = g.ledger.Store.At(b.Commit.Parents[0]); err == nil { // what it takes away comes with the revert
			x, of, err = g.recordAt(v, b.Item)
		}
	}
	if x == nil || err != nil {
		return "", err // an answer says what is wrong with the record
	}
	x.Manifest = of.Manifest
	if m, err := layout.DecodeManifest(of.Manifest); err == nil {
		x.Since = m.Since
	}
	plans := g.ledger.PlansAt(v)
	x.Recompute(plans)
	author := ledger.PersonActor(b.Commit.Author)
	var late *state.IllegalError
	if err := state.Revert(x, *b.meant, plans, g.ledger.IntentKey, g.ledger.Now(), author.Agent, state.RevertedBy); errors.As(err, &late) {
		return "it comes too late: " + late.Error(), nil
	}
	return "", err
}

// recordAt reads an item's record in v; nil: it cannot be used.
func (g *Guard) recordAt(v gitstore.View, id layout.ItemID) (*state.Execution, ledger.Records, error) {
	of, err := ledger.StandingOf(g.ledger, v, id)
	if err != nil {
		return nil, of, err
	}
	x, err := state.Decode(of.Execution)
	if err != nil {
		return nil, of, nil //nolint:nilerr // see nil
	}
	return x, of, nil
}
