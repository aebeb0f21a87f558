package feed

import (
	"slices"
	"strings"
	"time"
)

// slack is how much more than is kept there may be before the files are written anew.
const slack = 2

// clean drops what is older than is kept, and of each feed what is beyond its newest. A post
// stays as long as a feed has it, or it waits for its entry. The parts are written first: a
// crash leaves posts that no feed has, and they are dropped the next time.
func (f *Feeds) clean() error { return f.cleanAt(f.ledger.Now()) }

func (f *Feeds) cleanAt(now time.Time) error {
	before := now.Add(-keep)
	old := 0
	for n := range f.posts {
		if f.posts[n].Date.Before(before) {
			old++
		}
	}
	most, all := 0, 0
	for _, n := range f.sizes() {
		most, all = max(most, n), all+n
	}
	if old*slack <= len(f.posts) && most <= slack*mostEach && all <= mostInAll {
		return nil
	}
	young := map[int]bool{}
	for n := range f.posts {
		young[f.posts[n].Seq] = !f.posts[n].Date.Before(before)
	}
	kept := f.newest(young)
	for n := range f.parts {
		p := &f.parts[n]
		p.entries = slices.DeleteFunc(p.entries, func(e Entry) bool { return !kept[e.Seq] })
		if err := p.replace(partLine{Through: p.through, Turn: f.turn, Entries: p.entries}); err != nil {
			return err
		}
	}
	f.posts = slices.DeleteFunc(f.posts, func(p Post) bool { return !kept[p.Seq] && !f.waits(&p) })
	return f.journal.replace(postsLine{Through: f.through, Next: f.next, Turn: f.turn, Posts: f.posts})
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

// newest are the posts that stay: young ones which are among the newest of some feed.
func (f *Feeds) newest(young map[int]bool) map[int]bool {
	kept, n, total := map[int]bool{}, map[string]int{}, 0
	for _, e := range f.entries() {
		if !young[e.Seq] || total+len(e.Feeds) > mostInAll {
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
