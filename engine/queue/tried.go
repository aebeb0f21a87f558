package queue

import (
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Tried is one attempt that ended, for what the steps' times are derived from.
type Tried struct {
	State  state.Status
	Ended  time.Time
	Waited time.Duration // from when it could start to its claim, in milliseconds
	Ran    time.Duration // in milliseconds
}

// tried gives the attempts at a step that ended, in order. open is when the step
// could first start.
func tried(x *state.Execution, run string, step layout.Name, open time.Time, rec *state.StepRecord) (out []Tried) {
	for _, k := range rec.Keys() {
		a := rec.Attempts[k]
		begun := a.Claimed
		if a.By != "" {
			begun = a.Ended
		}
		for _, in := range x.Intents { // a person let it be tried again
			if (in.Kind == state.RetryIntent || in.Kind == state.ResetIntent) && in.Workflow == run && in.Step == step && in.At.After(open) && !in.At.After(begun) {
				open = in.At
			}
		}
		if a.Ended.IsZero() {
			continue // lost, or at work
		}
		waited, ran := times(open, &a)
		out = append(out, Tried{a.State, a.Ended, waited, ran})
		for _, t := range []time.Time{a.Ended, a.NotBefore} {
			if t.After(open) {
				open = t
			}
		}
	}
	return out
}

// glanceTried is a packed one.
type glanceTried struct {
	state       uint8
	ended       int64 // ms
	waited, ran uint64
}

func (p *packer) tried(all []Tried) {
	p.num(uint64(len(all)))
	for _, t := range all {
		p.num(statusNumber(t.State))
		p.time(t.Ended)
		p.dur(t.Waited)
		p.dur(t.Ran)
	}
}

func (u *unpacker) tried() (all []Tried) {
	all = make([]Tried, u.count())
	for i := range all {
		all[i] = Tried{u.status(u.num()), u.time(), u.dur(), u.dur()}
	}
	return all
}

// lookTried reads the attempts of a step behind those of the steps before it.
func (u *unpacker) lookTried(all []glanceTried) []glanceTried {
	for range u.count() {
		t := glanceTried{state: uint8(u.num())}
		t.ended, _, _ = u.millis()
		t.waited, t.ran = u.num(), u.num()
		all = append(all, t)
	}
	return all
}

// attempts gives those of a step that ended; one is room for the only one.
func (g *glance) attempts(s *glanceStep, one *[1]glanceTried) []glanceTried {
	switch {
	case s.triedTo > s.triedFrom:
		return g.tried[s.triedFrom:s.triedTo]
	case s.attempts > 0 && s.status >= completed:
		one[0] = glanceTried{s.status, s.since, s.waited, s.ran}
		return one[:]
	}
	return nil
}
