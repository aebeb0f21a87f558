// Package index keeps the queue's index current from the ledger.
//
// It owns the loaded queue.Index, the checkpoints in .bagpipe/index and the counting of
// ends for thresholds. It must not know which questions the index is asked, nor how
// their answers are shown.
//
// Load, Begin and View fill the index from the newest checkpoint (checkpoint.go), and then
// from the items whose folders differ between its tree and the tip; without a checkpoint,
// from all items, on all cores. From then on the observer NoteItems keeps the index
// current. Listings, explanations and statistics ask the index alone; a condition may read
// the records of the items it is asked of.
//
// # Locks
//
// Three locks, in this order: loading is held while an index is filled, noting while the
// index takes in a move of the branch or is copied, mu while the keeper's own fields are
// read or set. The store calls NoteItems in the order of the commits: for this engine's own
// commits while the store builds the next group, so an edit goes by the records it reads,
// not by the index. saveTurn lets one checkpoint be written at a time; Close waits for it.
package index
