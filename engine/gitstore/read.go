package gitstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore/internal/history"
	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/ref"
	"bagpipe/engine/gitstore/internal/trees"
)

// Tip gives the files where the branch is now; the ref is read again, so a commit of
// another writer is seen although Refresh did not tell of it yet. A branch that was moved
// back is not followed: the next group moves it forward again, and acknowledged commits
// must not be missed meanwhile.
func (s *Store) Tip() (View, error) {
	h, err := ref.Read(s.repo)
	if err != nil {
		return View{}, err
	}
	if v := s.known.next.Load(); v != nil && v.commit == h { // readers wait for no group of this process to be remembered
		return *v, nil
	}
	if known := *s.known.tip.Load(); h != known && !known.IsZero() {
		rel := history.Relation{Behind: h.IsZero()}
		if !h.IsZero() {
			if rel, err = history.Relate(s.repo.DB, known, h); err != nil {
				return View{}, err
			}
		}
		if rel.Behind {
			h = known
		}
	}
	if h.IsZero() {
		return View{}, fmt.Errorf("read %s: %w", s.repo.Branch, fs.ErrNotExist)
	}
	return s.At(h)
}

// Known gives the files at the newest commit this store has made or heard of, without a
// look at the branch: every acknowledged commit of this store is in it.
func (s *Store) Known() (View, error) {
	if known := *s.known.tip.Load(); !known.IsZero() {
		return s.At(known)
	}
	return s.Tip()
}

// At gives the files at a commit.
func (s *Store) At(commit Hash) (View, error) {
	if v := s.known.view.Load(); v != nil && v.commit == commit {
		return *v, nil
	}
	c, err := s.repo.DB.ReadCommit(commit)
	if err != nil {
		return View{}, err
	}
	return View{db: s.repo.DB, commit: commit, tree: c.Tree}, nil
}

// HoldsBlobs reports of each of some files whether its bytes were ever committed, or at least
// stored in the repository. It is quick whatever the length of the history.
func (s *Store) HoldsBlobs(files [][]byte) ([]bool, error) {
	var blobs []Hash
	for _, data := range files {
		blobs = append(blobs, odb.Name(odb.TypeBlob, data))
	}
	return s.repo.DB.HasEach(blobs)
}

// HasTree reports whether a tree is in the repository.
func (s *Store) HasTree(h Hash) (bool, error) {
	_, err := s.repo.DB.ReadTree(h)
	if errors.Is(err, odb.ErrMissing) || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Diff tells every file that differs from one commit to another, in the order of paths.
// Equal subtrees are passed over unread.
func (s *Store) Diff(ctx context.Context, from, to Hash, visit func(FileChange) error) error {
	return trees.DiffCommits(s.repo.DB, from, to, func(path string, blob Hash) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		c, err := readChange(s.repo.DB, path, blob)
		if err != nil {
			return err
		}
		return visit(c)
	})
}

// readChange reads the new bytes of a file that differs.
func readChange(db trees.Objects, path string, blob Hash) (FileChange, error) {
	if blob.IsZero() {
		return FileChange{Path: path, Deleted: true}, nil
	}
	data, err := trees.ReadBlob(db, path, blob)
	return FileChange{Path: path, Data: data}, err
}

// HistoryOptions choose commits. Path: those that changed that file or folder, against
// their first parent. From: where to begin, zero for the tip. Limit: how many at most, 0
// for all.
type HistoryOptions = history.Options

// Commit is one commit of the history.
type Commit = history.Commit

// Trailer is one KEY: VALUE line of a message's last block.
type Trailer = history.Trailer

// shallow is the error of a repository that lacks the older part of the history; nil: it is not said to.
func shallow(repository string) error {
	if _, err := os.Lstat(filepath.Join(repository, "shallow")); err != nil {
		return nil //nolint:nilerr // whoever asks has met an error already
	}
	return fault.New(fault.Refused, "this clone is shallow: it lacks the older part of the history", fault.Remedy{Verb: fault.FetchAll, Name: filepath.Dir(repository)})
}

// History gives commits, the newest first (by committer's time; a parent never before its
// child that led to it). An error ends it.
func (s *Store) History(ctx context.Context, o HistoryOptions) iter.Seq2[Commit, error] {
	return func(yield func(Commit, error) bool) {
		if o.From.IsZero() {
			v, err := s.Tip()
			if err != nil {
				yield(Commit{}, err)
				return
			}
			o.From = v.commit
		}
		err := history.Walk(ctx, s.repo, o, func(c Commit) bool { return yield(c, nil) })
		if errors.Is(err, odb.ErrMissing) {
			err = cmp.Or(shallow(s.repo.Git), err)
		}
		if err != nil {
			yield(Commit{}, err)
		}
	}
}
