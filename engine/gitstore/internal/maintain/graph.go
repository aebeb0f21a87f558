package maintain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout/disk"
)

// Graph is git's commit-graph. When git writes it, git has to find out the changes of each
// commit: some 40 µs each, and hundreds of megabytes at a million. A store at work knows
// the changes of its own commits, and adds them itself, as further layers of the chain.
// Git writes the graph where that does not do: other writers' commits, merges, a person's
// settings.
//
// The process that has the turn to maintain alone uses a Graph, but for Own, which any
// goroutine may use.
type Graph struct {
	Own OwnCommits

	repo    *repo.Repo
	tip     func() odb.Hash
	checked bool // every layer had its checksum
}

// Write has git bring the commit-graph up to date.
func (g *Graph) Write(ctx context.Context) error {
	if err := g.clearLocks(); err != nil {
		return err
	}
	if !g.sound() { // git would go on with its damage
		g.repo.Log.Warn("the commit-graph is damaged, and made anew")
		for _, name := range []string{g.single(), g.chain()} { // a cache; the layers go later
			if err := g.repo.Remove(name); err != nil {
				return fmt.Errorf("remove a damaged commit-graph: %w", err)
			}
		}
	}
	return g.repo.RunGit(ctx, "commit-graph", "write", "--reachable", "--split", "--changed-paths", "--no-progress")
}

// Extend adds the store's own commits; where there are others, git does.
func (g *Graph) Extend(ctx context.Context) error {
	if err := g.clearLocks(); err != nil {
		return err
	}
	err := g.addLayer()
	if errors.Is(err, odb.ErrUnfit) {
		g.repo.Log.Debug("the commit-graph is left to git")
		return g.Write(ctx)
	}
	return err
}

func (g *Graph) open() *odb.Graph { return odb.OpenGraph(filepath.Join(g.repo.Git, "objects")) }

func (g *Graph) info(name string) string { return filepath.Join(g.repo.Git, "objects", "info", name) }

// single is a commit-graph that is no chain.
func (g *Graph) single() string { return g.info("commit-graph") }

func (g *Graph) dir() string { return g.info("commit-graphs") }

func (g *Graph) chain() string { return filepath.Join(g.dir(), "commit-graph-chain") }

// sound reports whether the existing graph can be read and has its checksums.
func (g *Graph) sound() bool {
	read := g.open()
	defer read.Close()
	if read.Len() > 0 {
		return read.Sound()
	}
	if _, err := g.repo.FS.Lstat(g.info("alternates")); err == nil {
		return true // layers may lie there: git knows
	}
	return !g.repo.Exists(g.single()) && !g.repo.Exists(g.chain())
}

// Git's lock on the chain, and a second name of it while a store holds it: the process
// that has the turn to maintain and finds both knows that the one before died.
func (g *Graph) lock() string { return g.chain() + ".lock" }
func (g *Graph) link() string { return g.repo.Temp("graph-lock") }

// Lock takes git's lock on the chain. The file is nil when a git has it.
func (g *Graph) Lock() (lock disk.File, err error) {
	if lock, err = g.repo.FS.OpenFile(g.link(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444); err != nil {
		return nil, err
	}
	err = g.repo.FS.Link(g.link(), g.lock())
	if err == nil {
		return lock, nil
	}
	left := errors.Join(lock.Close(), g.repo.FS.Remove(g.link()))
	if errors.Is(err, fs.ErrExist) {
		return nil, left
	}
	return nil, errors.Join(odb.ErrUnfit, left) // no graph yet, or no second names here
}

// lockAge is how old a lock on the commit-graph is when its git has died. Git holds it
// while it writes the file, for seconds at a million commits.
const lockAge = 10 * time.Minute

// clearLocks removes the locks of a git that was killed, or stopped by a power cut: every
// later git would refuse to write. A lock whose time lies as far ahead was made before the
// clock was set back.
func (g *Graph) clearLocks() error {
	if err := g.clearOwnLock(); err != nil {
		return fmt.Errorf("clear the commit-graph's lock: %w", err)
	}
	for _, lock := range []string{g.lock(), g.single() + ".lock"} {
		at, err := g.repo.FS.Lstat(lock)
		if errors.Is(err, fs.ErrNotExist) || err == nil && g.repo.Now().Sub(at.ModTime()).Abs() < lockAge {
			continue // a living git's, perhaps
		}
		if err == nil {
			g.repo.Log.Warn("removed the lock of a git that died", "file", lock)
			err = g.repo.Remove(lock)
		}
		if err != nil {
			return fmt.Errorf("clear the commit-graph's lock: %w", err)
		}
	}
	return nil
}

// clearOwnLock removes the lock of a store that was killed: at once, as no other process
// has the turn to maintain.
func (g *Graph) clearOwnLock() error {
	link, err := g.repo.FS.Lstat(g.link())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if at, err := g.repo.FS.Lstat(g.lock()); err == nil && os.SameFile(at, link) {
		if err := g.repo.FS.Remove(g.lock()); err != nil {
			return err
		}
	}
	return g.repo.FS.Remove(g.link())
}
