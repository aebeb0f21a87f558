package engine

import (
	"bagpipe/engine/ask"
	"bagpipe/engine/delivery"
	"bagpipe/engine/fault"
	"bagpipe/engine/intake"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Summary is what a run did.
type Summary struct {
	Admitted int                  `json:"takenIn"`
	Rejected int                  `json:"rejected"`
	Bad      []intake.Admitted    `json:"rejectedDrops"` // the first of them, and why
	Steps    map[state.Status]int `json:"steps"`
	Failed   []ask.Failure        `json:"failed"`         // steps that this run saw fail, and that stand so
	Before   int                  `json:"failedBefore"`   // failed steps of earlier runs
	Waiting  int                  `json:"waitsForPerson"` // steps that wait for a person
	Later    int                  `json:"later"`          // steps that wait for their time
	Tried    []ask.TriedLater     `json:"triedLater"`     // those of them that failed, or asked for it, and why
	Left
	Undone
	Mishaps []string          `json:"mishaps"`   // errors at a drop, an item or a step, which the rest went on past
	NotDone []NotDone         `json:"notDone"`   // of the items the run was given
	Off     []ask.StepControl `json:"disabled"`  // steps that are out of the flow
	Stopped []ask.StepControl `json:"stoppedBy"` // steps whose thresholds stopped the run
}

// Left are the drops that a run left in the inbox.
type Left struct {
	Growing []fault.Advice `json:"growing"` // why each is left
	Barred  int            `json:"barred"`  // those that wait for a person, or for free space
	Stuck   int            `json:"-"`       // those that are not just on their way
}

// Undone is what a run left without having tried, beside steps that wait for a person.
type Undone struct {
	Cold        []string          `json:"cold"`           // steps that it did not claim as their warm-up failed
	Deliveries  []delivery.Asking `json:"deliveries"`     // those that wait for a person, or are tried again
	Undelivered int               `json:"undelivered"`    // deliveries that did not go in this run
	Unsound     []string          `json:"unsoundRules"`   // mistakes of rule files without a sound version, for which drops and deliveries wait
	Held        []string          `json:"held"`           // items that it held for what others committed
	Workers     int               `json:"waitsForWorker"` // steps that are ready, and for remote workers alone
}

// itemRun is one run of a workflow on an item.
type itemRun struct {
	item layout.ItemID
	run  string
}
