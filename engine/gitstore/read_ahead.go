package gitstore

import (
	"sync"
	"sync/atomic"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/trees"
)

// In a store of a million items the trees on the way to an item mostly are not in memory,
// and reading the two that are missing takes a third of the time that the owner has for an
// edit. In large groups another goroutine reads them ahead, into the objects' cache, as the
// edits' folders are known before the edits are: groups of 1,000 then keep 0.75 of their
// rate with 1,000 items, without it 0.69.
const (
	aheadFrom = 256    // edits in a group worth the goroutine
	aheadSpan = 50_000 // commits until it goes by a newer tree; an older one's folders mostly are the same
)

// aheadState is kept from group to group.
type aheadState struct {
	lastEdits int  // of the group before
	root      Hash // whose folders are read
	left      int  // edits until a newer root is taken
}

// ahead reads the trees of one group's folders before the owner comes to them.
type ahead struct {
	db   *odb.DB
	root Hash
	reqs []*request
	at   atomic.Int64 // where the owner is
	done sync.WaitGroup
}

// readAhead starts the goroutine, or gives nil where it would not help: the trees it reads
// must be missing in the owner's own.
func (o *owner) readAhead(reqs []*request) *ahead {
	st, root := &o.ahead, o.work.Root()
	enough := o.work.Loads() >= st.lastEdits/2
	st.lastEdits = len(reqs)
	if len(reqs) < aheadFrom || !enough || root.IsZero() {
		return nil
	}
	if st.root.IsZero() || st.left < 0 {
		st.root, st.left = root, aheadSpan
	}
	st.left -= len(reqs)
	a := &ahead{db: o.repo.DB, root: st.root, reqs: reqs}
	a.done.Go(a.run)
	return a
}

// run warms the cache. An error is the owner's to report, who reads the same tree.
func (a *ahead) run() {
	for i, r := range a.reqs {
		if r.dir != "" && int64(i) > a.at.Load() {
			if h, err := trees.FindDir(a.db, a.root, r.dir); err == nil && !h.IsZero() {
				a.db.ReadTree(h) //nolint:errcheck // as above
			}
		}
	}
}

// reached tells where the owner is.
func (a *ahead) reached(i int) {
	if a != nil {
		a.at.Store(int64(i))
	}
}

func (a *ahead) wait() {
	if a != nil {
		a.at.Store(int64(len(a.reqs)))
		a.done.Wait()
	}
}
