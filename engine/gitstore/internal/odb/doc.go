// Package odb reads and writes Git objects: the database of one repository.
//
// It owns the object formats (blob, tree, commit), the pack and index formats
// (version 2), zlib, deltas, loose objects, and the list of packs. It must not
// know branches, the order of publication, or what a file means: it never syncs
// and never moves a ref.
//
// # Writing
//
// A Builder collects the objects of one group in memory and yields the bytes of
// one pack and of its index. The rules are: commits and trees are stored
// deflate (uncompressed: 80 % of the time went to zlib before); a tree that was
// written before in the same pack becomes an OFS_DELTA of that version, made
// from the common head and tail, at most 50 deep; blobs are deflated at level 1
// and stand after everything else, so that they can be deflated side by side; one
// whose version before is in the same share becomes an OFS_DELTA of it, deflated,
// where that has an eighth of its length or less (of 200 records of which each second
// follows the one before it, 0.7 of the processor time).
//
// # Reading
//
// A DB finds objects in packs, then loose. Indexes up to 32 KiB are kept in
// memory, and when there are many such packs one table finds their objects (at
// most a million, about 40 MB); larger indexes are read by ReadAt with only their
// first table (1 KiB) kept; one that is asked thousands of times in a row is mapped,
// until Release. About 256 packs are open at a time. When an object is in no
// known pack, the folder is looked at again: others (git gc, push) may have
// written new packs and removed old ones. A pack that was removed stays
// readable while it is open.
//
// A DB may be used by many goroutines; DB.mu guards the list of packs, each
// pack's own lock its open files. A Builder and a Tree belong to one goroutine.
package odb
