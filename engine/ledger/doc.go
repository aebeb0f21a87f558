// Package ledger reads items at a commit and makes transitions of them durable.
//
// It owns an item's committed records, pinned definitions, batches, the words and trailers
// of commits, and the transaction: one transition, one commit, acknowledged when the
// commit is durable. What follows on a transition has a commit of its own behind it (StepThen).
// It must not know policy: which step is ready, who may act, what
// other writers' commits are worth.
//
// Ledger asks a Gate before each change of an item, and calls each Observer with every move
// of the branch.
//
// # Locks
//
// Transact may be called by any goroutine; the store's owner goroutine applies the edit at
// the tip, again when another writer was first. Observers are called one at a time, in the
// order of the commits, by the store's announcer. Each cache has a lock of its own.
package ledger
