package fixity

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// book knows when each copy on a target was verified last, kept current from the commits, so that
// the next that is due is found without reading records. Its zero value is not loaded.
type book struct {
	mu      sync.Mutex // guards what follows
	loaded  bool
	loading bool
	pending []gitstore.FileChange // that came while it was loaded
	items   map[layout.ItemID][]lastLook
	oldest  map[layout.Name]*looks
}

// lastLook is when a copy was verified.
type lastLook struct {
	target  layout.Name
	version int
	at      time.Time
}

// look is when the oldest copy of an item on a target was verified; one that is no more true is
// passed over.
type look struct {
	at   time.Time
	item layout.ItemID
}

// looks are a heap, the oldest first; of one time those of a mixed order.
type looks []look

func (l looks) Len() int { return len(l) }
func (l looks) Less(i, j int) bool {
	return cmp.Or(l[i].at.Compare(l[j].at), cmp.Compare(mixed(l[i].item), mixed(l[j].item))) < 0
}
func (l looks) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *looks) Push(x any)   { *l = append(*l, x.(look)) }
func (l *looks) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// Note keeps the book current; a record that cannot be read is left to the next check.
func (c *Checks) Note(a gitstore.Advance) {
	b := c.book
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, change := range a.Changes {
		if id, rest, is := layout.ItemOfPath(change.Path); is && rest == layout.DepositsJSON {
			switch {
			case b.loading:
				b.pending = append(b.pending, change)
			case b.loaded:
				b.note(id, change)
			}
		}
	}
}

func (b *book) note(id layout.ItemID, change gitstore.FileChange) {
	var d layout.Deposits
	if !change.Deleted {
		var err error
		if d, err = layout.DecodeDeposits(change.Data); err != nil {
			return
		}
	}
	b.put(id, d)
}

func (b *book) put(id layout.ItemID, d layout.Deposits) {
	var all []lastLook
	for name, versions := range d.Targets {
		oldest := time.Time{}
		for version, c := range versions {
			all = append(all, lastLook{name, version, c.Verified})
			if oldest.IsZero() || c.Verified.Before(oldest) {
				oldest = c.Verified
			}
		}
		if len(versions) > 0 {
			b.push(name, look{oldest, id})
		}
	}
	if len(all) == 0 {
		delete(b.items, id)
		return
	}
	b.items[id] = all
}

func (b *book) push(name layout.Name, l look) {
	if b.oldest[name] == nil {
		b.oldest[name] = &looks{}
	}
	heap.Push(b.oldest[name], l)
}

// load reads the records of all items, once.
func (c *Checks) loadBook() error {
	b := c.book
	b.mu.Lock()
	if b.loaded || b.loading {
		b.mu.Unlock()
		return nil
	}
	b.loading, b.items, b.oldest = true, map[layout.ItemID][]lastLook{}, map[layout.Name]*looks{}
	b.mu.Unlock()
	read := func() (map[layout.ItemID]layout.Deposits, error) {
		v, err := c.ledger.Store.Tip()
		if err != nil {
			return nil, err
		}
		all := map[layout.ItemID]layout.Deposits{}
		for it := range c.index.Loaded().Items() {
			d, err := ledger.ReadDeposits(v, it.ID)
			if err != nil {
				continue // fixity status tells of it
			}
			if len(d.Targets) > 0 {
				all[it.ID] = layout.Deposits{Targets: d.Targets}
			}
		}
		return all, nil
	}
	all, err := read()
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, d := range all {
		b.put(id, d)
	}
	for _, change := range b.pending {
		if id, _, is := layout.ItemOfPath(change.Path); is {
			b.note(id, change)
		}
	}
	b.loading, b.pending, b.loaded = false, nil, err == nil
	return err
}

// next takes the item of which a copy is due that was verified longest ago; nil: none is. every
// says of each target after how long. What is taken comes again with its next record, or by again.
func (b *book) next(now time.Time, every map[layout.Name]time.Duration) *dueCopies {
	b.mu.Lock()
	defer b.mu.Unlock()
	var first *looks
	var from layout.Name
	for name, after := range every {
		l := b.oldest[name]
		if l == nil {
			continue
		}
		for l.Len() > 0 && !b.holds(name, (*l)[0]) {
			heap.Pop(l)
		}
		if l.Len() == 0 || now.Sub((*l)[0].at) < after {
			continue
		}
		if first == nil || (*l)[0].at.Before((*first)[0].at) {
			first, from = l, name
		}
	}
	if first == nil {
		return nil
	}
	top := heap.Pop(first).(look)
	due := &dueCopies{item: top.item, target: from, oldest: top.at, copies: map[layout.Name][]int{}}
	for _, l := range b.items[top.item] {
		if after, asked := every[l.target]; asked && now.Sub(l.at) >= after {
			due.copies[l.target] = append(due.copies[l.target], l.version)
		}
	}
	return due
}

// holds reports whether a look is the oldest of its item on the target still.
func (b *book) holds(name layout.Name, l look) bool {
	oldest := time.Time{}
	for _, have := range b.items[l.item] {
		if have.target == name && (oldest.IsZero() || have.at.Before(oldest)) {
			oldest = have.at
		}
	}
	return oldest.Equal(l.at) && slices.ContainsFunc(b.items[l.item], func(have lastLook) bool { return have.target == name })
}

// again puts what was taken, and not looked at, back.
func (b *book) again(d *dueCopies) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := (look{d.oldest, d.item}); b.holds(d.target, l) {
		b.push(d.target, l)
	}
}
