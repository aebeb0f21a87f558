package queue

import (
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Entry is one step of one item that is ready, or would be but for a person.
type Entry struct {
	Item *Item
	Run  string // accession.1
	Step layout.Name
	N    int // the step's place in the definition

	Since time.Time // of a brief one: since when the step stands as it does
}

// slot names a step of an item in few bytes.
type slot struct {
	item uint64
	run  uint32 // the number of its name
	n    uint16
}

// readyKey tells the queues of ready steps apart: one for each step, and one for
// items that are in flight already, which limits on items do not hold back.
type readyKey struct {
	StepID
	flying bool
}

// ID names the entry's step.
func (e Entry) ID() StepID {
	if plan := e.plan(); plan != nil {
		return StepID{Workflow: plan.Name, Step: e.Step}
	}
	return StepID{Step: e.Step}
}

// plan is the definition that the entry's run goes by; nil: the item has no such run.
func (e Entry) plan() *state.Definition {
	if run := e.Item.Run(e.Run); run != nil {
		return run.Plan
	}
	return nil
}
