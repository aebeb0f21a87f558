// Package catalog knows folders whose objects are items and stay where they are.
//
// It owns catalogs/NAME/tree in the history, one record a folder, and the scan that brings it
// up to date; package settings owns catalogs/NAME.yaml. It must not know steps, nor how an
// object becomes an item or its next version: that is package intake's.
//
// # A folder's record
//
// catalogs/NAME/tree/PATH/.folder.json, each name of PATH percent-encoded, leading dots and what Git refuses, too:
//
//	{
//	  "device": "4f2a…",                of the root alone: the file system
//	  "entries": {
//	    "a.tif": "file yes 1024 2026-11-20T10:00:00.123456789Z = 1234567 3fa9c0d2e1b7a45",
//	    "old": "gone folder unknown 1234569",
//	    "sub": "folder maybe 1234568 77a9c0d2e1b7a4c"
//	  },
//	  "folder": "2026-11-20T10:00:00.5Z 1234500",   modification time, inode
//	  "pages": 2,                       where there is more than one
//	  "replaced": {"sub": ["gone file yes …"]},   another has the name now; none: of no entry
//	  "rules": "5c1e9a70…",             by which the entries were recognised; none: they were not
//	  "schema": 1,
//	  "state": "present",
//	  "waits": {"b.tif": "…"},          why entries could not be looked into; none: all could
//	  "why": "…"                        of another state
//	}
//
// An entry is: gone, if it is; file, folder, link or other; verdict; and of a file size,
// modification time, change time (= where it is the same); inode; the item, if it is one.
// Verdicts are unknown, yes, maybe and no, as recognition has them, and part: of the object
// that a folder above is. Of refused, an object that cannot be an item, the item that it was, or -,
// and the reason stand behind the inode; what is in it stays part of it. So do of with, a file that is one object with a
// file beside it, the item that it was by itself, or -, and the name of that file, whose entry names the item of the object; a
// program that knows of none takes the last record of before. An entry that is gone is kept while it, or what was below it, may be
// an item; what is below a gone folder is gone by that. Where an entry of another kind, or one that moved there, has its name now,
// it is replaced, and what is known of it stands aside for its return; a program that knows of none forgets it.
//
// An entry that could not be looked into stays what it was, and waits: each scan asks anew, until it can be. A
// program that knows of no reasons takes it for one that could be.
//
// States: present; unconfirmed, where so much was gone that a person is asked; unread, where
// the folder could not be listed: what is below stays as it was. A folder that is listed and
// has no record is unconfirmed, too, and Row counts it as Unlisted: nobody is asked about it.
//
// Beyond 4,096 entries they stand in pages .page-N.json, {"entries": …, "schema": 1, "waits": …}, by a hash
// of their names; the number of pages is a power of two and only grows.
//
// # A scan
//
//	walk        list each folder and compare it with its record         walk.go, list.go
//	settle      what vanished has moved, is gone, or waits               vanish.go
//	recognise   folders to objects, then their files                     stages.go
//	flush       changed objects' versions; records; new objects' items   flush.go, crew.go
//
// A version is committed before the record that has its new times, a record with a new item's
// identifier before the item, which is made while the scan goes on. So a scan that was killed is gone on with by the next one: it
// finds the change again, or registers what it finds unregistered. Records are committed by and
// by, once what is in them was recognised, and with them the changed ones above as not recognised
// yet (rules is empty), which lead to them.
//
// .bagpipe/catalogs/NAME.checkpoint is the tree as of one Git tree, and whether all items in it
// are registered; without it the records are read. The entries of a folder stay packed until they
// are asked for.
//
// # Locks
//
// A scan holds the lock file .bagpipe/catalogs/NAME.lock. Keeper.mu guards the objects that
// are to be looked at again, counts.mu what was counted.
package catalog
