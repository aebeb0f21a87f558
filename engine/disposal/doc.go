// Package disposal removes items whose time is over, for good: their bytes go, a tombstone
// stays.
//
// It owns what is done by a proposal in disposals/ (package warrant has its rules), and which
// items are due by retention:. It must not know how a proposal is shown, nor how a delivery is
// taken back; who opens the engine hands that over.
//
// # The rules
//
// An item is not disposed of while it is held, is under way, has a child that is held, is part
// of an item that is under way, lies in a catalog, or has a copy that a store does not let go
// yet; nor while a target that has a copy, or a part that is shelved or published, is away. All of that is asked again when it begins.
//
//	begun    one commit: the intent dispose, after which nothing happens to the item any more;
//	         nothing was removed yet
//	removed  deliveries are taken back; then the copies on every target, what is aside of them,
//	         and access copies; then the item's folder but for its records: source, content,
//	         versions, kept inputs, views, logs
//	done     one commit: manifest.json becomes a tombstone; inventory, deposits, quality and
//	         deliveries go from the tip of the history
//
// Each removal may be done again. After a crash the item is as it was, or it is begun, and the
// next run of the same proposal goes on; doing it twice gives the same item. At a site that
// gets the tombstone by a sync Tidy removes the bytes that it still has, access copies that it made itself too: while
// their target is away the item's folder stays, and the next run goes on.
//
// A Keeper has no state but what it was made of.
package disposal
