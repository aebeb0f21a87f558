// Package intake makes items of drops: it recognises, reads side-cars, digests, looks for
// duplicates and new versions, and registers.
//
// It owns the order of an admission (admit.go), new versions of items (version.go), originals that stay in the inbox (originals.go) and
// how much is taken in at once (free_room.go, room_limit.go). It must not know steps: an
// item is handed over by its first commit. A crash at any point of an admission leaves
// the drop in intake/ID, and the next engine goes on from there.
//
// An Intake may be used by several goroutines.
package intake
