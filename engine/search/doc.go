// Package search finds items by words, place, time, tags and conditions, and keeps an index
// for it.
//
// It owns the index in .bagpipe/search and the answers. It must not know how a search is
// worded (engine/query does), nor how an answer is shown. It changes no item.
//
// # The index
//
// .bagpipe/search/index.db is an SQLite database, a cache of the committed records alone:
//
//	state   what it is the index of: its version, the tree that it follows from
//	item    one row an item: bounds, time, digest of its manifest and inventory
//	words   FTS5 without content: the label; all else that has words. Words come folded, with
//	        a blank between them; U+E000 parts values, so that no phrase goes over two
//	box     R*Tree of the bounds, in two parts where they lie across 180°
//	span    R*Tree of the times
//	term    a tag, collection, type, year, format; has: which item has it
//
// An item's row has the number that its identifier is: rows stand in the order of
// identifiers, whatever came first, so that an index that was kept current, one that was
// built anew and a look at every record give the same items in the same order.
//
// Before each search the index is brought from its tree to the tip, by the items whose
// folders differ. One that is damaged, cut or of another version is built anew, in a file of
// its own that is renamed. Where it cannot be written, the search reads every record.
//
// # Locks
//
// Who writes holds the lock of the folder, in all processes of a host. Readers rely on
// SQLite's. Searches may be used by several goroutines.
package search
