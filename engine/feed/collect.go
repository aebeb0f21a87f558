package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"golang.org/x/sync/errgroup"

	"bagpipe/engine/audience"
	"bagpipe/engine/gitstore"
)

const (
	mostPending    = 1000    // commits that wait for their records; more are a damaged history
	stretchesAhead = 4       // stretches of commits whose posts are in memory together
	bodiesAtOnce   = 1 << 20 // bytes of bodies that are written together
	mostKnown      = 20_000  // recipients that are remembered
)

// activity is what a commit is.
type activity struct {
	is   bool // it is a post
	of   recipients
	date int64  // of the commit, seconds since 1970
	body []byte // what is written of it
	err  error  // why it is not known
}

// collector turns commits into posts that come to the list.
type collector struct {
	f       *Feeds
	readers []reader // one for each worker
	found   found    // what was looked up while the commits were listed
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
	c := &collector{f: f, listing: listing{through: tip.Commit().String(), next: s.next}, known: map[recipients]int{}}
	commits, end, err := c.commitsSince(ctx, tip, since)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	for _, p := range s.pending {
		if h, err := gitstore.ParseHash(p.Commit); err == nil && f.ledger.Now().Sub(p.Since) <= keep {
			c.add(h, f.activityOf(ctx, c.readers[0], h), &p)
		}
	}
	if err := c.addAll(ctx, commits); err != nil {
		return err
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

// commitsSince lists the commits that come after one, parents first, and gives each worker a reader
// of them, until end is called.
func (c *collector) commitsSince(ctx context.Context, tip gitstore.View, since gitstore.Hash) (commits []gitstore.Hash, end func() error, err error) {
	workers, l := max(1, c.f.workers), c.f.ledger
	c.readers = slices.Repeat([]reader{func(h gitstore.Hash) (gitstore.Commit, gitstore.View, error) {
		v, about, err := tip.At(h)
		return about, v, err
	}}, workers)
	end = func() error { return nil }
	commits, is := few(c.readers[0], tip.Commit(), since)
	if is {
		return commits, end, nil
	}
	scanning := gitstore.NewScanning(l.Store, false)
	ahead := newLookAhead(ctx, c.f, workers, scanning)
	commits, is = scanning.Line(ctx, tip.Commit(), since, ahead.met)
	if !is {
		commits, err = gitstore.ParentsFirst(ctx, l.Root, tip.Commit(), since)
	}
	found, scans := ahead.end()
	if err != nil {
		return nil, nil, errors.Join(err, scanning.Close())
	}
	if len(commits) < manyCommits {
		return commits, end, scanning.Close()
	}
	for n := range c.readers {
		if len(scans) <= n {
			scans = append(scans, scanning.Scan())
		}
		c.readers[n] = scans[n].Commit
	}
	c.found = found
	return commits, scanning.Close, nil
}

// few lists the commits from the one after since to a tip, the oldest first, where they are few of one
// parent each, as they mostly are: no program is called then.
func few(read reader, tip, since gitstore.Hash) (commits []gitstore.Hash, is bool) {
	for h := tip; h != since; {
		about, _, err := read(h)
		if err != nil || len(about.Parents) > 1 || len(about.Parents) == 0 && !since.IsZero() || len(commits) == manyCommits {
			return nil, false
		}
		if commits = append(commits, h); len(about.Parents) == 0 {
			break
		}
		h = about.Parents[0]
	}
	slices.Reverse(commits)
	return commits, true
}

// mostTogether is how many neighbours a worker looks up, whose trees are mostly differences from one
// another; whoever begins between two full trees reads up to fifty of them for nothing.
const mostTogether = 1024

// stretch is neighbours that one worker looks up.
type stretch struct {
	commits []gitstore.Hash
	found   []activity
	done    chan struct{} // closed once they are found
}

// addAll adds what commits are; workers look them up side by side, and some stretches ahead of the one
// that is added.
func (c *collector) addAll(ctx context.Context, commits []gitstore.Hash) error {
	work, ctx := errgroup.WithContext(ctx)
	todo, inOrder := make(chan *stretch), make(chan *stretch, stretchesAhead)
	work.Go(func() error {
		defer close(todo)
		defer close(inOrder)
		for some := range slices.Chunk(commits, min(mostTogether, len(commits)/(2*len(c.readers))+1)) {
			s := &stretch{some, make([]activity, len(some)), make(chan struct{})}
			for _, to := range []chan *stretch{inOrder, todo} {
				select {
				case to <- s:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		return nil
	})
	for _, read := range c.readers {
		work.Go(func() error {
			for s := range todo {
				for i := 0; i < len(s.commits) && ctx.Err() == nil; i++ {
					known := false
					if s.found[i], known = c.found.of(s.commits[i]); !known {
						s.found[i] = c.f.activityOf(ctx, read, s.commits[i])
					}
				}
				close(s.done)
			}
			return ctx.Err()
		})
	}
	work.Go(func() error {
		for s := range inOrder {
			select {
			case <-s.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := c.addStretch(s); err != nil {
				return err
			}
		}
		return nil
	})
	return work.Wait()
}

// addStretch adds what the commits of a stretch are.
func (c *collector) addStretch(s *stretch) error {
	for i, h := range s.commits {
		c.add(h, s.found[i], nil)
		if p := c.listing.pending; len(p) > mostPending {
			return fmt.Errorf("more than %d commits cannot be read: commit %s: %s", mostPending, h, p[mostPending].Reason)
		}
	}
	if len(c.bodies) < bodiesAtOnce {
		return nil
	}
	return c.write()
}

// activityOf looks a commit up.
func (f *Feeds) activityOf(ctx context.Context, read reader, h gitstore.Hash) (a activity) {
	about, v, err := read(h)
	if err != nil {
		return activity{err: err}
	}
	p, book, err := f.postOf(ctx, v, about)
	if err != nil || p == nil {
		return activity{err: err}
	}
	a = activity{is: true, of: recipients{book, audience.Post{Poster: p.Poster, Collection: p.Collection, App: p.App, Type: p.Type}}, date: p.Date.Unix()}
	a.body, a.err = p.body()
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
	case a.is:
		to := c.audience(a.of)
		if to < 0 {
			return
		}
		l.records = append(l.records, record{seq: l.next, date: a.date, audience: to, part: partOf(a.of.post.Poster),
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
func (c *collector) audience(of recipients) int {
	n, is := c.known[of]
	if is {
		return n
	}
	if n = -1; len(c.known) >= mostKnown {
		clear(c.known)
	}
	if feeds := of.book.Recipients(of.post); len(feeds) > 0 {
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
