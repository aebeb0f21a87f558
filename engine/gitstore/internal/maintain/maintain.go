package maintain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout"
)

// Report is the result of maintenance.
type Report struct {
	Busy        bool  `json:"busy"` // another process maintains this repository: nothing was done
	PacksBefore int   `json:"packsBefore"`
	PacksAfter  int   `json:"packsAfter"`
	BytesBefore int64 `json:"bytesBefore"` // of all packs
	BytesAfter  int64 `json:"bytesAfter"`
	Joined      int   `json:"joined"`    // packs that became one
	Graph       bool  `json:"graph"`     // the commit-graph was brought up to date
	Compacted   bool  `json:"compacted"` // files' versions were stored as differences
}

const (
	lockFile    = layout.StateDir + "/maintain.lock"
	joinFrom    = 8 // packs worth joining
	packRetries = 3 // when a pack is gone that was listed
)

// Maintainer maintains one repository.
type Maintainer struct {
	Graph Graph
	// CompactFrom is how many bytes of packs added are worth packing all anew.
	CompactFrom int64

	repo *repo.Repo
}

// New makes a Maintainer; tip gives the newest commit of the store.
func New(r *repo.Repo, tip func() odb.Hash) *Maintainer {
	return &Maintainer{Graph: Graph{repo: r, tip: tip}, CompactFrom: 1 << 20, repo: r}
}

// Join joins small packs and brings the commit-graph up to date. A store at work needs it
// every few thousand commits.
func (m *Maintainer) Join(ctx context.Context) (Report, error) {
	return m.inTurn(ctx, m.Graph.Extend, func(ctx context.Context, packs []packInfo, r *Report) error {
		return m.joinSmall(ctx, packs, r, atWork)
	})
}

// Maintain is Join; and when the packs added since the last time are more than a share of
// the rest, all packs become one, in which a file's versions are stored as differences.
func (m *Maintainer) Maintain(ctx context.Context) (Report, error) {
	return m.inTurn(ctx, m.Graph.Write, m.shrinkAdded)
}

// Compact packs everything anew by git repack, which looks for differences everywhere; it
// takes long, and memory in proportion.
func (m *Maintainer) Compact(ctx context.Context) (Report, error) {
	return m.inTurn(ctx, m.Graph.Write, m.repack)
}

// packer joins some of the packs.
type packer func(context.Context, []packInfo, *Report) error

// inTurn maintains, unless another process does.
func (m *Maintainer) inTurn(ctx context.Context, graph func(context.Context) error, pack packer) (r Report, err error) {
	lock := m.repo.LockFile(lockFile)
	ok, err := lock.TryLock()
	if err != nil {
		return r, fmt.Errorf("maintain: %w", err)
	}
	if !ok {
		return Report{Busy: true}, nil
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if err := m.maintain(ctx, graph, pack, &r); err != nil {
		return r, fmt.Errorf("maintain: %w", err)
	}
	return r, nil
}

func (m *Maintainer) maintain(ctx context.Context, graph func(context.Context) error, pack packer, r *Report) error {
	if err := clearJoining(m.repo); err != nil {
		return err
	}
	packs, err := listPacks(m.repo)
	if err != nil {
		return err
	}
	r.PacksBefore, r.BytesBefore = len(packs), sizeOf(packs)
	packErr := pack(ctx, packs, r)
	for n := 0; n < packRetries && errors.Is(packErr, fs.ErrNotExist); n++ { // git repack was at it, too
		if packs, err = listPacks(m.repo); err != nil {
			return err
		}
		packErr = pack(ctx, packs, r)
	}
	if rotten := new(odb.RottenError); packErr != nil && !errors.As(packErr, &rotten) {
		return packErr
	}
	if err := graph(ctx); err != nil {
		return errors.Join(packErr, err)
	}
	r.Graph = true
	if packs, err = listPacks(m.repo); err != nil {
		return errors.Join(packErr, err)
	}
	r.PacksAfter, r.BytesAfter = len(packs), sizeOf(packs)
	return errors.Join(packErr, m.repo.DB.Rescan())
}

// joinSmall joins again and again, as one joined pack has its largest size.
func (m *Maintainer) joinSmall(ctx context.Context, packs []packInfo, r *Report, rule joinRule) error {
	for {
		small := chooseJoin(packs, rule)
		if len(small) < joinFrom {
			return nil
		}
		joined, _, err := joinSound(ctx, m.repo, small, nil)
		if r.Joined += len(joined); err != nil || len(joined) == 0 {
			return err
		}
		if packs, err = listPacks(m.repo); err != nil {
			return err
		}
	}
}
