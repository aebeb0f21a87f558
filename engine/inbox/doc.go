// Package inbox watches the inbox, tells settled drops from unfinished ones, and
// takes each drop exactly once into the intake, from there to its item's folder.
//
// It owns inbox/, intake/ and rejected/ of the workspace and the move from
// intake/ID/source to the item's source folder. It is the only importer of
// notify. It must not know steps, workflows' definitions, Git or the engine: what
// a drop becomes is its caller's business. Box may be used by several goroutines;
// a mutex guards what it has observed. Run starts no goroutine of its own.
//
// # The way of a drop
//
//	Run wakes → Scan → Take → the caller recognises it, Digest → Promote →
//	the caller commits the item → Done
//
// Reject and RejectTaken set aside what cannot be admitted, Undo gives back what
// cannot be admitted now, Accept stands in for Scan and Take when a person names
// a path, and Pending at the start goes on with what dead engines left.
//
// # What is a drop
//
// Each folder directly in inbox/ is a collection, if its name is a layout.Name and,
// with Settling.Listed, it has settings of its own; others wait for a person.
// Each folder or regular file directly in a collection's folder is one drop; where a
// collection's folders are batches, in one of those. Scan reads names and metadata
// only; it opens lists (below) and pause files, and, to ask for their writers, the
// files of drops that would settle. Files that belong together,
// as Options.Together tells, are one drop (set.go has the rules).
//
// # The rules of settling
//
// Each collection may have its own Settling.
//
//   - A drop is settled when nothing in it has changed for Quiet: the newest of
//     all modification and change times below it, itself included, is that old.
//   - What a process of this machine holds open for writing is not settled, whatever
//     else says that it is (writers.go). Where that cannot be seen a drop waits for
//     twice Quiet.
//   - A drop that was renamed into its place while this process watched, and has
//     not changed since, is settled at once: a rename moves what is whole. Without
//     events a rename is proven by what the drop consists of being older than the
//     last listing of its folder, in which it was not (foundWhole in judge.go).
//   - A marker, a regular file NAME.ready beside the drop, settles it at once if the
//     drop has not changed since. With ByMarker a drop without one waits.
//   - A list at the top of a folder keeps it waiting until all is there that it names
//     (list.go). With ByList a folder without one waits. CheckLists compares the
//     digests, once the drop is taken.
//   - A file .pause in inbox/ or in the collection's folder keeps what has settled
//     where it is.
//   - On network file systems, whose clock is another's, and when that time lies
//     in the future, ages prove nothing. There it is settled when its signature
//     (below) has stood still for Quiet of this process's own watching.
//   - Names that match an Ignore pattern wait. Patterns that begin with a dot
//     count for the drop's own name only: dotfiles inside a folder are content.
//   - A folder without files, or a file without bytes, waits 10 × Quiet, since
//     people make a folder first and copy afterwards, and is then bad.
//   - What may be the rest of a drop that was taken waits for a person (late.go).
//   - Links, FIFOs, sockets, devices, and what cannot be read or is named too
//     deep make a settled drop bad. None of them is ever opened.
//
// What has been on its way for longer than Growing is Late: since the oldest change of
// a file in it, which any process can see.
//
// A signature covers, for every entry, path, type, size, inode, modification and
// change time; for the drop itself all but the change time, which a rename moves.
//
// # The intake
//
//	intake/ID/drop.json        the journal of one drop (below)
//	intake/ID/source/NAME      the drop, under the name it had
//	intake/ID/copying/NAME     a copy that is not finished
//	intake/.ENGINE.ID.tmp/     a journal being written
//	inbox/COLLECTION/.bagpipe-sets/ID/   the files of a set, while they are gathered
//
// A drop's marker is removed, and its side-cars are moved to its item's folder
// sidecars/, by Done: after the item's commit. With a rejected drop the marker goes and
// the side-cars stay.
//
// Taking renames the drop, once: of many takers one wins and the others get
// ErrGone. The journal is durable before the rename. What was renamed is looked
// at again; if its signature is not the one Scan saw, it goes back and the taker
// gets ErrChanged.
//
// Across file systems the drop is first renamed in place to .bagpipe-ID (its
// Aside), which makes the one winner, then copied to copying/, synced, read back
// and compared by digest, and renamed to source/. The original goes when Done is
// called, that is after the item's commit.
//
// What a crash leaves, and what Pending makes of it at the next start, once the
// journal's engine is dead:
//
//	journal, no drop in source/          nothing was taken: the folder is removed
//	journal, drop in source/             returned, to be admitted
//	journal, copying/ only               copy removed, original put back
//	journal, .bagpipe-sets/ID            the files of the set put back, the first one last
//	journal, the item's source folder    returned as promoted: committed → Done,
//	                                     otherwise to be admitted
//	journal with item and version        version.go has the rules
//
// # drop.json
//
// JSON, sorted keys, schema 1: aside, batch, by, bytes, chosen (the
// collection was), collection, engine,
// files, item (that it is to be a version of), kind (folder or file), label, lane,
// marker, markerSeen (its inode and the time of its last change), mode (rename or copy),
// name, origin, original (what an original that stays is known by), schema, set (the names of its files, if it was a set), shared (the table beside it), sidecars (a list), sidecarsSeen (of
// each the same as markerSeen), taken (RFC 3339), version (that it is to be),
// versionOf (the item that a person made it a version of), workflow. The paths aside, marker, name, origin, shared and
// sidecars are percent-encoded (layout.EncodePath),
// and but for name relative to the workspace when they lie in it. Unknown fields survive a rewrite; a newer schema is refused.
//
// # rejected/
//
// rejected/COLLECTION/NAME is a rejected drop, beside it NAME.reason.json:
// collection, name, original (of a copy whose original stays), reason, rule, schema,
// time, where. The reason is durable
// before the drop moves. A name already there is followed by .2, .3 …; one too
// long for its reason file is cut and marked with eight digits of its SHA-256. A
// drop on another file system stays there, in COLLECTION/.rejected/.
//
// # The digest of a drop
//
// Of a file: the SHA-256 of its bytes. Of a folder: the SHA-256 of one line for
// each regular file below it,
//
//	PATH TAB SIZE TAB SHA256 LF
//
// with PATH relative to the folder, percent-encoded, SIZE in decimal, SHA256 in
// lower-case hexadecimal, lines in the order of their bytes. Names of empty
// folders, times, modes and the folder's own name do not count. Both are written
// sha256:HEX.
package inbox
