package guard

import (
	"container/list"
	"context"
	"math"

	"bagpipe/engine/gitstore"
)

// examineWindow gives the branch at the window's end.
func (g *Guard) examineWindow(ctx context.Context, w window, seed *branch) (*branch, error) {
	commits, err := g.commitsOf(ctx, w, g.pace.most)
	if err != nil {
		return nil, err
	}
	if len(commits) == 1 && nameless(commits[0]) {
		last, err := g.compareEnds(ctx, w, seed, commits)
		if err != nil || last != nil {
			return last, err
		}
		if commits, err = g.commitsOf(ctx, w, math.MaxInt); err != nil {
			return nil, err
		}
	}
	return newExaminer(g, w, seed).all(ctx, commits)
}

// compareEnds gives the branch at the end of a window by one commit that stands for it; nil: it
// has to be gone through. Steps that are lawful one by one may not fit as one, such as two new
// versions, and a signature is of its commit alone.
func (g *Guard) compareEnds(ctx context.Context, w window, seed *branch, one []gitstore.Commit) (*branch, error) {
	for _, end := range []gitstore.Hash{w.from, w.to} {
		if signers, err := listAt(g.ledger, []gitstore.Hash{end}); err != nil || !signers.None() {
			return nil, err
		}
	}
	last, err := newExaminer(g, w, seed).all(ctx, one)
	if err != nil || last.signers != seed.signers {
		return nil, err
	}
	for id, v := range last.items {
		if len(v.breaches) > 0 && v != seed.items[id] {
			return nil, nil
		}
	}
	for digest, v := range last.pinned {
		if v != seed.pinned[digest] {
			return nil, nil
		}
	}
	return last, nil
}

// commitsOf lists what is reached from w.to and not from w.from, parents first.
// Of a window of more than most it makes one nameless commit, committed as its last.
func (g *Guard) commitsOf(ctx context.Context, w window, most int) ([]gitstore.Commit, error) {
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
		if seen++; len(found) > most || seen/4 > most { // a branch that forked very long ago
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
