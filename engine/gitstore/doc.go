// Package gitstore is the Git store: one bare repository, one branch, and a commit for every
// change. It is the only importer of go-git.
//
// It owns the order in which objects, packs and the branch become durable (publish.go), and
// the view of the committed files (view.go). Its parts are internal packages: repo (the
// place and its locks), odb (objects and packs), ref (the branch), worktree (the tree that
// edits change), trees and history (reading), follow (committed files shown in the
// workspace) and maintain. It must not know the meaning of a file: not items, not steps, not
// queues. Paths are relative to the root, with forward slashes.
//
// # Goroutines
//
// One owner goroutine (owner.go) alone moves the branch. Callers hand it edits; those that
// arrive while it is busy form its next group, of at most 1,000. A second goroutine, the
// announcer, tells Advanced of the commits and answers the callers, while the owner builds
// the next group. A third, the follower, writes the followed files behind the commits, with
// a bounded backlog. Views, diffs and history are read by the callers' goroutines. Close
// waits for all three.
//
// # Promises
//
//   - When Commit returns, the commit is durable and the branch holds it.
//   - An edit sees the files as they are when it is applied, with the earlier edits of its
//     group; the order of commits is the order of arrival. What follows on an edit
//     (Change.Next) is committed right behind it, in its group.
//   - When another writer moved the branch (a push, git update-ref, another Bagpipe), its
//     changes are told to Advanced, and pending edits are applied again to the new tree.
//   - The branch moves by Git's own protocol (ref/lock.go), never away from a published
//     commit: a branch moved back to an ancestor is moved forward again, a branch that was
//     rewritten stops with a DivergedError.
//   - A branch that was moved on a disk which then cannot sync it stops with an UnsureError.
//   - Entries of other writers (links, submodules, modes) stay as they are.
//
// # Files
//
//	.git/                       bare; HEAD names the branch
//	.git/objects/pack/          one pack a group, until Maintain joins them
//	.git/objects/pack/X.keep    while X is being published
//	.git/bagpipe/               indexes not yet renamed to their place; maintenance's files
//	.git/REF.bagpipe.lock       the lock of the branch, before it is taken
//	.bagpipe/publish.lock       the turn lock; publish.next its waiting place
//	.bagpipe/maintain.lock      held by the process that maintains
//	.bagpipe/follow.lock        held by the process that writes followed files
//	.bagpipe/published          where the branch was moved last
//	.bagpipe/followed           up to which commit the followed files are right
//
// Everything in .bagpipe may be deleted between runs.
package gitstore
