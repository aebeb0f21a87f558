package guard

import (
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
	x := newExaminer(g, w, seed)
	x.tip = w.from
	return x.all(ctx, commits)
}

// compareEnds gives the branch at the end of a window by one commit that stands for it; nil: it
// has to be gone through. Steps that are lawful one by one may not fit as one, such as two new
// versions, and a signature is of its commit alone.
func (g *Guard) compareEnds(ctx context.Context, w window, seed *branch, one []gitstore.Commit) (*branch, error) {
	for _, end := range []gitstore.Hash{w.from, w.to} {
		if list, err := listAt(g.ledger, []gitstore.Hash{end}); err != nil || len(list) > 0 {
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
	for p, v := range last.files {
		if v != seed.files[p] {
			return nil, nil
		}
	}
	return last, nil
}

// commitsOf lists what is reached from w.to and not from w.from, parents first.
// Of a window of more than most it makes one nameless commit, committed as its last.
func (g *Guard) commitsOf(ctx context.Context, w window, most int) ([]gitstore.Commit, error) {
	between, err := g.ledger.Store.Beyond(ctx, w.to, w.from)
	if err != nil {
		return nil, err
	}
	if len(between) > most {
		last, err := g.commit(w.to)
		return []gitstore.Commit{{Hash: w.to, Parents: []gitstore.Hash{w.from}, Committer: last.Committer}}, err
	}
	commits := make([]gitstore.Commit, len(between))
	for i, h := range between {
		if commits[i], err = g.commit(h); err != nil {
			return nil, err
		}
	}
	return commits, ctx.Err()
}

func (g *Guard) commit(h gitstore.Hash) (gitstore.Commit, error) {
	v, err := g.ledger.Store.At(h)
	if err != nil {
		return gitstore.Commit{}, err
	}
	return v.About()
}

// nameless reports whether a commit stands for a window that was too long.
func nameless(c gitstore.Commit) bool { return c.Author == (gitstore.Signature{}) }
