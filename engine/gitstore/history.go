package gitstore

import (
	"container/heap"
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"bagpipe/engine/gitstore/internal/odb"
)

// HistoryOptions choose commits. Path: those that changed that file or folder,
// against their first parent. From: where to begin, zero for the tip. Limit: how
// many at most, 0 for all.
type HistoryOptions struct {
	Path  string
	From  Hash
	Limit int
}

// Commit is one commit of the history.
type Commit struct {
	Hash              Hash
	Parents           []Hash
	Author, Committer Signature
	When              time.Time // of the committer
	Subject, Body     string    // Body without the trailers
	Trailers          []Trailer
}

// Trailer is one KEY: VALUE line of a message's last block.
type Trailer struct{ Key, Value string }

// History gives commits, the newest first (by committer's time; a parent never
// before its child that led to it). An error ends it.
func (s *Store) History(ctx context.Context, o HistoryOptions) iter.Seq2[Commit, error] {
	return func(yield func(Commit, error) bool) {
		if err := s.history(ctx, o, func(c Commit) bool { return yield(c, nil) }); err != nil {
			yield(Commit{}, err)
		}
	}
}

func (s *Store) history(ctx context.Context, o HistoryOptions, yield func(Commit) bool) error {
	from := o.From
	if from.IsZero() {
		v, err := s.Tip()
		if err != nil {
			return err
		}
		from = v.commit
	}
	w := &logWalk{s: s, graph: s.openGraph(), seen: map[Hash]Hash{}}
	defer w.graph.Close()
	w.done = make([]uint64, w.graph.Len()/64+1)
	if !isRoot(o.Path) {
		w.path = strings.TrimSuffix(o.Path, "/")
		w.key, w.keyed = odb.NewPathKey(w.path)
		w.down = newDescent(s, w.path)
	}
	if err := w.push(from); err != nil {
		return err
	}
	for n, steps := 0, 0; w.queue.Len() > 0 && (o.Limit <= 0 || n < o.Limit); steps++ {
		if steps%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		c := w.pop()
		if err := w.pushParents(c); err != nil {
			return err
		}
		if changed, err := w.changed(c); err != nil || !changed {
			if err != nil {
				return err
			}
			continue
		}
		n++
		commit, err := s.readCommit(c.hash)
		if err != nil {
			return err
		}
		if !yield(newCommit(c.hash, commit)) {
			return nil
		}
	}
	return nil
}

// logged is a commit that was met. Those in the commit-graph are known by their
// position, and not read before they are given out.
type logged struct {
	hash    Hash
	tree    Hash
	when    int64
	order   int
	inGraph bool
	pos     uint32
	parents []Hash   // of one that is not in the graph
	places  []uint32 // of one that is
}

// logWalk goes back through the history.
type logWalk struct {
	s     *Store
	graph *odb.Graph
	seen  map[Hash]Hash // commits not in the graph, and their trees
	done  []uint64      // commits in the graph: one bit each
	queue byNewest
	order int
	free  []*logged

	path  string
	key   odb.PathKey
	keyed bool
	down  *descent
}

func (w *logWalk) pop() *logged { return heap.Pop(&w.queue).(*logged) }

func (w *logWalk) push(h Hash) error {
	if pos, ok := w.graph.Find(h); ok {
		return w.pushPlace(pos)
	}
	if _, met := w.seen[h]; met {
		return nil
	}
	c, err := w.s.readCommit(h)
	if err != nil {
		return err
	}
	w.seen[h] = c.Tree
	w.order++
	heap.Push(&w.queue, &logged{hash: h, tree: c.Tree, when: c.Committer.When.Unix(), order: w.order, parents: c.Parents})
	return nil
}

func (w *logWalk) pushPlace(pos uint32) error {
	if w.done[pos/64]&(1<<(pos%64)) != 0 {
		return nil
	}
	w.done[pos/64] |= 1 << (pos % 64)
	w.order++
	c := w.blank()
	g, places, ok := w.graph.Commit(pos, c.places[:0])
	if !ok {
		return w.malformed(pos)
	}
	*c = logged{hash: g.Hash, tree: g.Tree, when: g.When, order: w.order, inGraph: true, pos: pos, places: places}
	heap.Push(&w.queue, c)
	return nil
}

