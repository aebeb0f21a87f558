package feed

import (
	"slices"
	"strings"
	"time"
)

// slack is how much more than is kept there may be before the files are written anew.
const slack = 2

// clean drops what is older than is kept, and of each feed what is beyond its newest. A post
// goes from the list once it has been in its feeds for as long as listed says; its entries have
// it then. One that waits for its entry stays. The parts are written first: a crash leaves posts
// that entries have, too, and they are dropped the next time.
func (f *Feeds) clean(listed time.Duration) error { return f.cleanAt(f.ledger.Now(), listed) }

func (f *Feeds) cleanAt(now time.Time, listed time.Duration) error {
	before, done := now.Add(-keep), now.Add(-min(listed, keep))
	failed := map[int]bool{}
	for _, e := range f.entries() {
		failed[e.Seq] = e.Error != ""
	}
	goes := func(p *Post) bool {
		return !f.waits(p) && (p.Date.Before(before) || p.Date.Before(done) && !failed[p.Seq])
	}
	gone := 0
	for n := range f.posts {
		if goes(&f.posts[n]) {
			gone++
		}
	}
	most, all := 0, 0
	for _, n := range f.sizes() {
		most, all = max(most, n), all+n
	}
	if gone*slack <= len(f.posts) && most <= slack*mostEach && all <= mostInAll {
		return nil
	}
	posts := f.bySeq()
	kept := f.newest(posts, before)
	for n := range f.parts {
		p := &f.parts[n]
		p.entries = slices.DeleteFunc(p.entries, func(e Entry) bool { return !kept[e.Seq] })
		for i := range p.entries {
			if e := &p.entries[i]; goes(posts[e.Seq]) {
				e.Post = posts[e.Seq]
			}
		}
		if err := p.replace(partLine{Through: p.through, Turn: f.turn, Entries: p.entries}); err != nil {
			return err
		}
	}
	var left []Post // those that entries point to stay as they are
	for n := range f.posts {
		if p := &f.posts[n]; f.waits(p) || kept[p.Seq] && !goes(p) {
			left = append(left, *p)
		}
	}
	f.posts = left
	return f.journal.replace(f.line(left))
}

// bySeq are the posts of the list, and those that entries have.
func (f *Feeds) bySeq() map[int]*Post {
	posts := map[int]*Post{}
	for n := range f.posts {
		posts[f.posts[n].Seq] = &f.posts[n]
	}
	for n := range f.parts {
		for _, e := range f.parts[n].entries {
			if e.Post != nil {
				posts[e.Seq] = e.Post
			}
		}
	}
	return posts
}

// waits reports whether a post is still to get its entry, as where most: lets few be made.
func (f *Feeds) waits(p *Post) bool { return p.Seq > f.parts[p.Part].through }

// sizes counts the entries of each feed.
func (f *Feeds) sizes() map[string]int {
	n := map[string]int{}
	for i := range f.parts {
		for _, e := range f.parts[i].entries {
			for _, name := range e.Feeds {
				n[name]++
			}
		}
	}
	return n
}

// newest are the posts that stay in feeds: young ones which are among the newest of some feed.
func (f *Feeds) newest(posts map[int]*Post, before time.Time) map[int]bool {
	kept, n, total := map[int]bool{}, map[string]int{}, 0
	for _, e := range f.entries() {
		if p := posts[e.Seq]; p == nil || p.Date.Before(before) || total+len(e.Feeds) > mostInAll {
			continue
		}
		kept[e.Seq] = e.Error != ""
		for _, name := range e.Feeds {
			if n[name]++; n[name] <= mostEach {
				kept[e.Seq] = true
			}
		}
		if kept[e.Seq] {
			total += len(e.Feeds)
		}
	}
	return kept
}

// entries are all, the newest first.
func (f *Feeds) entries() (all []Entry) {
	for n := range f.parts {
		all = append(all, f.parts[n].entries...)
	}
	slices.SortFunc(all, func(a, b Entry) int { return b.Seq - a.Seq })
	return all
}

// Names lists the feeds that have entries.
func (f *Feeds) Names() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.sizes() {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
