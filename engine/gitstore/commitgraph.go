package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// writeGraph brings the commit-graph up to date.
func (s *Store) writeGraph(ctx context.Context) error {
	if err := s.clearGraphLocks(); err != nil {
		return fmt.Errorf("clear the commit-graph's lock: %w", err)
	}
	return s.program(ctx, "commit-graph", "write", "--reachable", "--split", "--changed-paths", "--no-progress")
}

// graphLockAge is how old a lock on the commit-graph is when its git has died. Git
// holds it while it writes the file, for seconds at a million commits.
const graphLockAge = 10 * time.Minute

// clearGraphLocks removes the locks that a git left that was killed, or stopped by
// a power cut: every later one would refuse to write. One whose time lies as far
// ahead was made before the clock was set back.
func (s *Store) clearGraphLocks() error {
	info := filepath.Join(s.git, "objects", "info")
	for _, lock := range []string{
		filepath.Join(info, "commit-graphs", "commit-graph-chain.lock"),
		filepath.Join(info, "commit-graph.lock"),
	} {
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
