package queue

import (
	"time"

	"bagpipe/engine/queue/internal/groups"
	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// What the index keeps of an item is defined by package packed, and how the children of
// a step stand by package groups.
type (
	Item     = packed.Item
	Run      = packed.Run
	Step     = packed.Step
	End      = packed.End
	StepID   = packed.StepID
	Trait    = packed.Trait
	Snapshot = packed.Snapshot
	Family   = groups.Family
)

// Traits of items.
const (
	Held      = packed.Held
	Broken    = packed.Broken
	Failed    = packed.Failed
	Person    = packed.Person
	Startable = packed.Startable
	Open      = packed.Open
	Running   = packed.Running
	Ending    = packed.Ending
	Gathered  = packed.Gathered
	Off       = packed.Off
	Kin       = packed.Kin
	Removed   = packed.Removed
)

// SummariseInto reads an item's record, in the memory of an item that nobody needs any
// more. Statuses are computed; plans gives the pinned definition for a digest.
func SummariseInto(it *Item, x *state.Execution, m layout.Manifest, plans func(digest string) *state.Definition, now time.Time) *Item {
	return packed.SummariseInto(it, x, m, plans, now)
}

// EndsOf lists the ends of a step that thresholds look at.
func EndsOf(x *state.Execution, run string, step layout.Name) []End {
	return packed.EndsOf(x, run, step)
}
