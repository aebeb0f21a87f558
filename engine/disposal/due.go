package disposal

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/recognise"
	"bagpipe/engine/warrant"
	"bagpipe/layout"
)

// Due is an item that was kept for its time.
type Due struct {
	Item       layout.ItemID `json:"item"`
	Collection layout.Name   `json:"collection"`
	Label      string        `json:"label"`
	Rule       string        `json:"rule"` // FILE/N
	Since      time.Time     `json:"since"`
	Then       string        `json:"then"` // dispose or review
	Authority  string        `json:"authority,omitempty"`
	Open       string        `json:"open,omitempty"`  // the proposal that names it
	Stays      string        `json:"stays,omitempty"` // why it is not to be proposed now
}

// Due lists the items whose time is over, those due longest first. The index is loaded.
func (k *Keeper) Due(ctx context.Context) (due []Due, err error) {
	v, err := k.Ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	policy := warrant.PolicyOf(k.Settings.Current().Rules)
	if len(policy) == 0 {
		return nil, nil
	}
	open, err := k.open(ctx)
	if err != nil {
		return nil, err
	}
	now := k.Ledger.Now()
	for it := range k.Index.Loaded().Items() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if it.Disposed() || it.Broken != "" {
			continue
		}
		f, err := ledger.ReadRecords(v, it.ID)
		if err != nil {
			return nil, err
		}
		r := policy.For(f.Manifest, f.Execution, now)
		if r == nil {
			continue
		}
		from, reached := it.Milestones[r.After]
		since, ever := r.Due(from)
		if !reached || !ever || since.After(now) {
			continue
		}
		d := Due{Item: it.ID, Collection: it.Collection, Label: it.Label, Rule: r.Name, Since: since, Then: r.Then, Authority: r.Authority, Open: open[it.ID]}
		if rec, err := k.Ledger.Read(v, it.ID, ""); err != nil {
			d.Stays = err.Error()
		} else if err := k.mayGo(ctx, v, rec); err != nil {
			d.Stays = err.Error()
		}
		due = append(due, d)
	}
	slices.SortFunc(due, func(a, b Due) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Item, b.Item)) })
	return due, nil
}

// mostProposed is how many items one proposal has, so that people can read it.
const mostProposed = 500

// ProposeDue proposes, by the engine, what rules say is to be disposed of and may go; of each
// rule by itself. It gives the keys, and how many items wait for a person's review.
func (k *Keeper) ProposeDue(ctx context.Context) (keys []string, items, review int, err error) {
	due, err := k.Due(ctx)
	if err != nil {
		return nil, 0, 0, err
	}
	byRule := map[string][]Due{}
	var rules []string
	for _, d := range due {
		switch {
		case d.Open != "" || d.Stays != "":
		case d.Then == recognise.ThenReview:
			review++
		default:
			if byRule[d.Rule] == nil {
				rules = append(rules, d.Rule)
			}
			byRule[d.Rule] = append(byRule[d.Rule], d)
		}
	}
	for _, rule := range rules {
		for some := range slices.Chunk(byRule[rule], mostProposed) {
			draft := Draft{Reason: fmt.Sprintf("kept for its time, by rule %s", rule), Authority: some[0].Authority, rules: map[layout.ItemID]string{}}
			for _, d := range some {
				draft.Items = append(draft.Items, d.Item)
				draft.rules[d.Item] = d.Rule
			}
			key, err := k.propose(ctx, draft, k.Ledger.ByEngine())
			if err != nil {
				return keys, items, review, err
			}
			keys, items = append(keys, key), items+len(some)
		}
	}
	return keys, items, review, nil
}
