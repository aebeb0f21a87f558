// Package queue answers what is ready now, and why the rest is not.
//
// It owns the one definition of ready, the order of what is ready, and the index
// that makes the answer instant. A queue is derived from the items' states, never
// stored: the engine puts every committed state into the Index, and deleting the
// Index costs a scan. It must not know how a step is run or how states are stored.
//
// # Ready
//
// A step is ready when it waits, its prerequisites are satisfied, its workflow
// is active and its date has come, the item is not held (all of that is
// state.Execution.Blocked), its batch lets it go on, no control has
// disabled it (Item.Controlled), and the item's record is sound: Item.BlockedAt. It
// is handed out when besides no limit is reached, no one here has taken it, and, to
// a run that is pointed at a named queue, the queue's conditions hold: Index.Take.
// View.Place and View.Keepers say what keeps it, from the same. A manual step that is otherwise
// ready waits for a person: it stands in its queue and is never handed out.
//
// # Batches
//
// A step with onBatchComplete is done on one item of a batch, when all have come as
// far; package groups has the rules. What the others make of an item's step is laid over
// it in the index, and asked again at the commit of its claim (View.Around).
//
// # Children
//
// A parent's steps may wait for its children, and children for their place, or as one of
// them failed; package groups has the rules. It is laid over the steps as with batches.
//
// # Order
//
// Lanes, collections within a lane, and batches within a collection take turns;
// within a batch the oldest item comes first, then the order of its workflows and
// their steps; package turns has the rules. A lane gets twenty takes for each of the next
// one, or shares by weight; collections and batches share evenly. So nothing starves,
// and of one lane, collection and batch the order is that of age. A run that is pointed
// at a named queue with an order of its own takes by that one: own_order.go.
//
// # The index
//
// It holds every item, packed, in pages by the first three digits of the
// identifier; counts that every change keeps; and the steps that are ready, or will
// be at a time. An item with nothing left to do stands in no queue: what is left of
// it is its packed record, so that it can be counted and found. All but the records
// follows from them (Filling.Done). To put an item, to take a step and to count are
// independent of how many items there are, but for a logarithm; what lists items
// looks at the first bytes of each (Trait) and unpacks those it wants.
//
// Package packed has the format of items and of the checkpoint.
//
// An Index is guarded by its own mutex; any goroutine may use it. Its View, which can be
// handed out alone, asks and changes nothing that is asked. A Snapshot shares the pages
// until they change, and needs no lock.
package queue
