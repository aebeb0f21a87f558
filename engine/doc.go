// Package engine is the use cases: admit a drop, claim a step, complete, fail,
// retry, hold, recover, run, and look.
//
// It owns the order in which things become true: bytes first, then the commit,
// then everything else. It must not know how states are stored (engine/gitstore
// does), what a step means (steps does), or how anything is shown (cmd does).
//
// # Where a completed step becomes a commit
//
// Run hands ready steps to the pool (run.go). A piece of work is claimed, run and
// finished (work.go): run calls the robot in scratch (call.go); finish publishes
// its outputs (publish.go) and calls Complete, Fail or Defer (transition.go). Each
// of these is one state.Event, and (*Engine).step makes it happen: it applies the
// event to the item as it is at the branch's tip, encodes the record, words the
// message (message.go), and hands the edit to gitstore.Store.Commit, which answers
// when the commit is durable.
//
// # Who guards what
//
// An Engine may be used by several goroutines. mu guards the configuration;
// committed states reach the index through advanced, which the store's owner
// goroutine calls.
package engine
