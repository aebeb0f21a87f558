package queue

import (
	"time"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/queue/internal/turns"
	"bagpipe/layout"
)

// keyOf names the queue of a ready step.
func (x *store) keyOf(g *packed.Outline, run *packed.OutlineRun, n int) readyKey {
	plan := x.names.Plan(run.Plan)
	return readyKey{StepID{Workflow: plan.Name, Step: layout.Name(plan.Steps[n].Name)}, g.Flies(run)}
}

// stillReady tells whether an entry is what it was pushed as: of a step that is ready
// at now, that nobody has taken, and that belongs to that queue and place. Others
// were pushed again elsewhere.
func (x *store) stillReady(e turns.Entry, key readyKey, p turns.Place, now time.Time) bool {
	b := x.table.Get(e.Item)
	if b == nil || x.taken[slot{e.Item, e.Run, e.N}] {
		return false
	}
	x.at.Read(b)
	run := x.at.Run(uint64(e.Run))
	if run == nil || int(e.N) >= run.To-run.From || standsAt(&x.at) != p || x.keyOf(&x.at, run, int(e.N)) != key {
		return false
	}
	how, until := x.at.Standing(run, int(e.N))
	return how == packed.StandsReady || how == packed.StandsDated && until <= now.UnixMilli()
}
