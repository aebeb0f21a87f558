package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"bagpipe/engine/audience"
	"bagpipe/engine/gitstore"
)

const (
	mostPending = 1000   // commits that wait for their records; more are a damaged history
	lookedAt    = 4096   // commits whose posts are in memory together
	mostKnown   = 20_000 // recipients that are remembered
)

// activity is what a commit is: a post, and the book by which its recipients are chosen; nil:
// none.
type activity struct {
	post *Post
	book *audience.Book
	body []byte // what is written of it
	err  error  // why it is not known
}

// collector turns commits into posts that come to the list.
type collector struct {
	f       *Feeds
	readers []reader // one for each worker
	listing listing
	bodies  []byte // that are to be written, of the last records
	known   map[recipients]int
}

// recipients is what an audience is chosen by.
type recipients struct {
	book *audience.Book
	post audience.Post
}

// collect turns the commits since the last cycle into posts, and those that could not be read
// before. All come to the list with one frame, as commits of two lines of history are no stretch
// of one that a cursor could be in.
func (f *Feeds) collect(ctx context.Context, tip gitstore.View) (err error) {
	s := f.shelf
	if s.through == tip.Commit().String() && len(s.pending) == 0 {
		return nil
	}
	var since gitstore.Hash
	if s.through != "" {
		if since, err = gitstore.ParseHash(s.through); err != nil {
			return err
		}
	}
	commits, err := gitstore.ParentsFirst(ctx, f.ledger.Root, tip.Commit(), since)
	if err != nil {
		return err
	}
	readers, end := f.readers(tip, len(commits))
	defer func() { err = errors.Join(err, end()) }()
	c := &collector{f: f, readers: readers, listing: listing{through: tip.Commit().String(), next: s.next}, known: map[recipients]int{}}
	for _, p := range s.pending {
		if h, err := gitstore.ParseHash(p.Commit); err == nil && f.ledger.Now().Sub(p.Since) <= keep {
			c.add(h, f.activityOf(readers[0], h), &p)
		}
	}
	for len(commits) > 0 {
		some := commits[:min(len(commits), lookedAt)]
		commits = commits[len(some):]
		if err := c.addAll(ctx, some); err != nil {
			return err
		}
	}
	if s.through == c.listing.through && len(c.listing.records) == 0 && len(c.listing.pending) == len(s.pending) {
		return nil
	}
	if err := c.write(); err != nil {
		return err
	}
	return s.list(f.turn, c.listing)
}

// reader gives a commit and the files at it. It is one goroutine's.
type reader func(commit gitstore.Hash) (gitstore.Commit, gitstore.View, error)

// manyCommits is from how many on commits are read by scans, which keep the trees of neighbours.
const manyCommits = 256

// readers gives a reader for each worker, until end is called.
func (f *Feeds) readers(tip gitstore.View, commits int) (readers []reader, end func() error) {
	workers := make([]reader, max(1, f.workers))
	if commits < manyCommits {
		for i := range workers {
			workers[i] = func(h gitstore.Hash) (gitstore.Commit, gitstore.View, error) {
				v, about, err := tip.At(h)
				return about, v, err
			}
		}
		return workers, func() error { return nil }
	}
	scanning := gitstore.NewScanning(f.ledger.Store, false)
	for i := range workers {
		workers[i] = scanning.Scan().Commit
	}
	return workers, scanning.Close
}

// mostTogether is how many neighbours a worker looks up, whose trees are mostly differences from one
// another; whoever begins between two full trees reads up to fifty of them for nothing.
const mostTogether = 512

