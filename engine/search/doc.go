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
//	state   what it is the index of: its version (now 10), the tree that it follows from, that at which the young
//	        part began, how many bits of an identifier name its part
//	part    a part of the identifiers: its next document, the documents that are in force
//	item    of a part each item in force: identifier, digest of its manifest and inventory, document (packed.go)
//	        (of these tables, and the next ones, a part has several rows, each a page)
//	reach   of the young part where and when each document is
//	common  of a part what items have in common, and the documents that have it: facets are counted over it
//	replaced    the documents of a part in place of which the young part has others, or none
//	list    the documents of a part that have a word, a word in the label, a name and size, a tag,
//	        collection, type, year or format (set.go); where in its text a word stands (stands.go); the sums of values at paths of the manifest;
//	        the documents in the order of each edge of where and when they are (edges.go)
//	tag     the tags that items have, or had, as they are compared
//	words   FTS5 without content, of long texts alone: the label; all else that has several words. It finds what
//	        stands in order. Words come folded, with a blank between them; U+E000 parts values,
//	        so that no phrase goes over two
//	box     R*Tree of the bounds, in two parts where they lie across 180°
//	span    R*Tree of the times
//
// Items whose identifiers begin with the same bits are a part, of some thousands of items. Each has a document there, a
// number that is not given twice: a changed item gets another, and what the lists, FTS5 and R*Trees have of
// the one before is passed over.
//
// Changes touch items all over, so they are not written to the parts, but together into one more, the young part. Once it
// has had a fifth of all items, or some thousands, it is taken into the parts, some of them at a time, behind the search that
// found it so (take_in.go); then another young part begins. Its boxes and spans are in no R*Tree.
//
// A search goes through the parts in the order of identifiers, whatever came first, and ends once
// it has what it was asked for: so its time follows the answers, and an index that was kept current,
// one that was built anew and a look at every record give the same items in the same
// order. In a part it joins lists, from the cheapest on. Where a box or a span has few items,
// the R*Tree lists them for all parts at once; else each part has those whose edges fit, by one list an edge. Facets are counted by two connections side by side.
//
// A condition that wants a text or a number at a path leaves the documents that have its sum; the records of these tell
// whether it holds. Other comparisons, as with patterns, are left to the records.
//
// A part that has become full, or mostly of documents out of force, has the index built anew.
//
// Before each search the index is brought from its tree to the tip, by the items whose
// folders differ. One that is damaged, cut or of another version is built anew, in a file of
// its own that is renamed. Each page has a sum, so that damage is noticed when it is read
// (checked.go). Where it cannot be written, the search reads every record.
//
// # Locks
//
// Who writes holds the lock of the folder, in all processes of a host. Readers rely on
// SQLite's: a part is read in one transaction, none is open while what was found is shown, and a search
// beside which the index was changed begins again. Searches may be used by several goroutines.
package search
