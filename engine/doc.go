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
// # Children
//
// What a robot hands over as children is registered between its end and the step's
// (children.go): planned and digested, moved to the items' folders, synced, committed
// one by one, each only while the attempt is the current one. Their identifiers follow
// from parent, run, step and name, so that the step may run again at any point of it.
// What children and their parent make of each other is queue's to say (queue/family.go),
// by the rules of package state.
//
// # What others commit
//
// A push, git update-ref, another Bagpipe: what they commit is taken in, and every
// item they touched is held against what it was before (arrival.go). Names in
// commits prove nothing, so each commit since the last one this workspace checked
// is compared with its parents, item by item:
//
//   - the execution record by state.Mend, of a merge with the join of its parents;
//   - what the manifest says the item is by state.MendManifest; its inventory may
//     change only together with a step that completed;
//   - inventory.json by the digest in the manifest;
//   - a pinned definition by the digest that is its name.
//
// What fits is taken as it is. An item of which something was removed, altered or
// made up is answered by one commit: its records with everything that was
// acknowledged, and a hold whose text says what was wrong and in which commit of
// whom; what was pushed stays in the history. Mending a mended record does
// nothing, so no two engines answer each other, and the second to come finds
// nothing left to do. A pinned definition is put back without a hold, and until
// then read from the history. An attempt in the name of the engine that runs here,
// which it did not make, is kept, as attempts only grow, and the item held. An
// item that is new is taken as it is: there is nothing to compare it with.
//
// Nothing of this engine happens to an item that was touched and not yet looked at
// (transact). A run looks at its start and whenever the branch moves; a command
// that writes looks first, and leaves to the run what is more than a few hundred
// items besides its own. .bagpipe/checked holds the commit up to which all has
// been looked at; an older one costs time only. Without it, the newest commit by a
// Bagpipe on the first-parent line is taken for it.
//
// # The index
//
// Load and Run fill queue.Index (fill.go): from the newest checkpoint in
// .bagpipe/index (checkpoint.go), and then the items whose folders differ between its
// tree and the tip; without one, from all items, on all cores. From then on advanced
// keeps it current. Listings, explanations and statistics ask it alone; a condition may
// read the records of the items it is asked of (values.go).
//
// # Error policy
//
// Retrying, counting and what a threshold does are specified in package state.
// Fail decides on the retry; the ends of steps with thresholds are counted as they
// come into the index, and a threshold that is reached is one commit of
// controls/steps.json (threshold.go). What that file says is enforced where a claim
// is committed and shown where steps are listed (controls.go). Alerts tell what
// waits for a person (alert.go), grouped as bagpipe failures does (failures.go).
//
// # Who guards what
//
// An Engine may be used by several goroutines. mu guards the configuration;
// committed states reach the index through advanced, which the store calls in the
// order of the commits: for this engine's own while it builds the next group, so an
// edit goes by what it reads, not by the index. What is yet to be looked at is
// guarded by arrivals.mu; looking and answering happen one at a time, under
// arrivals.turn. controls.mu guards the counts of thresholds; the controls in force
// are replaced, never changed. Digests are made one at a time, under alerts.turn.
package engine
