// Package atlas words all items of a workspace for those who look for them by place and time:
// as a static STAC catalog, and as a map.
//
// It owns the folder that a catalog stands in, and what is drawn on a map. It must not know
// STAC's words (engine/stac), nor how items are chosen; it changes nothing of the workspace.
// Its lock is that of the catalog's folder.
//
//	DIR/catalog.json                  the catalog, of collections
//	DIR/COLLECTION/collection.json    a collection, of items; its extent is theirs
//	DIR/COLLECTION/ID/ID.json         an item
//	DIR/.bagpipe-stac.json            what it was made of: the tree, and of each item its collection,
//	                                  bounds and time
//
// # Order
//
// Items are written before what links to them, and removed after; the last is the note of what
// it was made of. Killed anywhere, the next export does the same again: all that it names is
// there. A file is written only where its bytes differ.
package atlas
