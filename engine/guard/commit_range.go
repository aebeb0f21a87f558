package guard

import (
	"container/list"
	"context"

	"bagpipe/engine/gitstore"
)

// commitsOf lists what is reached from w.to and not from w.from, parents first.
// Of a window that is too long it makes one nameless commit, committed as its last.
func (g *Guard) commitsOf(ctx context.Context, w window) ([]gitstore.Commit, error) {
	if w.from == w.to {
		return nil, nil
	}
	found, seen := map[gitstore.Hash]gitstore.Commit{}, 0
	old, wanted := map[gitstore.Hash]bool{w.from: true}, map[gitstore.Hash]bool{w.to: true}
	for c, err := range g.ledger.Store.History(ctx, gitstore.HistoryOptions{From: w.to}) {
		if err != nil {
			return nil, err
		}
		delete(wanted, c.Hash)
		for _, p := range c.Parents {
			if old[c.Hash] {
				old[p] = true
				delete(wanted, p)
			} else if !old[p] {
				wanted[p] = true
			}
		}
		if !old[c.Hash] {
			found[c.Hash] = c
		}
		if len(wanted) == 0 {
			break
		}
		if seen++; len(found) > g.pace.most || seen > 4*g.pace.most { // a branch that forked very long ago
			return []gitstore.Commit{{Hash: w.to, Parents: []gitstore.Hash{w.from}, Committer: found[w.to].Committer}}, nil
		}
	}
	return parentsFirst(found, w.to), nil
}

// nameless reports whether a commit stands for a window that was too long.
func nameless(c gitstore.Commit) bool { return c.Author == (gitstore.Signature{}) }

// parentsFirst orders the commits that lead to tip.
func parentsFirst(found map[gitstore.Hash]gitstore.Commit, tip gitstore.Hash) []gitstore.Commit {
	var order []gitstore.Commit
	seen := map[gitstore.Hash]bool{}
	stack := list.New()
	stack.PushBack(tip)
	for stack.Len() > 0 {
		h := stack.Back().Value.(gitstore.Hash)
		c, ok := found[h]
		ready := true
		if ok && !seen[h] {
			for _, p := range c.Parents {
				if _, in := found[p]; in && !seen[p] {
					stack.PushBack(p)
					ready = false
				}
			}
		}
		if !ready {
			continue
		}
		stack.Remove(stack.Back())
		if ok && !seen[h] {
			seen[h] = true
			order = append(order, c)
		}
	}
	return order
}
