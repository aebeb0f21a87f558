package schedule

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/timetable"
	"bagpipe/layout"
)

// The statuses of a schedule.
const (
	Started = "started"
	Stopped = "stopped"
	Broken  = "broken" // its state cannot be read: it is not fired
)

// The outcomes of a firing.
const (
	Completed = "completed"
	Failed    = "failed"
	TimedOut  = "timeout"
	Missed    = "missed"
	Lost      = "lost"
	Ended     = "stopped"  // by a person, at once
	Replaced  = "replaced" // by the next, of overlap: replace
)

// State is schedules/state/NAME.json.
type State struct {
	Name    string
	Status  string
	Since   time.Time
	Through time.Time
	Timing  string               // the trigger that Through is of; "": not noted
	Ended   time.Time            // when the last firing did, or was passed over; zero: not noted
	Firings map[time.Time]Firing // by the time they were due

	unknown map[string]json.RawMessage
}

// Firing is one time that a schedule was fired.
type Firing struct {
	Begun   time.Time       `json:"begun,omitzero"`
	Ended   time.Time       `json:"ended,omitzero"`
	Engine  layout.EngineID `json:"engine,omitempty"`
	Outcome string          `json:"outcome,omitempty"`
	Message string          `json:"message,omitempty"`
	Resumed bool            `json:"resumed,omitempty"`
	Stop    string          `json:"stop,omitempty"` // who asked for its end

	raw json.RawMessage // as it was read; nil: made or changed here
}

const (
	schema      = 1
	mostFirings = 20
)

func path(name string) string { return layout.FiringsDir + "/" + name + ".json" }

// read gives a schedule's state; nil where it was never seen.
func read(r gitstore.Reader, name string) (*State, error) {
	data, err := ledger.ReadOptional(r, path(name))
	if err != nil || data == nil {
		return nil, err
	}
	s := &State{Firings: map[time.Time]Firing{}}
	if err := json.Unmarshal(data, &s.unknown); err != nil {
		return nil, fmt.Errorf("read %s: %w", path(name), err)
	}
	version, firings := 0, map[string]json.RawMessage{}
	for key, to := range map[string]any{"schema": &version, "name": &s.Name, "status": &s.Status, "since": &s.Since, "through": &s.Through, "timing": &s.Timing, "ended": &s.Ended, "firings": &firings} {
		if raw, ok := s.unknown[key]; ok {
			if err := json.Unmarshal(raw, to); err != nil {
				return nil, fmt.Errorf("read %s: %s: %w", path(name), key, err)
			}
		}
	}
	if version > schema {
		return nil, &layout.SchemaError{File: path(name), Schema: version, Known: schema}
	}
	for due, raw := range firings {
		at, err := time.Parse(time.RFC3339, due)
		f := Firing{raw: raw}
		if err = cmp.Or(err, json.Unmarshal(raw, &f)); err != nil {
			return nil, fmt.Errorf("read %s: %w", path(name), err)
		}
		s.Firings[at.UTC()] = f
	}
	return s, nil
}

// encode writes a state, of firings the last alone.
func (s *State) encode() ([]byte, error) {
	all, firings := map[string]any{}, map[string]any{}
	for key, raw := range s.unknown {
		all[key] = raw
	}
	s.forget()
	for due, f := range s.Firings {
		switch {
		case f.raw != nil:
			firings[layout.FormatTime(due)] = f.raw
		default:
			firings[layout.FormatTime(due)] = f
		}
	}
	all["schema"], all["name"], all["status"], all["firings"] = schema, s.Name, s.Status, firings
	all["since"], all["through"] = layout.FormatTime(s.Since), layout.FormatTime(s.Through)
	if s.Timing != "" {
		all["timing"] = s.Timing
	}
	if !s.Ended.IsZero() {
		all["ended"] = layout.FormatTime(s.Ended)
	}
	return layout.EncodeJSON(all)
}

// forget leaves the last firings alone. Those of a clock that was ahead of the one by which the last
// ended go first: it was put back since.
func (s *State) forget() {
	dues := s.Dues()
	ahead := func(due time.Time) bool { return !s.Ended.IsZero() && due.After(s.Ended) }
	slices.SortStableFunc(dues, func(a, b time.Time) int {
		switch {
		case ahead(a) == ahead(b):
			return 0
		case ahead(a):
			return -1
		}
		return 1
	})
	for _, due := range dues[:max(0, len(dues)-mostFirings)] {
		if !s.Firings[due].runs() {
			delete(s.Firings, due)
		}
	}
}

// adopt takes in the trigger of the file as it is now: what was due by an older one, before
// it, was not missed.
func (s *State) adopt(timing string, now time.Time) (changed bool) {
	if s.Timing == timing {
		return false
	}
	if changed = s.Timing != ""; changed {
		s.Since, s.Through = now, now
	}
	s.Timing = timing
	return changed
}

// mostAhead is how far what was fired may be ahead of the clock: by as much as it may have been put back.
const mostAhead = 25 * time.Hour

// notDuring gives those of the times due that fell into no firing which was running, and is no
// other's to wait for: what overlaps is left out, what was missed before it is not.
func (s *State) notDuring(of *timetable.Schedule, due []time.Time) []time.Time {
	if of.Overlap == timetable.OverlapWait || of.Missed != timetable.MissedAll {
		return due
	}
	return slices.DeleteFunc(due, func(t time.Time) bool {
		for _, f := range s.Firings {
			if f.Outcome != Missed && f.Outcome != Replaced && t.After(f.Begun) && !t.After(f.Ended) {
				return true
			}
		}
		return false
	})
}

// ahead reports whether what was fired is so far ahead of the clock that it was fired by one that was wrong:
// to wait for that would take too long.
func (s *State) ahead(now time.Time) bool { return s.Through.Sub(now) > mostAhead }

// Dues are the times of the firings, in order.
func (s *State) Dues() []time.Time {
	return slices.SortedFunc(maps.Keys(s.Firings), time.Time.Compare)
}

// has reports whether a firing of that due time is on record.
func (s *State) has(due time.Time) bool {
	_, there := s.Firings[due]
	return there
}

func (f Firing) runs() bool { return f.Outcome == "" }

// running is the firing that has not ended; due is zero where none runs.
func (s *State) running() (due time.Time, f Firing) {
	for at, f := range s.Firings {
		if f.runs() {
			return at, f
		}
	}
	return time.Time{}, f
}

// ended is the end of the last firing; zero: there was none, and it counts from the start.
// ahead reports whether some time of the state is still to come: the clock was put back. Those
// do not count.
func (s *State) ended(now time.Time) (last time.Time, ahead bool) {
	times := []time.Time{s.Since, s.Ended}
	for _, f := range s.Firings {
		if s.Ended.IsZero() && f.Outcome != Missed { // of a state that was written before that was noted
			times = append(times, f.Ended)
		}
	}
	for _, t := range times {
		switch {
		case t.After(now):
			ahead = true
		case t.After(last):
			last = t
		}
	}
	return last, ahead
}
