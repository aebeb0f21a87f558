package metrics

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"bagpipe/engine/control"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// The rules are: to find what waits longest all items are looked at that have something to do.
// That is done when somebody asks, and not again before agesEvery, or twenty times as long as
// it took.

const agesEvery = 15 * time.Second

// ages are since when the oldest step of each kind stands so. Guarded by the metrics' mutex.
type ages struct {
	at, next time.Time
	since    map[ageKey]time.Time
}

type ageKey struct {
	step state.Ref
	what string // ready, person, in-progress
}

func (m *Metrics) oldest(w *writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.ledger.Clock()
	if !now.Before(m.ages.next) {
		m.ages = ages{at: now, since: m.look(m.ledger.Now())}
		m.ages.next = m.ledger.Clock().Add(max(agesEvery, 20*m.ledger.Clock().Sub(now)))
	}
	w.family("bagpipe_steps_oldest_seconds", "gauge", "For how long the step stands that is ready, waits for a person or runs for longest.")
	for _, k := range slices.SortedFunc(maps.Keys(m.ages.since), func(a, b ageKey) int {
		return cmp.Or(cmp.Compare(a.step.String(), b.step.String()), cmp.Compare(a.what, b.what))
	}) {
		w.value(max(0, m.ledger.Now().Sub(m.ages.since[k]).Seconds()), "workflow", k.step.Workflow, "step", string(k.step.Step), "what", k.what)
	}
}

func (m *Metrics) look(now time.Time) map[ageKey]time.Time {
	since := map[ageKey]time.Time{}
	for it := range m.index.Loaded().With(queue.Startable | queue.Person | queue.Running) {
		for run, i := range it.Steps() {
			s := &run.Steps[i]
			what := ""
			switch why := it.BlockedAt(run, i, now); {
			case s.Status == state.InProgress:
				what = "in-progress"
			case s.Status == state.Waiting && why == nil:
				what = "ready"
			case s.Status == state.Waiting && why.Code == "manual":
				what = "person"
			default:
				continue
			}
			k := ageKey{control.RefOf(run.Name, layout.Name(run.Plan.Steps[i].Name)), what}
			if was, there := since[k]; !there || s.Since.Before(was) {
				since[k] = s.Since
			}
		}
	}
	return since
}
