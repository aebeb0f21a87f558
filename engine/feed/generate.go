package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"bagpipe/engine/audience"
	"bagpipe/engine/gitstore"
)

// make makes the entries of the posts that have none. Posts that clean would drop as soon as their
// texts are made, as most of a long history, are dropped before. But where a post has no template, older
// ones stay in its feeds: then all is made.
func (f *Feeds) make(ctx context.Context, v gitstore.View, book *audience.Book) (err error) {
	thinned, failed := false, f.shelf.failed()
	if n := len(f.shelf.records); n > mostEach && f.shelf.waits(&f.shelf.records[n-1]) {
		if thinned, err = f.cleanAt(f.ledger.Now(), book.Keep, func(*record) bool { return false }); err != nil {
			return err
		}
	}
	if err := f.generate(v, book.Most); err != nil || !thinned || f.shelf.failed() <= failed {
		return err
	}
	if err := errors.Join(f.clear(), f.collect(ctx, v)); err != nil {
		return err
	}
	return f.generate(v, book.Most)
}

// failed counts the posts without a template.
func (s *shelf) failed() (n int) {
	for i := range s.records {
		if s.records[i].failed {
			n++
		}
	}
	return n
}

// whole reports whether all posts that are known have their entries.
func (s *shelf) whole() bool {
	for i := range s.records {
		if s.waits(&s.records[i]) {
			return false
		}
	}
	return len(s.pending) == 0
}

// generate lets workers make the entries of the parts that have posts. Their number has no
// effect on what is made.
func (f *Feeds) generate(v gitstore.View, most int) error {
	s := f.shelf
	var open [parts][]int
	n, before := 0, f.waiting
	f.waiting = 0
	for i := range s.records {
		r := &s.records[i]
		if !s.waits(r) {
			continue
		}
		if n++; most > 0 && n > most { // the oldest come first
			f.waiting++
			continue
		}
		open[r.part] = append(open[r.part], i)
	}
	if f.waiting > before && f.waiting > most {
		f.ledger.Warn(fmt.Sprintf("%d activities wait for their feeds, and were fewer before: most: in %s lets %d be made at a time", f.waiting, audience.PostsFile, most))
	}
	todo := make(chan int, parts)
	for n := range open {
		if len(open[n]) > 0 {
			todo <- n
		}
	}
	close(todo)
	var work errgroup.Group
	for range min(len(todo), max(1, f.workers)) {
		r := f.renderer(v)
		work.Go(func() error {
			var err error
			for n := range todo {
				err = errors.Join(err, s.makeAll(n, open[n], f.turn, r, f.ledger.Now))
			}
			return err
		})
	}
	return work.Wait()
}

// makeAll makes the entries of posts of one part.
func (s *shelf) makeAll(n int, posts []int, turn int, r *renderer, now func() time.Time) error {
	bodies := singles{path: s.bodies()} // those of one part stand far from one another
	defer bodies.close()
	for len(posts) > 0 {
		some := posts[:min(len(posts), atOnce)]
		posts = posts[len(some):]
		if err := s.make(n, some, turn, r, now, &bodies); err != nil {
			return err
		}
	}
	return nil
}

func (s *shelf) make(n int, some []int, turn int, r *renderer, now func() time.Time, bodies *singles) error {
	var out []byte
	for _, i := range some {
		post, err := s.post(i, bodies)
		if err != nil {
			return err
		}
		texts, err := r.renderAll(post)
		if s.records[i].failed = err != nil; err != nil {
			texts = []byte(err.Error())
		}
		s.records[i].text = span{int64(len(out)), sumSize + len(texts)}
		out = appendSummed(out, texts)
	}
	at, err := appendTo(s.texts(n), out)
	if err != nil {
		return err
	}
	for _, i := range some {
		s.records[i].text.at += at
	}
	return s.enter(n, turn, s.records[some[len(some)-1]].seq, now(), some)
}

// post gives a post of the list, but for the feeds that have it.
func (s *shelf) post(i int, bodies *singles) (*Post, error) {
	r := &s.records[i]
	data, err := bodies.at(r.body, false)
	if err != nil {
		return nil, err
	}
	p := &Post{Seq: r.seq, Date: time.Unix(r.date, 0).UTC(), Part: r.part}
	return p, p.readBody(data)
}
