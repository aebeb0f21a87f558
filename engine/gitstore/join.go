package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bagpipe/engine/gitstore/internal/ref"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/engine/gitstore/internal/trees"
)

// safely makes git sync all it writes.
var safely = []string{"-c", "core.fsync=all", "-c", "fastimport.unpackLimit=1"}

// Base is a commit that two histories have in common, the same for both orders; zero: they
// are unrelated.
func (s *Store) Base(ctx context.Context, a, b Hash) (Hash, error) {
	if base, err := s.ancestry.Base(a, b); err == nil {
		return base, nil
	}
	out, err := s.repo.GitSays(ctx, "merge-base", "--all", a.String(), b.String())
	if err != nil {
		if ctx.Err() == nil && len(bytes.TrimSpace(out)) == 0 {
			return Hash{}, nil
		}
		return Hash{}, fmt.Errorf("git merge-base: %w: %s", err, bytes.TrimSpace(out))
	}
	return ParseHash(slices.Min(strings.Fields(string(out))))
}

// Beyond gives the commits that lead to tip and not to since, parents first; since may be zero: to none.
func (s *Store) Beyond(ctx context.Context, tip, since Hash) ([]Hash, error) {
	if !since.IsZero() {
		if all, err := s.ancestry.Beyond(tip, since); err == nil {
			return all, nil
		}
	}
	return ParentsFirst(ctx, s.repo.Root, tip, since)
}

// JoinerEmail is the address of who commits joins, the same at every site.
const JoinerEmail = "bagpipe@join"

// JoinCommit writes a commit with two parents: the files of over, one of them, changed by files. It
// is a function of its arguments, byte for byte, and no branch holds it yet.
func (s *Store) JoinCommit(ctx context.Context, parents [2]Hash, over Hash, files map[string][]byte, message string) (Hash, error) {
	v, err := s.At(over)
	if err != nil {
		return Hash{}, err
	}
	var last int64
	for _, p := range parents {
		c, err := s.repo.DB.ReadCommit(p)
		if err != nil {
			return Hash{}, err
		}
		last = max(last, c.Committer.When.Unix())
	}
	j := join{parents, v.tree, files, last, message}
	made, err := j.pack(ctx, s.repo)
	if errors.Is(err, errByGit) {
		return j.byGit(ctx, s.repo, over != parents[0])
	}
	return made, err
}

// LargeRecordBetween is LargeRecord of two commits of a store.
func LargeRecordBetween(ctx context.Context, s *Store, before, commit Hash) (name string, err error) {
	records := map[string]string{}
	err = trees.DiffCommits(s.repo.DB, before, commit, func(path string, blob Hash) error {
		if !blob.IsZero() {
			records[path] = blob.String()
		}
		return ctx.Err()
	})
	if err != nil {
		return "", err
	}
	return largeOf(ctx, s.repo.Root, records)
}

// Land moves the branch to the commit that onto gives for its tip, a descendant of it; no
// process of Bagpipe publishes meanwhile, and JoinCommit is called with the context that onto is given. Advanced is told before Land returns.
func (s *Store) Land(ctx context.Context, onto func(ctx context.Context, tip Hash) (Hash, error)) (Hash, error) {
	to, err := s.land(ctx, onto)
	if err != nil {
		return to, err
	}
	return to, s.Refresh(ctx)
}

func (s *Store) land(ctx context.Context, onto func(context.Context, Hash) (Hash, error)) (to Hash, err error) {
	if s.opts.ReadOnly {
		return to, ErrReadOnly
	}
	turn, err := s.repo.TakeTurn()
	if err != nil {
		return to, err
	}
	defer func() { err = errors.Join(err, turn.Release()) }()
	tip, err := ref.Read(s.repo)
	if err != nil {
		return to, err
	}
	if to, err = onto(context.WithValue(ctx, hasTurn{}, true), tip); err != nil || to == tip {
		return to, err
	}
	return to, moveTo(s.repo, s.opts.Committer, tip, to)
}

// moveTo moves the branch by the store's own lock, as that of a git which is killed would stay
// for good. The turn is the caller's.
func moveTo(r *repo.Repo, committer Signature, tip, to Hash) (err error) {
	locker := ref.NewLocker(r)
	lock, err := locker.Prepare()
	if err != nil {
		return err
	}
	defer func() {
		lock.Release()
		err = errors.Join(err, locker.Close())
	}()
	if err := lock.Write(to); err != nil {
		return err
	}
	moved, err := lock.Move(tip)
	if moved {
		log := ref.NewReflog(r, committer)
		log.Note(ref.Move{From: tip, To: to, Commits: 1, Subject: "sync"})
		log.Flush()
	}
	return err
}

// ours names the commit that the branch stood at before a join in which settings cannot be used.
const ours = ownRefs + "ours"

// Ours is the commit that KeepOurs noted last; zero: none, as in a repository that was restored.
func Ours(ctx context.Context, root string) (h Hash, err error) {
	out, err := gitSays(ctx, root, nil, "for-each-ref", "--format=%(objectname)", ours)
	if err != nil || len(out) == 0 {
		return h, err
	}
	return ParseHash(string(bytes.TrimSpace(out)))
}

// KeepOurs notes where the branch stands before it moves to a join in which settings cannot be used. A
// crash between leaves a note that says nothing new, as the branch stands there.
func KeepOurs(ctx context.Context, root string, h Hash) error {
	_, err := gitSays(ctx, root, nil, "update-ref", ours, h.String())
	return err
}

// Onward lists the commits from the one after from to a tip that from leads to and that changed a file, the newest
// first; none where from does not lead to the tip.
func Onward(ctx context.Context, root string, from, tip Hash, path string) (commits []Hash, err error) {
	out, err := gitSays(ctx, root, nil, "rev-list", "--topo-order", "--full-history", "--ancestry-path", from.String()+".."+tip.String(), "--", path)
	for name := range strings.FieldsSeq(string(out)) {
		h, errName := ParseHash(name)
		if errName != nil {
			return nil, errName
		}
		commits = append(commits, h)
	}
	return commits, err
}
