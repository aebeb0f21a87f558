package gitstore

import (
	"container/heap"
	"context"
	"iter"
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
	w := &logWalk{s: s, seen: map[Hash]bool{}}
	if err := w.push(from); err != nil {
		return err
	}
	for n := 0; w.queue.Len() > 0 && (o.Limit <= 0 || n < o.Limit); {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := heap.Pop(&w.queue).(*logged)
		for _, p := range c.commit.Parents {
			if err := w.push(p); err != nil {
				return err
			}
		}
		changed, err := s.changedPath(c.commit, o.Path)
		if err != nil {
			return err
		}
		if !changed {
			continue
		}
		n++
		if !yield(newCommit(c.hash, c.commit)) {
			return nil
		}
	}
	return nil
}

// changedPath compares a path in a commit and in its first parent.
func (s *Store) changedPath(c odb.Commit, name string) (bool, error) {
	if isRoot(name) {
		return true, nil
	}
	now, inNow, err := s.findInTree(c.Tree, name)
	if err != nil {
		return false, err
	}
	if len(c.Parents) == 0 {
		return inNow, nil
	}
	parent, err := s.readCommit(c.Parents[0])
	if err != nil {
		return false, err
	}
	before, inBefore, err := s.findInTree(parent.Tree, name)
	if err != nil {
		return false, err
	}
	return inNow != inBefore || now.Hash != before.Hash || now.Mode != before.Mode, nil
}

type logged struct {
	hash   Hash
	when   int64
	order  int
	commit odb.Commit
}

type logWalk struct {
	s     *Store
	seen  map[Hash]bool
	queue byNewest
	order int
}

func (w *logWalk) push(h Hash) error {
	if w.seen[h] {
		return nil
	}
	w.seen[h] = true
	c, err := w.s.readCommit(h)
	if err != nil {
		return err
	}
	w.order++
	heap.Push(&w.queue, &logged{h, c.Committer.When.Unix(), w.order, c})
	return nil
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
