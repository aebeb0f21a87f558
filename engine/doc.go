// Package engine opens, closes and wires the rooms of a workspace, and runs the loops of
// Run.
//
// It owns the wiring (engine.go): which room knows which, who vetoes a change, who is told
// of commits. It owns the loops: steps to the pool (dispatch.go), the inbox
// (intake_loop.go), what others commit (guard_loop.go), the store's upkeep (maintain.go),
// alerts (alarm.go), and what is done now and then (periodic.go). It must not know rules: what
// a drop, a step or a decision means is the rooms'.
//
// # The trip of one drop
//
//	engine/intake_loop.go           takeIn: what has settled
//	engine/intake/admit.go          AdmitAll: take, prepare, promote, register
//	engine/intake/recognition/recognise.go  Plan: kind, workflow, collection, lane
//	engine/ledger/start.go          RegisterItem: the item's first commit
//	engine/ledger/transact.go       Transact: the gate, then the store
//	engine/gitstore/commit.go       CommitTo: durable, and the branch points at it
//	engine/guard/arrivals.go        Arrived: a move of the branch, seen first by the guard
//	engine/index/load.go            NoteItems: the item is in the queue
//	engine/account.go               admitted: people are told
//
// # The trip of one completed step
//
//	engine/dispatch.go              launch: the step goes to the pool
//	engine/attempt/work.go          claim, run, finish
//	engine/attempt/ends.go          complete: one state.Event
//	engine/ledger/transition.go     StepThen: applied to the item as it is at the tip, and what follows on it
//	engine/ledger/transact.go       Transact
//	engine/gitstore/commit.go       CommitTo
//	engine/guard/arrivals.go        Arrived
//	engine/control/controls.go      NoteControls
//	engine/index/load.go            NoteItems: what is ready now
//	engine/account.go               report
//
// A trip goes down and comes back once. Upward it goes through the seams alone, wired by
// newEngine: ledger.Gate (guard vetoes an item that is not yet looked at), the observers of
// ledger.Connect (told of each move of the branch, in the order of the commits),
// settings.Source.OnChange, control.Panel.OnChange, and act.Recover.
//
// # Who guards what
//
// An Engine may be used by several goroutines. Each room guards what is its own. A run's
// account has one lock; the inbox loop is one goroutine's.
package engine
