package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/layout/disk"
)

// The commit-graph is written by git, which has to find out what each commit changed:
// some 40 us each, and hundreds of megabytes at a million. A store at work knows what
// its own commits changed, and adds them itself, as further layers of the chain; git
// writes the graph where that does not do: other writers' commits, merges, settings of
// a person's.

// writeGraph has git bring the commit-graph up to date.
func (s *Store) writeGraph(ctx context.Context) error {
	if err := s.clearGraphLocks(); err != nil {
		return fmt.Errorf("clear the commit-graph's lock: %w", err)
	}
	if !s.soundGraph() { // git would go on with what it says
		if err := s.dropGraph(); err != nil {
			return fmt.Errorf("remove a damaged commit-graph: %w", err)
		}
	}
	return s.program(ctx, "commit-graph", "write", "--reachable", "--split", "--changed-paths", "--no-progress")
}

// extendGraph adds the store's own commits; where there are others, git does.
func (s *Store) extendGraph(ctx context.Context) error {
	if err := s.clearGraphLocks(); err != nil {
		return fmt.Errorf("clear the commit-graph's lock: %w", err)
	}
	err := s.addLayer()
	if errors.Is(err, odb.ErrUnfit) {
		s.log.Debug("the commit-graph is left to git")
		return s.writeGraph(ctx)
	}
	return err
}

func (s *Store) openGraph() *odb.Graph { return odb.OpenGraph(filepath.Join(s.git, "objects")) }

func (s *Store) graphDir() string { return filepath.Join(s.git, "objects", "info", "commit-graphs") }

func (s *Store) graphChain() string { return filepath.Join(s.graphDir(), "commit-graph-chain") }

// graphFile is a commit-graph that is no chain.
func (s *Store) graphFile() string { return filepath.Join(s.git, "objects", "info", "commit-graph") }

// graphLink is a second name of the lock on the chain, while a store holds it: who has
// the turn to maintain and finds both knows that the one before died.
func (s *Store) graphLink() string { return filepath.Join(s.tempDir(), "graph-lock") }

