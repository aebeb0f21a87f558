// Package queue answers what is ready now, and why the rest is not.
//
// It owns the one definition of ready (Item.ready), the order of what is ready,
// and the index that makes the answer instant. A queue is derived from the
// items' states, never stored: the engine puts every committed state into the
// Index, and deleting the Index costs a scan. It must not know how a step is run
// or how states are stored.
//
// # Ready
//
// A step is ready when it waits, its prerequisites are satisfied, its workflow
// is active and its date has come, the item is not held (all of that is
// state.Execution.Blocked), the item's record is sound, and no one here has
// taken it. A manual step that is otherwise ready waits for a person: it stands
// in its queue and is never handed out.
//
// # Batches
//
// A step with onBatchComplete is done on one item of a batch, when all have come as
// far; batch.go has the rules. What the others make of an item's step is laid over
// it in the index, and asked again at the commit of its claim (Index.Around).
//
// # Children
//
// A parent's steps may wait for its children, and children for their place, or as one of
// them failed; family.go has the rules. It is laid over the steps as with batches.
//
// # Order
//
// Lane first, then the oldest item, then its identifier, then the order of the
// steps in the definition.
//
// An Index is guarded by its own mutex; any goroutine may use it.
package queue
