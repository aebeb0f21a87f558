// Package packed keeps work items in some hundred bytes each.
//
// It owns what the index keeps of an item (Item), what an item's record comes to
// (SummariseInto), the packed form of an item, the table of all items by identifier,
// and the checkpoint file. It must not know queues, limits, batches and families: those
// lay what they say over an item's steps (overlay.go). A Table and an Outline belong to
// the lock of the index that holds them; Names has a lock of its own; a Snapshot shares
// the table's pages until they change, and needs none.
//
// # A packed item
//
// It is, all numbers unsigned and varying in length (LEB128):
//
//	traits, collection, batch, lane, created, label, held [by], broken,
//	milestones: n × (name, time), facets: n × text,
//	runs: n × (name, plan, status, internal error [time], steps: n × step)
//
//	step: status and code of why it is blocked, and which of the others follow;
//	attempts [N, engine, runner, failures, ms waited, ms run], since, [message], [what the code
//	leaves open], [kind], [skip], [what is laid over it], [ends],
//	[children], [attempts that ended: n × (state, time, ms waited, ms run)]
//
// A text is its length and bytes; a name, and a plan, the number of one in the
// index's list; a time 0 for none, else 1 + 2 × the zigzag distance in ms from the
// item's creation, odd where nanoseconds follow.
//
// # The checkpoint
//
//	"bagpipe index 4\n"
//	8 bytes   length of the head
//	head      JSON: tree, items, facets, texts (names by number), plans (digests by number)
//	4096 ×    4 bytes items, 4 bytes length: the pages
//	8 bytes × items: identifiers, without check digit
//	4 bytes × items: where each ends in its page
//	the packed items, page by page
//	4 bytes   CRC-32C of all before
//
// Little-endian. It says which tree it was derived from, and is of use to any
// repository that has that tree, as nothing in it comes from elsewhere. One that is
// damaged, of another version, or of other facets is refused as a whole.
package packed