// soundGraph tells whether what there is of a graph can be read and has its checksums.
func (s *Store) soundGraph() bool {
	g := s.openGraph()
	defer g.Close()
	if g.Len() > 0 {
		return g.Sound()
	}
	if _, err := s.fs.Lstat(filepath.Join(s.git, "objects", "info", "alternates")); err == nil {
		return true // layers may lie there: git knows
	}
	for _, name := range []string{s.graphFile(), s.graphChain()} {
		if _, err := s.fs.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// dropGraph removes the commit-graph, which is a cache; its layers go later.
func (s *Store) dropGraph() error {
	s.log.Warn("the commit-graph is damaged, and made anew")
	for _, name := range []string{s.graphFile(), s.graphChain()} {
		if err := s.fs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// lockGraph takes git's lock on the chain. The file is nil when a git has it.
func (s *Store) lockGraph() (lock disk.File, err error) {
	if lock, err = s.fs.OpenFile(s.graphLink(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444); err != nil {
		return nil, err
	}
	err = s.fs.Link(s.graphLink(), s.graphChain()+".lock")
	if err == nil {
		return lock, nil
	}
	left := errors.Join(lock.Close(), s.fs.Remove(s.graphLink()))
	if errors.Is(err, fs.ErrExist) {
		return nil, left
	}
	return nil, errors.Join(odb.ErrUnfit, left) // no graph yet, or no second names here
}

// addLayer writes the layer, then the chain that names it, under git's own lock. A
// crash before the chain is renamed leaves a layer that no one reads, and the lock.
func (s *Store) addLayer() (err error) {
	if _, err := s.fs.Lstat(s.graphFile()); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, odb.ErrUnfit)
	}
	lock, err := s.lockGraph()
	if lock == nil || err != nil {
		return err
	}
	named := false // then the lock has become the chain
	defer func() {
		err = errors.Join(err, lock.Close())
		if !named {
			err = errors.Join(err, s.fs.Remove(s.graphChain()+".lock"))
		}
		err = errors.Join(err, s.fs.Remove(s.graphLink()))
	}()
	g := s.openGraph()
	defer g.Close()
	commits, ok := s.recent.since(*s.tip.Load(), g)
	if !ok {
		return odb.ErrUnfit
	}
	if len(commits) == 0 {
		return nil
	}
	if !s.graphChecked && !g.Sound() {
		return odb.ErrUnfit
	}
	s.graphChecked = true
	// Under the lock: else a layer that git has just written would go, too.
	if err := s.dropLayers(g.Names()); err != nil {
		return err
	}
	chain, err := s.writeLayer(s.graphDir(), g, commits)
	if err != nil {
		return err
	}
	if err := s.nameLayers(lock, chain); err != nil {
		return err
	}
	named = true
	return nil
}

// nameLayers writes the chain into the lock, and makes that the chain.
func (s *Store) nameLayers(lock disk.File, chain []Hash) error {
	var text []byte
	for _, name := range chain {
		text = append(text, name.String()+"\n"...)
	}
	if _, err := lock.Write(text); err != nil {
		return err
	}
	if err := lock.Sync(); err != nil {
		return err
	}
	return s.fs.Rename(s.graphChain()+".lock", s.graphChain())
}

// writeLayer writes the file of a layer under its name.
func (s *Store) writeLayer(dir string, g *odb.Graph, commits []odb.GraphEntry) (chain []Hash, err error) {
	temp := filepath.Join(s.tempDir(), "graph")
	f, err := s.fs.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	chain, err = g.AppendLayer(f, commits)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.fs.Rename(temp, filepath.Join(dir, layerFile(chain[len(chain)-1])))
	}
	if err != nil {
		return nil, errors.Join(err, s.fs.Remove(temp))
	}
	return chain, s.fs.SyncDir(dir)
}

func layerFile(name Hash) string { return "graph-" + name.String() + ".graph" }

// dropLayers removes the layers that the chain does not name. Those that it is about
// to name no longer stay until the next time: who has just read it may not have opened
// them yet.
func (s *Store) dropLayers(keep []Hash) error {
	list, err := s.fs.ReadDir(s.graphDir())
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, name := range keep {
		named[layerFile(name)] = true
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), "graph-") && !named[e.Name()] {
			if err := s.fs.Remove(filepath.Join(s.graphDir(), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// recent is what the commit-graph is to know of the store's own commits, in the order
// of the history; other writers' may lie between.
type recent struct {
	mu   sync.Mutex
	list []odb.GraphEntry
}

const maxRecent = 1 << 18 // some 110 bytes each; a million commits take ten minutes, a large join ten seconds

// add takes a group that was published. The list stays bounded: without the oldest it
// no longer reaches the graph, which git then writes.
func (r *recent) add(commits []odb.GraphEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list)+len(commits) > maxRecent {
		r.list = nil
	}
	r.list = append(r.list, commits...)
}

// since gives the commits from the graph to the tip, each after its parent, and forgets
// those before. ok is false when another's is among them.
func (r *recent) since(tip Hash, g *odb.Graph) (commits []odb.GraphEntry, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := slices.IndexFunc(r.list, func(e odb.GraphEntry) bool { return e.Hash == tip }) + 1
	from := end
	for from > 0 && r.list[from-1].Hash == tip {
		if _, there := g.Find(tip); there {
			break
		}
		from--
		tip = r.list[from].Parent
	}
	commits = slices.Clone(r.list[from:end])
	r.list = append([]odb.GraphEntry(nil), r.list[from:]...)
	_, ok = g.Find(tip)
	return commits, ok
}

// graphLockAge is how old a lock on the commit-graph is when its git has died. Git
// holds it while it writes the file, for seconds at a million commits.
const graphLockAge = 10 * time.Minute

// clearGraphLocks removes the locks that a git left that was killed, or stopped by
// a power cut: every later one would refuse to write. One whose time lies as far
// ahead was made before the clock was set back.
func (s *Store) clearGraphLocks() error {
	if err := s.clearOwnLock(); err != nil {
		return err
	}
	for _, lock := range []string{s.graphChain() + ".lock", s.graphFile() + ".lock"} {
		at, err := s.fs.Lstat(lock)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if s.opts.Now().Sub(at.ModTime()).Abs() < graphLockAge {
			continue // a living one's, perhaps
		}
		s.log.Warn("removed the lock of a git that died", "file", lock)
		if err := s.fs.Remove(lock); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// clearOwnLock removes the lock that a store of ours left that was killed: at once, as
// nobody else has the turn to maintain.
func (s *Store) clearOwnLock() error {
	link, err := s.fs.Lstat(s.graphLink())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lock := s.graphChain() + ".lock"
	if at, err := s.fs.Lstat(lock); err == nil && os.SameFile(at, link) {
		if err := s.fs.Remove(lock); err != nil {
			return err
		}
	}
	return s.fs.Remove(s.graphLink())
}
