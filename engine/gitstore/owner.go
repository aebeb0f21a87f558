package gitstore

import (
	"bagpipe/engine/gitstore/internal/maintain"
	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/ref"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/engine/gitstore/internal/worktree"
)

// owner alone changes the branch. Its fields belong to its goroutine.
type owner struct {
	repo      *repo.Repo
	opts      Options
	known     *known
	gather    gatherer
	announcer *announcer
	locker    *ref.Locker
	reflog    *ref.Reflog
	own       *maintain.OwnCommits

	work    *worktree.Tree // nil: to be read from the tip
	builder *odb.Builder
	scratch []byte // for commits
	last    *unsealed
	move    *Advance // of the group, not handed to the announcer yet
	ahead   aheadState
	unsure  error // of a move whose sync failed: nothing more is committed
}

// unsealed is the last commit of the group so far, whose bytes are in scratch: it may be the
// one that is signed. nil: there is none.
type unsealed struct {
	of    *request
	entry odb.GraphEntry
}

func newOwner(r *repo.Repo, o Options, known *known, stop <-chan struct{}, advance func(Advance), own *maintain.OwnCommits) *owner {
	return &owner{
		repo: r, opts: o, known: known, gather: newGatherer(o.Patient, stop), announcer: newAnnouncer(advance),
		locker: ref.NewLocker(r), reflog: ref.NewReflog(r, o.Committer), own: own, builder: odb.NewBuilder(),
	}
}

// run commits groups until the store closes.
func (o *owner) run() {
	defer o.reflog.Flush()
	defer o.announcer.end()
	for group := o.gather.next(); group != nil; group = o.gather.next() {
		for rest := group; len(rest) > 0; {
			n := o.commitGroup(rest)
			o.announcer.hand(o.move, rest[:n])
			o.move = nil
			rest = rest[n:]
		}
		clear(group)
	}
}
