// Package gitstore is the Git store: one bare repository, one branch, and a
// commit for every change. It is the only importer of go-git.
//
// It owns the repository below WORKSPACE/.git, the order in which bytes, packs
// and the branch become durable (publish.go), the turn lock between Bagpipe's
// processes (turn.go), and the copies of committed files that are shown in the
// workspace (follow.go). It must not know what a file means: not items, not
// steps, not queues. Paths are relative to the root, with forward slashes.
//
// # Who does what
//
// One owner goroutine (owner.go) alone moves the branch. Callers hand it edits;
// those that arrive while it is busy form its next group, of at most 1,000. A
// second goroutine, the herald, tells Advanced of what was committed and answers
// the callers, while the owner builds the next group. A third, the follower, writes
// the followed files behind the commits, with a bounded backlog. Views, diffs and
// history are read by the callers' goroutines. Close waits for all three.
//
// # What holds
//
//   - When Commit returns, the commit is durable and the branch holds it.
//   - An edit sees the files as they are when it is applied, with the earlier
//     edits of its group; the order of commits is the order of arrival.
//   - When another writer moved the branch (a push, git update-ref, another
//     Bagpipe), its changes are told to Advanced, and pending edits are applied
//     again to the new tree.
//   - The branch moves by Git's own protocol (reflock.go), never away from a
//     commit that was published: one moved back to an ancestor is moved forward
//     again, one that was rewritten stops with a DivergedError.
//   - What others put into a tree (links, submodules, modes) stays as it is.
//
// # Files
//
//	.git/                       bare; HEAD names the branch
//	.git/objects/pack/          one pack a group, until Maintain joins them
//	.git/objects/pack/X.keep    while X is being published
//	.git/bagpipe/               indexes not yet renamed to their place
//	.git/REF.bagpipe.lock       the lock of the branch, before it is taken
//	.bagpipe/publish.lock       the turn lock; publish.next its waiting place
//	.bagpipe/follow.lock        held by the process that writes followed files
//	.bagpipe/published          where the branch was moved last
//	.bagpipe/followed           up to which commit the followed files are right
//
// Everything in .bagpipe may be deleted between runs.
package gitstore
