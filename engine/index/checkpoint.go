package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The rules are: a checkpoint is the index as it follows from one tree, which names
// its file. Whoever needs the index reads the newest, and then only the items that
// differ between that tree and the tip. One that cannot be read, or whose tree is
// not in the repository, is passed over; without any everything is read. It is
// written to a temporary name and renamed, and not synced: its checksum tells what a
// crash left. It is written when much had to be read, beside the work.

const (
	checkpointSuffix = ".checkpoint"

	// checkpointEvery is how often a run writes one, if something has changed.
	CheckpointEvery = 2 * time.Minute
)

// derived is what the index was derived from; guarded by Keeper.mu.
type derived struct {
	at      gitstore.Hash // the commit that it is the index of; noting is held while it is not
	between bool          // only a part of the move to at was taken in
	behind  bool          // it could not be brought up to date
	saved   gitstore.Hash // the tree of the newest checkpoint
	changes int           // files that were read or changed since
	facets  []string
}

// checkpoints are the files in .bagpipe/index.
type checkpoints struct{ ledger *ledger.Ledger }

// restore fills an index from the newest checkpoint of use, and gives the tree that
// it was derived from; zero: there is none, and the index is new.
func (c checkpoints) restore(v gitstore.View, facets []string, lanes queue.Lanes) (*queue.Index, gitstore.Hash) {
	for _, name := range c.list() {
		index := newIndex(lanes)
		tree, err := c.read(v, name, facets, index)
		if err == nil {
			return index, tree
		}
		c.ledger.Log.Debug("a checkpoint is passed over", "file", name, "err", err)
	}
	return newIndex(lanes), gitstore.Hash{}
}

func (c checkpoints) read(v gitstore.View, name string, facets []string, index *queue.Index) (gitstore.Hash, error) {
	data, err := os.ReadFile(filepath.Join(c.ledger.Path(layout.IndexDir), name))
	if err != nil {
		return gitstore.Hash{}, err
	}
	named, err := index.Read(data, facets, func(digest string) *state.Definition {
		d, err := c.ledger.PinnedPlan(v, digest)
		if err != nil {
			return nil
		}
		return d
	})
	if err != nil {
		return gitstore.Hash{}, err
	}
	tree, err := gitstore.ParseHash(named)
	if err != nil {
		return tree, err
	}
	if there, err := c.ledger.Store.HasTree(tree); err != nil || !there {
		return tree, errors.Join(err, fmt.Errorf("tree %s is not in this repository", named))
	}
	return tree, nil
}

// checkpoints lists the files, the newest first.
func (c checkpoints) list() (names []string) {
	entries, err := os.ReadDir(c.ledger.Path(layout.IndexDir))
	if err != nil {
		return nil // there is none yet
	}
	age := map[string]time.Time{}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && strings.HasSuffix(entry.Name(), checkpointSuffix) {
			names = append(names, entry.Name())
			age[entry.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(names, func(a, b string) int { return age[b].Compare(age[a]) })
	return names
}

// fill makes an index of the items as they are at a commit.
func (ke *Keeper) fill(ctx context.Context, v gitstore.View) (*queue.Index, error) {
	facets := facetPaths(ke.settings.Current())
	ke.facets.Store(&facets)
	index, tree := checkpoints{ke.ledger}.restore(v, facets, ke.settings.Current().Settings.QueueLanes())
	if err := loadBatches(ke.ledger, v, index); err != nil {
		return nil, err
	}
	f := index.Fill()
	changed, err := ke.fillSince(ctx, v, tree, f)
	if err != nil {
		return nil, err
	}
	// What could not be read then may be now: a definition that was missing.
	for _, id := range f.Broken() {
		records, err := ledger.ReadRecords(v, id)
		if err == nil {
			f.Put(ke.Summarise(v, id, &records, &Scanned{}, &queue.Item{}))
		}
	}
	f.Done()
	ke.mu.Lock()
	ke.derived = derived{saved: tree, facets: facets, changes: changed}
	ke.mu.Unlock()
	return index, nil
}

// SaveIndexSoon writes a checkpoint beside the work, if it spares the next start
// much; Close waits for it. What goes wrong costs that start time, nothing else.
func (ke *Keeper) SaveIndexSoon() {
	ke.mu.Lock()
	worth := ke.index != nil && ke.derived.changes > ledger.FewChanges && !ke.ledger.ReadOnly
	ke.mu.Unlock()
	if !worth {
		return
	}
	ke.saving.Go(func() {
		if err := ke.SaveIndex(); err != nil {
			ke.ledger.Log.Warn("the next start will take longer", "err", err)
		}
	})
}

// SaveIndex writes a checkpoint of the index, if the newest is of another tree.
func (ke *Keeper) SaveIndex() error {
	ke.saveTurn.Lock()
	defer ke.saveTurn.Unlock()
	s, tree, changes, err := ke.snapshot()
	if err != nil || s == nil {
		return err
	}
	if err := (checkpoints{ke.ledger}).write(tree, s); err != nil {
		return fmt.Errorf("write a checkpoint of the index: %w", err)
	}
	ke.mu.Lock()
	ke.derived.saved, ke.derived.changes = tree, ke.derived.changes-changes
	ke.mu.Unlock()
	return nil
}

// snapshot copies the index as it follows from one tree, and tells after how many
// changes; nil when it is of no one tree at present, or saved already. A part of a
// later move in it would stay: where that is reverted, the trees do not differ.
func (ke *Keeper) snapshot() (_ *queue.Snapshot, tree gitstore.Hash, changes int, err error) {
	ke.noting.Lock()
	defer ke.noting.Unlock()
	ke.mu.Lock()
	index, at := ke.index, ke.derived
	ke.mu.Unlock()
	if index == nil || at.behind || at.between || at.at.IsZero() {
		return nil, tree, 0, nil
	}
	v, err := ke.ledger.Store.At(at.at)
	if err != nil || v.Tree() == at.saved {
		return nil, tree, 0, err
	}
	s, ok := index.Snapshot(v.Tree().String(), at.facets)
	if !ok {
		s = nil
	}
	return s, v.Tree(), at.changes, nil
}

func (c checkpoints) write(tree gitstore.Hash, s *queue.Snapshot) (err error) {
	dir := c.ledger.Path(layout.IndexDir)
	if err := disk.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	old := c.list()
	name := tree.String() + checkpointSuffix
	tmp := filepath.Join(dir, name+"."+string(c.ledger.ID))
	f, err := os.Create(tmp)
	if err != nil {
		return err
	}
	_, err = s.WriteTo(f)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(tmp, filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	for _, o := range old {
		if o != name {
			if err := os.Remove(filepath.Join(dir, o)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// newIndex is an empty one that has the lanes already: what is ready would else be put
// in order twice.
func newIndex(lanes queue.Lanes) *queue.Index {
	index := queue.New()
	index.SetLanes(lanes)
	return index
}
