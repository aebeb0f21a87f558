// Package claim says who may act: which engines are alive, and which of them
// holds a step of an item.
//
// It owns .bagpipe/engines, .bagpipe/claims and .bagpipe/claims.lock. It must
// not know Git, what a step does, or what an item's state is. A claim is a
// courtesy between engines that keeps work from being done twice; the fence is
// the committed attempt (law 5), so a claim lost in error costs time and never
// an item. Nothing here outlives .bagpipe, which may be deleted while no
// engine runs, and nothing needs a sync but an engine's own file.
//
// Engine and Observer may be used by several goroutines; a mutex guards each.
// The package starts no goroutine.
//
// # An engine's file
//
// .bagpipe/engines/ENGINE holds JSON: schema, engine, host, pid, bootId, since.
// Its engine holds an exclusive flock on it for as long as the process lives.
// The file is written and locked under a temporary name and then renamed, so
// that it is never seen without its lock or its content. Its modification time
// is the heartbeat (Beat, every 10 seconds).
//
// # The rules of liveness
//
//   - No file: dead.
//   - The flock is held: alive. Observers test with a shared lock, so that two
//     of them never mistake each other for the engine.
//   - The flock is free, and the file names this boot or this host: dead. Two
//     hosts that share a workspace therefore need names of their own. The pid is
//     for people; it decides nothing, so a pid reused after a reboot cannot
//     mislead.
//   - Otherwise (another host, on a file system that does not carry locks): alive
//     until its heartbeat has stood still for 60 seconds of the observer's own
//     monotonic clock, counted from when the observer first looked.
//
// # A claim's file
//
// .bagpipe/claims/ITEM.WORKFLOW.STEP.lock holds JSON: schema, item, workflow,
// step, attempt, engine, host, pid, bootId, since. It is written under a name of
// its engine's own, .ENGINE.N.tmp, and renamed to its own without replacing
// anything: it appears complete or not at all, whatever kills the writer. (Where
// the file system cannot do that it is linked, or created with O_EXCL and then
// written.) Released, it goes back to such a name and serves the next claim; so a
// reader may find the content of another step's claim, which it must compare with
// the file's name.
//
// A claim of a dead engine is taken over, and any claim is released, under an
// flock on .bagpipe/claims.lock and after reading the file again. One that
// cannot be read (a power cut) names no engine; it is dead once it has been
// unchanged for 10 seconds, by its age or by the observer's own watching.
package claim
