package history

import (
	"container/heap"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/engine/gitstore/internal/trees"
)

// Options choose commits. Path: those that changed that file or folder, against their
// first parent. From: where to begin, zero for the tip. Limit: how many at most, 0 for
// all.
type Options struct {
	Path  string
	From  odb.Hash
	Limit int
}

// Commit is one commit of the history.
type Commit struct {
	Hash              odb.Hash
	Parents           []odb.Hash
	Author, Committer repo.Signature
	When              time.Time // of the committer
	Subject, Body     string    // Body without the trailers
	Trailers          []Trailer
}

// Walk gives commits until yield is false, the newest first (by committer's time; a parent
// never before the child that led to it).
func Walk(ctx context.Context, r *repo.Repo, o Options, yield func(Commit) bool) error {
	objects := filepath.Join(r.Git, "objects")
	w := &walk{db: r.DB, graph: odb.OpenGraph(objects), info: filepath.Join(objects, "info"), trees: map[odb.Hash]odb.Hash{}}
	defer w.graph.Close()
	w.met = make([]uint64, w.graph.Len()/64+1)
	if !trees.IsRoot(o.Path) {
		w.path = strings.TrimSuffix(o.Path, "/")
		w.key, w.keyed = odb.NewPathKey(w.path)
		w.down = newDescent(r.DB, w.path)
	}
	if err := w.push(o.From); err != nil {
		return err
	}
	for n, steps := 0, 0; w.queue.Len() > 0 && (o.Limit <= 0 || n < o.Limit); steps++ {
		if steps%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		c, changed, err := w.next()
		if err != nil {
			return err
		}
		if !changed {
			continue
		}
		n++
		commit, err := r.DB.ReadCommit(c.hash)
		if err != nil {
			return err
		}
		if !yield(NewCommit(c.hash, commit)) {
			return nil
		}
	}
	return nil
}

// logged is a commit that was met. A commit of the commit-graph is known by its position,
// and not read before it is given out.
type logged struct {
	hash    odb.Hash
	tree    odb.Hash
	when    int64
	order   int
	pos     uint32     // in the graph
	places  []uint32   // parents of a commit in the graph
	parents []odb.Hash // parents of another commit
}

// newer orders by time; of one second, the commit that was met first.
func (c *logged) newer(d *logged) bool {
	if c.when != d.when {
		return c.when > d.when
	}
	return c.order < d.order
}

// walk goes back through the history.
type walk struct {
	db    *odb.DB
	graph *odb.Graph
	info  string                // the folder of the graph
	trees map[odb.Hash]odb.Hash // of the commits met that are not in the graph
	met   []uint64              // one bit for each commit in the graph
	queue newestFirst[*logged]
	order int
	free  []*logged

	path  string
	key   odb.PathKey
	keyed bool
	down  *descent
}

// next takes the newest commit, queues its parents, and reports whether the commit changed
// the path.
func (w *walk) next() (c *logged, changed bool, err error) {
	c = heap.Pop(&w.queue).(*logged)
	for _, pos := range c.places {
		if err := w.pushPlace(pos); err != nil {
			return nil, false, err
		}
	}
	for _, h := range c.parents {
		if err := w.push(h); err != nil {
			return nil, false, err
		}
	}
	if w.path == "" {
		return c, true, nil
	}
	// Most commits of the graph are answered by their filter.
	if w.keyed && len(c.places) > 0 && !w.graph.MayChange(c.pos, w.key) {
		w.free = append(w.free, c)
		return nil, false, nil
	}
	parent, err := w.parentTree(c)
	if err != nil {
		return nil, false, err
	}
	changed, err = w.down.differs(c.tree, parent)
	return c, changed, err
}

func (w *walk) push(h odb.Hash) error {
	if pos, ok := w.graph.Find(h); ok {
		return w.pushPlace(pos)
	}
	if _, met := w.trees[h]; met {
		return nil
	}
	c, err := w.db.ReadCommit(h)
	if err != nil {
		return err
	}
	w.trees[h] = c.Tree
	w.order++
	heap.Push(&w.queue, &logged{hash: h, tree: c.Tree, when: c.Committer.When.Unix(), order: w.order, parents: c.Parents})
	return nil
}

func (w *walk) pushPlace(pos uint32) error {
	if w.met[pos/64]&(1<<(pos%64)) != 0 {
		return nil
	}
	w.met[pos/64] |= 1 << (pos % 64)
	w.order++
	c := &logged{}
	if n := len(w.free); n > 0 {
		c, w.free = w.free[n-1], w.free[:n-1]
	}
	g, places, ok := w.graph.Commit(pos, c.places[:0])
	if !ok {
		return w.malformed(pos)
	}
	*c = logged{hash: g.Hash, tree: g.Tree, when: g.When, order: w.order, pos: pos, places: places}
	heap.Push(&w.queue, c)
	return nil
}

func (w *walk) malformed(pos uint32) error {
	return fmt.Errorf("read commit-graph: malformed at commit %d; remove %s", pos, w.info)
}

// parentTree gives the first parent's tree, zero without a parent. next has met the
// parent.
func (w *walk) parentTree(c *logged) (odb.Hash, error) {
	switch {
	case len(c.places) > 0:
		g, _, ok := w.graph.Commit(c.places[0], nil)
		if !ok {
			return odb.Hash{}, w.malformed(c.places[0])
		}
		return g.Tree, nil
	case len(c.parents) == 0:
		return odb.Hash{}, nil
	}
	if tree, ok := w.trees[c.parents[0]]; ok {
		return tree, nil
	}
	p, err := w.db.ReadCommit(c.parents[0]) // in the graph
	return p.Tree, err
}
