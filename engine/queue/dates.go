package queue

import (
	"cmp"
	"time"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/queue/internal/turns"
	"bagpipe/layout"
)

// isDue reports whether a step waits for the time that it was put down for; x.at is
// its item.
func (x *store) isDue(d dated) bool {
	b := x.table.Get(d.entry.Item)
	if b == nil {
		return false
	}
	x.at.Read(b)
	run := x.at.Run(uint64(d.entry.Run))
	if run == nil || int(d.entry.N) >= run.To-run.From {
		return false
	}
	how, until := x.at.Standing(run, int(d.entry.N))
	return how == packed.StandsDated && until == d.at || d.asked && how != packed.StandsNowhere
}

// mayEnter asks what Only says of an entry; one that may later is put down for then.
func (x *store) mayEnter(e turns.Entry) bool {
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
func (x *store) entryOf(e turns.Entry) (Entry, bool) {
	it := x.item(layout.ItemIDOf(e.Item))
	if it == nil {
		return Entry{}, false
	}
	name := x.names.Text(uint64(e.Run))
	if run := it.Run(name); run != nil && int(e.N) < len(run.Steps) {
		return Entry{Item: it, Run: name, Step: layout.Name(run.Plan.Steps[e.N].Name), N: int(e.N)}, true
	}
	return Entry{}, false
}

// Settle lets what was to wait until now go on.
func (i *Index) Settle(now time.Time) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle(now)
}

func (x *store) settle(now time.Time) {
	for len(x.dated) > 0 && x.dated[0].at <= now.UnixMilli() {
		d := x.dated.Pop()
		if !x.isDue(d) {
			continue
		}
		e := d.entry
		run := x.at.Run(uint64(e.Run))
		if s := &x.at.Steps[run.From+int(e.N)]; s.Code == packed.CodeDate || s.Code == packed.CodeRetry {
			x.come(e, now)
			continue
		}
		if !x.taken[slot{e.Item, e.Run, e.N}] {
			x.push(e, x.keyOf(&x.at, run, int(e.N)), standsAt(&x.at))
		}
	}
}

// come lets the dates of an item that have come be no reason any more.
func (x *store) come(e turns.Entry, now time.Time) {
	if it := x.item(layout.ItemIDOf(e.Item)); it != nil {
		it.Settle(now)
		x.replace(it)
	}
}

// dated is a step that waits for a time, or, asked, for one at which Only may say
// otherwise.
type dated struct {
	at    int64 // ms
	entry turns.Entry
	asked bool
}

// Compare has the earlier time first.
func (d dated) Compare(o dated) int { return cmp.Compare(d.at, o.at) }

// NextDue is the earliest time at which a step that waits for its date becomes
// ready; ok is false when none does.
func (v View) NextDue() (t time.Time, ok bool) {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.dated) > 0 {
		d := x.dated[0]
		if x.isDue(d) && x.mayEnter(d.entry) {
			return time.UnixMilli(d.at).UTC(), true
		}
		x.dated.Pop()
	}
	return t, false
}
