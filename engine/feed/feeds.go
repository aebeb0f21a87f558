package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"bagpipe/engine/audience"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

const (
	parts     = 64
	keep      = 31 * 24 * time.Hour // entries, and the posts they are of
	mostEach  = 200                 // entries of one feed
	mostInAll = 1_000_000           // entries of all feeds
	atOnce    = 500                 // posts in one line
)

// Entry is a post in the feeds that have it, in words.
type Entry struct {
	Seq     int               `json:"seq"`
	Date    time.Time         `json:"date"` // when it was made
	Feeds   []string          `json:"feeds,omitempty"`
	Summary map[string]string `json:"summary,omitempty"` // by format
	Error   string            `json:"error,omitempty"`   // why there is none
	Post    *Post             `json:"post,omitempty"`    // nil: it is in the list
}

// Pending is a commit whose records could not be read: whether it is an activity is not known.
type Pending struct {
	Commit string    `json:"commit"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
}

// line of posts, and of a part.
type (
	postsLine struct {
		Through string `json:"through"`
		Next    int    `json:"next"`
		Turn    int    `json:"turn"` // whose line it is
		Posts   []Post `json:"posts"`

		Pending []Pending `json:"pending,omitempty"` // all of them
	}
	partLine struct {
		Through int     `json:"through"`
		Turn    int     `json:"turn"`
		Entries []Entry `json:"entries"`
	}
)

// part is the entries of the posts of some posters.
type part struct {
	journal
	through int
	entries []Entry
}

// Feeds are the feeds of a workspace.
type Feeds struct {
	ledger  *ledger.Ledger
	dir     string
	workers int

	mu      sync.Mutex // guards the rest
	journal journal
	through string // the commit
	next    int    // the number of the next post
	turn    int    // the number of the lock, which grows
	posts   []Post
	pending []Pending
	parts   [parts]part
	waiting int // posts without their feeds, as most: let no more be made
	books   map[gitstore.Hash]*audience.Book
}

// New gives the feeds of a workspace.
func New(l *ledger.Ledger) *Feeds {
	f := &Feeds{ledger: l, dir: l.Path(layout.FeedsDir), workers: runtime.GOMAXPROCS(0)}
	f.forget()
	return f
}

// Wanted reports whether the workspace has feeds: feeds/ in its history, or read before.
func (f *Feeds) Wanted() bool {
	v, err := f.ledger.Store.Tip()
	if err != nil {
		return false
	}
	h, err := hashOf(v, audience.Dir)
	_, kept := os.Stat(f.dir)
	return err == nil && !h.IsZero() || kept == nil
}

func (f *Feeds) forget() {
	f.through, f.next, f.posts, f.pending, f.books = "", 1, nil, nil, map[gitstore.Hash]*audience.Book{}
	f.journal = journal{path: f.file("posts")}
	for n := range f.parts {
		f.parts[n] = part{journal: journal{path: f.file(fmt.Sprintf("part-%02d", n))}}
	}
}

// Cycle brings the feeds up to the tip of the history. One that is busy is left alone: it
// sees the newest commits with its next.
func (f *Feeds) Cycle(ctx context.Context) error {
	if !f.mu.TryLock() {
		return nil
	}
	defer f.mu.Unlock()
	return f.cycle(ctx)
}

func (f *Feeds) cycle(ctx context.Context) (err error) {
	v, err := f.ledger.Store.Tip()
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(f.dir, 0o777); err != nil {
		return err
	}
	unlock, err := disk.LockDir(f.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if f.turn, err = f.takeTurn(); err != nil {
		return err
	}
	if err = f.load(); errors.Is(err, errDamaged) {
		f.ledger.Log.Warn("the feeds are built anew", "err", err)
		err = f.clear()
	}
	if err != nil {
		return err
	}
	if err := f.collect(ctx, v); err != nil {
		return fmt.Errorf("collect posts: %w", err)
	}
	book, err := f.bookAt(v)
	if err != nil {
		return err
	}
	if err := f.generate(v, book.Most); err != nil {
		return fmt.Errorf("make feeds: %w", err)
	}
	return f.clean(book.Keep)
}

// load reads what other processes added.
func (f *Feeds) load() error {
	err := f.journal.read(func(data []byte) error {
		var l postsLine
		err := json.Unmarshal(data, &l)
		if f.journal.fences(l.Turn) {
			return err
		}
		f.take(l)
		return err
	})
	for n := range f.parts {
		p := &f.parts[n]
		err = errors.Join(err, p.read(func(data []byte) error {
			var l partLine
			err := json.Unmarshal(data, &l)
			if p.fences(l.Turn) {
				return err
			}
			p.through, p.entries = l.Through, append(p.entries, l.Entries...)
			return err
		}))
	}
	return err
}

// clear removes the files; all is made anew.
func (f *Feeds) clear() error {
	entries, err := os.ReadDir(f.dir)
	for _, e := range entries {
		err = errors.Join(err, os.Remove(f.file(e.Name())))
	}
	f.forget()
	return err
}

// Regenerate makes all feeds anew from the history.
func (f *Feeds) Regenerate(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := disk.MkdirAll(f.dir, 0o777); err != nil {
		return err
	}
	unlock, err := disk.LockDir(f.dir)
	if err != nil {
		return err
	}
	if err := errors.Join(f.clear(), unlock()); err != nil {
		return err
	}
	return f.cycle(ctx)
}

// take takes a line in.
func (f *Feeds) take(l postsLine) {
	f.through, f.next, f.posts, f.pending = l.Through, l.Next, append(f.posts, l.Posts...), l.Pending
}

// line is one of posts that come to the list, as all stands.
func (f *Feeds) line(posts []Post) postsLine {
	return postsLine{Through: f.through, Next: f.next, Turn: f.turn, Posts: posts, Pending: f.pending}
}

// mostPending is how many commits may wait for their records; more are a damaged history.
const mostPending = 1000

// collect turns the commits since the last cycle into posts, and those that could not be read
// before.
func (f *Feeds) collect(ctx context.Context, tip gitstore.View) error {
	var since gitstore.Hash
	if f.through == tip.Commit().String() && len(f.pending) == 0 {
		return nil
	}
	if f.through != "" {
		var err error
		if since, err = gitstore.ParseHash(f.through); err != nil {
			return err
		}
	}
	commits, err := gitstore.ParentsFirst(ctx, f.ledger.Root, tip.Commit(), since)
	if err != nil {
		return err
	}
	was := f.pending
	l := f.line(nil)
	l.Through, l.Pending = tip.Commit().String(), nil
	for _, p := range was {
		h, err := gitstore.ParseHash(p.Commit)
		if err != nil || f.ledger.Now().Sub(p.Since) > keep {
			continue
		}
		l.add(f, h, &p)
	}
	for _, h := range commits {
		if err := ctx.Err(); err != nil {
			return err
		}
		if l.add(f, h, nil); len(l.Pending) > mostPending {
			return fmt.Errorf("more than %d commits cannot be read: commit %s: %s", mostPending, h, l.Pending[mostPending].Reason)
		}
	}
	if f.through == l.Through && len(l.Posts) == 0 && len(l.Pending) == len(was) {
		return nil
	}
	if err := f.journal.add(l); err != nil {
		return err
	}
	f.take(l)
	return nil
}

// add adds what a commit is; one that cannot be read waits.
func (l *postsLine) add(f *Feeds, h gitstore.Hash, was *Pending) {
	var p *Post
	v, err := f.ledger.Store.At(h)
	if err == nil {
		p, err = f.postOf(v)
	}
	switch {
	case err != nil && was != nil:
		l.Pending = append(l.Pending, *was)
	case err != nil:
		f.ledger.Log.Warn("an activity waits until its records can be read", "commit", h, "err", err)
		l.Pending = append(l.Pending, Pending{Commit: h.String(), Since: f.ledger.Now(), Reason: err.Error()})
	case p != nil:
		p.Seq = l.Next
		l.Next++
		l.Posts = append(l.Posts, *p)
	}
}

// generate lets workers make the entries of the parts that have posts. Their number has no
// effect on what is made.
func (f *Feeds) generate(v gitstore.View, most int) error {
	var open [parts][]*Post
	n, before := 0, f.waiting
	f.waiting = 0
	for i := range f.posts {
		p := &f.posts[i]
		if p.Part < 0 || p.Part >= parts || !f.waits(p) {
			continue
		}
		if n++; most > 0 && n > most { // the oldest come first
			f.waiting++
			continue
		}
		open[p.Part] = append(open[p.Part], p)
	}
	if f.waiting > before && f.waiting > most {
		f.ledger.Warn(fmt.Sprintf("%d activities wait for their feeds, and were fewer before: most: in %s lets %d be made at a time", f.waiting, audience.PostsFile, most))
	}
	var work errgroup.Group
	work.SetLimit(max(1, f.workers))
	for n := range open {
		if len(open[n]) > 0 {
			work.Go(func() error { return f.parts[n].make(open[n], f.turn, f.renderer(v), f.ledger.Now) })
		}
	}
	return work.Wait()
}

func (p *part) make(posts []*Post, turn int, r *renderer, now func() time.Time) error {
	for some := range slices.Chunk(posts, atOnce) {
		l := partLine{Through: some[len(some)-1].Seq, Turn: turn}
		for _, post := range some {
			e := Entry{Seq: post.Seq, Date: now(), Feeds: post.To, Summary: map[string]string{}}
			for _, format := range formats {
				text, err := r.render(post, format)
				if err != nil {
					e = Entry{Seq: post.Seq, Date: e.Date, Error: err.Error()}
					break
				}
				e.Summary[format] = text
			}
			l.Entries = append(l.Entries, e)
		}
		if err := p.add(l); err != nil {
			return err
		}
		p.through, p.entries = l.Through, append(p.entries, l.Entries...)
	}
	return nil
}