func (w *logWalk) malformed(pos uint32) error {
	return fmt.Errorf("read commit-graph: malformed at commit %d; remove %s", pos, filepath.Join(w.s.git, "objects", "info"))
}

// blank reuses what changed has finished with.
func (w *logWalk) blank() *logged {
	if n := len(w.free); n > 0 {
		c := w.free[n-1]
		w.free = w.free[:n-1]
		return c
	}
	return &logged{}
}

func (w *logWalk) pushParents(c *logged) error {
	for _, pos := range c.places {
		if err := w.pushPlace(pos); err != nil {
			return err
		}
	}
	for _, h := range c.parents {
		if err := w.push(h); err != nil {
			return err
		}
	}
	return nil
}

// changed compares the path in a commit and in its first parent. Most commits of
// the graph are answered by their filter.
func (w *logWalk) changed(c *logged) (bool, error) {
	if w.path == "" {
		return true, nil
	}
	if c.inGraph && w.keyed && len(c.places) > 0 && !w.graph.MayChange(c.pos, w.key) {
		w.free = append(w.free, c)
		return false, nil
	}
	parent, err := w.parentTree(c)
	if err != nil {
		return false, err
	}
	return w.down.differs(c.tree, parent)
}

// parentTree gives the first parent's tree, zero without a parent. pushParents
// has met it.
func (w *logWalk) parentTree(c *logged) (Hash, error) {
	switch {
	case len(c.places) > 0:
		g, _, ok := w.graph.Commit(c.places[0], nil)
		if !ok {
			return Hash{}, w.malformed(c.places[0])
		}
		return g.Tree, nil
	case len(c.parents) == 0:
		return Hash{}, nil
	}
	if tree, ok := w.seen[c.parents[0]]; ok {
		return tree, nil
	}
	p, err := w.s.readCommit(c.parents[0]) // in the graph
	return p.Tree, err
}

// byNewest is a heap, the newest on top; of one second, the one met first.
type byNewest []*logged

func (q byNewest) Len() int { return len(q) }
func (q byNewest) Less(i, j int) bool {
	if q[i].when != q[j].when {
		return q[i].when > q[j].when
	}
	return q[i].order < q[j].order
}
func (q byNewest) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *byNewest) Push(x any)   { *q = append(*q, x.(*logged)) }
func (q *byNewest) Pop() any {
	old := *q
	c := old[len(old)-1]
	*q = old[:len(old)-1]
	return c
}

func newCommit(h Hash, c odb.Commit) Commit {
	subject, rest, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n")
	body, trailers := splitTrailers(strings.Trim(rest, "\n"))
	return Commit{
		Hash: h, Parents: c.Parents,
		Author:    Signature{c.Author.Name, c.Author.Email},
		Committer: Signature{c.Committer.Name, c.Committer.Email},
		When:      c.Committer.When,
		Subject:   subject, Body: body, Trailers: trailers,
	}
}

// splitTrailers takes the last block off when each of its lines is KEY: VALUE,
// or goes on with the line before by leading white space.
func splitTrailers(text string) (body string, trailers []Trailer) {
	block := text
	if i := strings.LastIndex(text, "\n\n"); i >= 0 {
		body, block = strings.TrimRight(text[:i], "\n"), text[i+2:]
	}
	for line := range strings.SplitSeq(block, "\n") {
		if n := len(trailers); n > 0 && line != "" && unicode.IsSpace(rune(line[0])) {
			trailers[n-1].Value += "\n" + strings.TrimSpace(line)
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(key) {
			return text, nil
		}
		trailers = append(trailers, Trailer{key, strings.TrimSpace(value)})
	}
	return body, trailers
}

func isToken(s string) bool {
	for _, r := range s {
		if r != '-' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)) {
			return false
		}
	}
	return s != ""
}
