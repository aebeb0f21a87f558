// Package ref is the branch of the store: where it points, Git's lock on it, and the
// reflog.
//
// It owns Git's protocol for moving a branch (lock.go) and the reflog's lines
// (reflog.go). It must not know packs, commits' contents, or why the branch moves.
//
// Read may be called by any goroutine. A Locker and a Reflog belong to the store's owner
// goroutine, which holds the turn lock while it uses them.
package ref