// addAll adds what commits are; workers look them up side by side.
func (c *collector) addAll(ctx context.Context, commits []gitstore.Hash) error {
	found := make([]activity, len(commits))
	var work errgroup.Group
	var next atomic.Int64
	stretch := min(mostTogether, len(commits)/(2*len(c.readers))+1)
	for _, read := range c.readers {
		work.Go(func() error {
			for ctx.Err() == nil {
				from := int(next.Add(int64(stretch))) - stretch
				if from >= len(commits) {
					return nil
				}
				for i := from; i < min(from+stretch, len(commits)); i++ {
					found[i] = c.f.activityOf(read, commits[i])
				}
			}
			return ctx.Err()
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	for i, h := range commits {
		c.add(h, found[i], nil)
		if p := c.listing.pending; len(p) > mostPending {
			return fmt.Errorf("more than %d commits cannot be read: commit %s: %s", mostPending, h, p[mostPending].Reason)
		}
	}
	return c.write()
}

// activityOf looks a commit up.
func (f *Feeds) activityOf(read reader, h gitstore.Hash) (a activity) {
	about, v, err := read(h)
	if err == nil {
		a.post, a.book, err = f.postOf(v, about)
	}
	if err == nil && a.post != nil {
		a.body, err = a.post.body()
	}
	a.err = err
	return a
}

// add adds what a commit is; one that cannot be read waits.
func (c *collector) add(h gitstore.Hash, a activity, was *Pending) {
	l := &c.listing
	switch {
	case a.err != nil && was != nil:
		l.pending = append(l.pending, *was)
	case a.err != nil:
		c.f.ledger.Log.Warn("an activity waits until its records can be read", "commit", h, "err", a.err)
		l.pending = append(l.pending, Pending{Commit: h.String(), Since: c.f.ledger.Now(), Reason: a.err.Error()})
	case a.post != nil:
		to := c.audience(a)
		if to < 0 {
			return
		}
		l.records = append(l.records, record{seq: l.next, date: a.post.Date.Unix(), audience: to, part: partOf(a.post.Poster),
			body: span{int64(len(c.bodies)), sumSize + len(a.body)}})
		c.bodies = appendSummed(c.bodies, a.body)
		l.next++
	}
}

// partOf gives the part of a poster; a hash takes all.
func partOf(poster string) int {
	sum := fnv.New32a()
	sum.Write([]byte(poster))
	return int(sum.Sum32() % parts)
}

// audience gives the number of those who get a post; below 0: nobody.
func (c *collector) audience(a activity) int {
	of := recipients{a.book, audience.Post{Poster: a.post.Poster, Collection: a.post.Collection, App: a.post.App, Type: a.post.Type}}
	n, is := c.known[of]
	if is {
		return n
	}
	if n = -1; len(c.known) >= mostKnown {
		clear(c.known)
	}
	if feeds := a.book.Recipients(of.post); len(feeds) > 0 {
		n = c.f.shelf.audience(feeds)
	}
	c.known[of] = n
	return n
}

// write writes the bodies that are new; a crash right after leaves some that no post has.
func (c *collector) write() error {
	if len(c.bodies) == 0 {
		return nil
	}
	at, err := appendTo(c.f.shelf.bodies(), c.bodies)
	if err != nil {
		return err
	}
	records := c.listing.records
	for i := len(records) - 1; i >= 0 && !records[i].placed; i-- {
		records[i].body.at += at
		records[i].placed = true
	}
	c.bodies = c.bodies[:0]
	return nil
}

// body is what is written of a post; the rest is in its record.
func (p *Post) body() ([]byte, error) {
	data, err := json.Marshal(p.Data)
	if err != nil {
		return nil, err
	}
	var b []byte
	for _, text := range []string{p.ID, p.Poster, p.Collection, p.App, p.Type} {
		b = appendText(b, text)
	}
	return append(b, data...), nil
}

// readBody reads what body gave.
func (p *Post) readBody(body []byte) error {
	d := decoder{rest: body}
	for _, text := range []*string{&p.ID, &p.Poster, &p.Collection, &p.App, &p.Type} {
		*text = string(d.text())
	}
	if d.bad {
		return errDamaged
	}
	if err := json.Unmarshal(d.rest, &p.Data); err != nil {
		return errors.Join(errDamaged, err)
	}
	return nil
}
