package queue

import (
	"container/heap"
	"time"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/layout"
)

// NextDue is the earliest time at which a step that waits for its date becomes
// ready; ok is false when none does.
func (x *Index) NextDue() (t time.Time, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.dated) > 0 {
		d := x.dated[0]
		if x.isDue(d) && x.mayEnter(d.entry) {
			return time.UnixMilli(d.at).UTC(), true
		}
		heap.Pop(&x.dated)
	}
	return t, false
}

// isDue tells whether a step waits for the time that it was put down for; x.at is
// its item.
func (x *Index) isDue(d dated) bool {
	b := x.table.Get(d.entry.item)
	if b == nil {
		return false
	}
	x.at.Read(b)
	run := x.at.Run(uint64(d.entry.run))
	if run == nil || int(d.entry.n) >= run.To-run.From {
		return false
	}
	how, until := x.at.Standing(run, int(d.entry.n))
	return how == packed.StandsDated && until == d.at || d.asked && how != packed.StandsNowhere
}

// mayEnter asks what Only says of an entry; one that may later is put down for then.
func (x *Index) mayEnter(e entry) bool {
	if x.only == nil {
		return true
	}
	full, ok := x.entryOf(e)
	if !ok {
		return false
	}
	is, again := x.only(full)
	return is || !again.IsZero()
}

// entryOf is an entry with its item.
func (x *Index) entryOf(e entry) (Entry, bool) {
	it := x.item(layout.ItemIDOf(e.item))
	if it == nil {
		return Entry{}, false
	}
	name := x.names.Text(uint64(e.run))
	for r := range it.Runs {
		if run := &it.Runs[r]; run.Name == name && int(e.n) < len(run.Steps) {
			return Entry{Item: it, Run: name, Step: layout.Name(run.Plan.Steps[e.n].Name), N: int(e.n)}, true
		}
	}
	return Entry{}, false
}

// Settle lets what was to wait until now go on.
func (x *Index) Settle(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle(now)
}

func (x *Index) settle(now time.Time) {
	for len(x.dated) > 0 && x.dated[0].at <= now.UnixMilli() {
		d := heap.Pop(&x.dated).(dated)
		if !x.isDue(d) {
			continue
		}
		e := d.entry
		run := x.at.Run(uint64(e.run))
		if s := &x.at.Steps[run.From+int(e.n)]; s.Code == packed.CodeDate || s.Code == packed.CodeRetry {
			x.come(e, now)
			continue
		}
		if !x.taken[slot{e.item, e.run, e.n}] {
			x.push(e, x.keyOf(&x.at, run, int(e.n)), standsAt(&x.at))
		}
	}
}

// come lets the dates of an item that have come be no reason any more.
func (x *Index) come(e entry, now time.Time) {
	if it := x.item(layout.ItemIDOf(e.item)); it != nil {
		it.Settle(now)
		x.replace(it)
	}
}

// dated is a step that waits for a time, or, asked, for one at which Only may say
// otherwise.
type dated struct {
	at    int64 // ms
	entry entry
	asked bool
}

type dateHeap []dated

func (h dateHeap) Len() int { return len(h) }

func (h dateHeap) Less(i, j int) bool { return h[i].at < h[j].at }

func (h dateHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *dateHeap) Push(v any) { *h = append(*h, v.(dated)) }

func (h *dateHeap) Pop() any {
	old := *h
	d := old[len(old)-1]
	*h = old[:len(old)-1]
	return d
}
