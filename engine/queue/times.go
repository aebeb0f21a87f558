package queue

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/layout"
)

// Times is what the items tell of one step: how long its attempts waited and ran, and
// what became of them.
type Times struct {
	StepID
	Standing
	Attempts, FailedAttempts int
	LastHour, LastDay        int           // attempts that completed or skipped it since then
	CPU                      time.Duration // that the programs of all its attempts took
	Idle                     time.Duration // that instances of its program had nothing to do before them
	Waited, Ran              Spread
	Manual                   bool
}

// Standing counts items by how the step stands on them.
type Standing struct {
	Waiting, Ready, Running, Person int
	Completed, Skipped, Failed      int
}

// Spread is how durations are spread, of the attempts that completed, or failed.
type Spread struct {
	N           int
	Median, P95 time.Duration
	all         []uint32 // ms, until they are sorted
}

// maxTime is the longest time that is told apart: 49 days.
const maxTime = 1<<32 - 1

// Times looks at every item, on all cores, and gives the steps that any has, in the
// order of workflows and of their definitions. It lets others ask and change between some pages and the next.
func (v View) Times(now time.Time) []Times {
	const pages = packed.Pages / 64
	x := v.s
	parts := make([]timing, runtime.GOMAXPROCS(0))
	for i := range parts {
		parts[i] = timing{of: map[StepID]*Times{}, hour: now.Add(-time.Hour).UnixMilli(), day: now.Add(-24 * time.Hour).UnixMilli()}
	}
	for from := 0; from < packed.Pages; from += pages {
		x.mu.Lock()
		x.settle(now)
		onAllCores(pages, func(i, at, to int) { parts[i].look(x, from+at, from+to) })
		x.mu.Unlock()
	}
	x.mu.Lock()
	_, plans := x.names.All()
	x.mu.Unlock()
	all := parts[0].of
	for _, part := range parts[1:] {
		for id, t := range part.of {
			if to := all[id]; to != nil {
				to.merge(t)
			} else {
				all[id] = t
			}
		}
	}
	place := map[StepID]int{}
	for _, p := range plans {
		for i := range p.Steps {
			place[StepID{Workflow: p.Name, Step: layout.Name(p.Steps[i].Name)}] = i
		}
	}
	out := make([]Times, 0, len(all))
	for _, t := range all {
		t.Waited.sort()
		t.Ran.sort()
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Times) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(place[a.StepID], place[b.StepID]), cmp.Compare(a.Step, b.Step))
	})
	return out
}

// timing is what one core has found.
type timing struct {
	of        map[StepID]*Times
	byPlan    [][]*Times // so that a step costs no look into the map
	hour, day int64      // ms
	one       [1]packed.OutlineTried
	outline   packed.Outline
}

// look looks at the items of some pages. The store's lock is held.
func (m *timing) look(x *store, from, to int) {
	g := &m.outline
	x.table.Each(from, to, func(_ uint64, b []byte) {
		g.Read(b)
		for r := range g.Runs {
			run := &g.Runs[r]
			for uint64(len(m.byPlan)) <= run.Plan {
				m.byPlan = append(m.byPlan, nil)
			}
			if m.byPlan[run.Plan] == nil {
				plan := x.names.Plan(run.Plan)
				for i := range plan.Steps {
					id := StepID{Workflow: plan.Name, Step: layout.Name(plan.Steps[i].Name)}
					if m.of[id] == nil {
						m.of[id] = &Times{StepID: id, Manual: plan.Steps[i].Manual}
					}
					m.byPlan[run.Plan] = append(m.byPlan[run.Plan], m.of[id])
				}
			}
			for i, t := range m.byPlan[run.Plan] {
				how, _ := g.Standing(run, i)
				s := &g.Steps[run.From+i]
				t.stand(s, how == packed.StandsReady)
				all := g.Attempts(s, &m.one)
				for k := range all {
					t.tried(&all[k], m.hour, m.day)
				}
				if s.Attempts == 0 && s.Status >= packed.StatusCompleted && s.Status <= packed.StatusSkipped {
					t.recent(s.Since, m.hour, m.day)
				}
			}
		}
	})
}

// stand counts how the step stands on an item.
func (t *Times) stand(s *packed.OutlineStep, ready bool) {
	t.Attempts += int(s.Attempts)
	t.FailedAttempts += int(s.Failures)
	t.CPU += time.Duration(s.CPU) * time.Millisecond
	t.Idle += time.Duration(s.Idle) * time.Millisecond
	switch s.Status {
	case packed.StatusWaiting:
		t.Waiting++
		if ready {
			t.Ready++
		}
		if s.Person() {
			t.Person++
		}
	case packed.StatusInProgress:
		t.Running++
	case packed.StatusFailed:
		t.Failed++
	case packed.StatusCompleted:
		t.Completed++
	case packed.StatusSkipped:
		t.Skipped++
	}
}

// tried counts an attempt that ended.
func (t *Times) tried(a *packed.OutlineTried, hour, day int64) {
	if a.State == packed.StatusCompleted || a.State == packed.StatusFailed {
		t.Waited.all = append(t.Waited.all, uint32(min(a.Waited, maxTime)))
		t.Ran.all = append(t.Ran.all, uint32(min(a.Ran, maxTime)))
	}
	if a.State == packed.StatusCompleted || a.State == packed.StatusSkipped {
		t.recent(a.Ended, hour, day)
	}
}

// recent counts what was done lately.
func (t *Times) recent(at, hour, day int64) {
	if at >= hour {
		t.LastHour++
	}
	if at >= day {
		t.LastDay++
	}
}

func (t *Times) merge(o *Times) {
	for _, pair := range []struct{ to, from *int }{{&t.Waiting, &o.Waiting}, {&t.Ready, &o.Ready}, {&t.Running, &o.Running}, {&t.Person, &o.Person},
		{&t.Completed, &o.Completed}, {&t.Skipped, &o.Skipped}, {&t.Failed, &o.Failed}, {&t.Attempts, &o.Attempts},
		{&t.FailedAttempts, &o.FailedAttempts}, {&t.LastHour, &o.LastHour}, {&t.LastDay, &o.LastDay}} {
		*pair.to += *pair.from
	}
	t.CPU += o.CPU
	t.Idle += o.Idle
	t.Waited.all = append(t.Waited.all, o.Waited.all...)
	t.Ran.all = append(t.Ran.all, o.Ran.all...)
}

func (s *Spread) sort() {
	slices.Sort(s.all)
	if s.N = len(s.all); s.N > 0 {
		s.Median, s.P95 = s.at(50), s.at(95)
	}
	s.all = nil
}

// at is what that many of a hundred did not exceed.
func (s *Spread) at(percent int) time.Duration {
	i := min(len(s.all)-1, (len(s.all)*percent+99)/100-1)
	return time.Duration(s.all[max(0, i)]) * time.Millisecond
}
