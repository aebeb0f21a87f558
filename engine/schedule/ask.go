package schedule

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/engine/timetable"
	"bagpipe/layout"
)

// Row is how one schedule stands.
type Row struct {
	Name    string    `json:"name"`
	Trigger string    `json:"trigger"`
	Zone    string    `json:"zone,omitempty"`
	Status  string    `json:"status"`            // started, stopped or broken
	Trouble string    `json:"trouble,omitempty"` // why its state cannot be read
	Running time.Time `json:"running,omitzero"`  // the due time of the firing that runs
	Next    time.Time `json:"next,omitzero"`     // when it is due; in the past where no engine works
	Last    *Fired    `json:"last,omitempty"`
	Firings []Fired   `json:"firings,omitempty"` // the last first
}

// Fired is a firing with its due time.
type Fired struct {
	Due time.Time `json:"due"`
	Firing
	Log string `json:"log,omitempty"` // relative to the workspace
}

// Rows tells how the schedules in force stand, by their names.
func (k *Keeper) Rows() (rows []Row, err error) {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	states, err := v.List(layout.FiringsDir) // of thousands of schedules few may have one
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	seen := map[string]bool{}
	for _, e := range states {
		seen[strings.TrimSuffix(e.Name, ".json")] = true
	}
	for _, name := range slices.Sorted(maps.Keys(k.settings.Current().Schedules)) {
		r, err := rowAt(k, v, name, seen[name])
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// overdue is for how long what is due may wait for an engine that works.
const overdue = time.Minute

// Overdue are the schedules that have been due for a while and that nobody fires.
func (k *Keeper) Overdue() (rows []Row, err error) {
	all, err := k.Rows()
	for _, r := range all {
		if !r.Next.IsZero() && r.Running.IsZero() && k.ledger.Now().Sub(r.Next) > overdue {
			rows = append(rows, r)
		}
	}
	return rows, err
}

// Unwell are the schedules, not stopped by a person, whose last firing failed or was lost.
func Unwell(k *Keeper) (rows []Row, err error) {
	all, err := k.Rows()
	for _, r := range all {
		if r.Status == Started && r.Last != nil && (r.Last.Outcome == Failed || r.Last.Outcome == Lost) {
			rows = append(rows, r)
		}
	}
	return rows, err
}

// inForce gives a schedule. Of one that is not in force as its file is broken, the error is the
// file's.
func (k *Keeper) inForce(name string) (*timetable.Schedule, error) {
	if s := k.settings.Current().Schedules[name]; s != nil {
		return s, nil
	}
	broken, err := broken(k.settings)
	if err != nil {
		return nil, err
	}
	if wrong := broken[name]; wrong != nil {
		return nil, wrong
	}
	return nil, fault.Unknown("schedule", name, " in "+layout.SchedulesDir+"/", maps.Keys(k.settings.Current().Schedules))
}

// broken are the mistakes in files of schedules, by the schedule's name.
func broken(so *settings.Source) (map[string]*layout.FileError, error) {
	mistakes, err := so.Mistakes(layout.SchedulesDir)
	by := map[string]*layout.FileError{}
	for _, m := range mistakes {
		by[strings.TrimSuffix(strings.TrimPrefix(m.File, layout.SchedulesDir+"/"), ".yaml")] = m
	}
	return by, err
}

// Row tells how one schedule stands.
func (k *Keeper) Row(name string) (row Row, err error) {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return row, err
	}
	return rowAt(k, v, name, true)
}

// rowAt is Row at a commit; seen is false where the schedule has no state there.
func rowAt(k *Keeper, v gitstore.View, name string, seen bool) (row Row, err error) {
	s, err := k.inForce(name)
	if err != nil {
		return row, err
	}
	row = Row{Name: name, Trigger: s.Trigger.String(), Zone: s.Zone, Status: Started}
	var st *State
	if seen {
		st, err = read(v, name)
	}
	if err != nil { // as somebody pushed it
		row.Status, row.Trouble = Broken, err.Error()
		return row, nil
	}
	if st == nil {
		now := k.ledger.Now()
		st = &State{Status: Started, Since: now, Through: now}
	}
	st.adopt(s.Timing(), k.ledger.Now())
	row.Status = st.Status
	for _, due := range slices.Backward(st.Dues()) {
		f := Fired{Due: due, Firing: st.Firings[due]}
		if f.Outcome != Missed {
			f.Log = LogPath(name, due)
		}
		row.Firings = append(row.Firings, f)
		if f.runs() {
			row.Running = due
		}
	}
	if len(row.Firings) > 0 {
		row.Last = &row.Firings[0]
	}
	if next, ever := s.Next(st.Through, k.clock.counted(name, st, k.ledger.Now())); ever && st.Status == Started {
		row.Next = next
	}
	return row, nil
}

// Next tells the next times at which a schedule is due from now on, by its file alone.
func (k *Keeper) Next(name string, n int) (times []time.Time, err error) {
	s, err := k.inForce(name)
	if err != nil {
		return nil, err
	}
	if s.Trigger.Queue != "" {
		return nil, fault.New(fault.Refused, fmt.Sprintf("schedule %s is due whenever something is ready: %s", name, s.Trigger))
	}
	at, ended := k.ledger.Now(), time.Time{}
	for range n {
		due, ever := s.Next(at, ended)
		if !ever {
			break
		}
		times, at, ended = append(times, due), due, due
	}
	return times, nil
}

// Order is what a person wants of a schedule.
type Order struct {
	Status string // Started or Stopped
	Anew   bool   // also where it is started already: with the file as it is now, and nothing missed
	Now    bool   // what runs is ended, too
}

// Set starts or stops a schedule. One that is started anew has missed nothing; one that is
// stopped lets a firing end, unless the order is for now.
func (k *Keeper) Set(ctx context.Context, who ledger.Actor, name string, o Order) (changed bool, err error) {
	if _, err := k.inForce(name); err != nil {
		return false, err
	}
	err = k.edit(ctx, who, name, func(st *State) (what string, _ time.Time, err error) {
		at, f := st.running()
		end := o.Now && !at.IsZero() && f.Stop == ""
		if changed = st.Status != o.Status || o.Anew || end; !changed {
			return "", time.Time{}, nil
		}
		if end {
			f.raw, f.Stop = nil, who.Author.Name
			st.Firings[at] = f
		}
		what, st.Status = o.Status, o.Status
		if o.Anew {
			what = "restarted"
		}
		if o.Status == Started {
			st.Since, st.Through = k.ledger.Now(), k.ledger.Now()
		}
		return what, time.Time{}, nil
	})
	return changed, err
}

// Fire fires a schedule now, whatever is due, and waits for its end. work does what is ready in
// a queue.
func (k *Keeper) Fire(ctx context.Context, by ledger.Actor, name string, work Deed) (said string, bad bool, err error) {
	f, err := fire(ctx, k, by, name)
	if err != nil {
		return "", false, err
	}
	f.byHand = work
	watched, stop := context.WithCancel(ctx)
	begun := k.begin(ctx, f)
	var watch sync.WaitGroup
	watch.Go(func() { k.heed(watched) })
	said, bad = k.perform(ctx, begun, f)
	stop()
	watch.Wait()
	return said, bad, ctx.Err()
}

// fire commits that a person fires a schedule now, by this engine.
func fire(ctx context.Context, k *Keeper, by ledger.Actor, name string) (*firing, error) {
	s, err := k.inForce(name)
	if err != nil {
		return nil, err
	}
	if _, err := k.ledger.Seat.Engine(); err != nil {
		return nil, err
	}
	var due time.Time
	err = k.edit(ctx, by, name, func(st *State) (string, time.Time, error) {
		if at, f := st.running(); !at.IsZero() && k.ledger.Seat.MayBeAlive(f.Engine) {
			return "", due, fault.New(fault.Refused, "it runs since "+layout.FormatTime(f.Begun))
		}
		for due = k.ledger.Now(); st.has(due); { // of a firing that was over within the millisecond
			due = due.Add(time.Millisecond)
		}
		st.Firings[due] = Firing{Begun: due, Engine: k.ledger.ID}
		return "fired", due, nil
	})
	return &firing{Schedule: s, due: due}, err
}

// Hand fires a schedule now, whatever is due, by the Run of this process, and does not wait for its
// end. Where no Run works the answer is fault.Busy.
func (k *Keeper) Hand(ctx context.Context, by ledger.Actor, name string) error {
	k.mu.Lock()
	to := k.handed.to
	if to != nil {
		k.handed.giving.Add(1)
	}
	k.mu.Unlock()
	if to == nil {
		return fault.New(fault.Busy, "no engine fires schedules in this process")
	}
	defer k.handed.giving.Done()
	f, err := fire(ctx, k, by, name)
	if err == nil {
		to <- f
	}
	return err
}

// heed looks for what others commit of what runs here: that it is to end.
func (k *Keeper) heed(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if k.ledger.Store.Refresh(ctx) == nil {
				_ = k.refresh() // looked at again with the next tick
			}
		}
	}
}
