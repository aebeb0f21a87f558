package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/ref"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/engine/gitstore/internal/trees"
	"bagpipe/engine/gitstore/internal/worktree"
	"bagpipe/layout/disk"
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
	made, err := s.packJoin(ctx, j)
	if errors.Is(err, errByGit) {
		return s.importJoin(ctx, j, over != parents[0])
	}
	return made, err
}

// join is a commit of two parents: the files of a tree, changed by some.
type join struct {
	parents [2]Hash
	tree    Hash
	files   map[string][]byte
	when    int64 // seconds
	message string
}

// joinedRef keeps the last join from git gc, until the branch has it.
const joinedRef = "refs/bagpipe/joined"

// errByGit is of a join that the git program writes.
var errByGit = errors.New("the join is left to git")

// mostJoined bounds the files of a join that is made in memory.
const mostJoined = 16 << 20

// packJoin writes a join as a pack of its own.
func (s *Store) packJoin(ctx context.Context, j join) (made Hash, err error) {
	size := 0
	for p, data := range j.files {
		e, found, err := trees.Find(s.repo.DB, j.tree, p)
		if size += len(data); err != nil || size > mostJoined || found && e.Mode != odb.ModeFile {
			return made, errors.Join(errByGit, err)
		}
	}
	w, err := worktree.New(s.repo.DB, j.tree)
	if err != nil {
		return made, err
	}
	w.BeginGroup()
	b := odb.NewBuilder()
	if _, _, err := w.Edit(b, j.files); err != nil {
		return made, errors.Join(errByGit, err)
	}
	joiner := Signature{Name: "Bagpipe", Email: JoinerEmail}.At(time.Unix(j.when, 0))
	made = b.AddCommit(odb.AppendCommit(nil, w.RootHash(b), j.parents[:], joiner, joiner, j.message))
	pack, index, name := b.Finish()
	if ctx.Value(hasTurn{}) == nil {
		turn, err := s.repo.TakeTurn()
		if err != nil {
			return made, err
		}
		defer func() { err = errors.Join(err, turn.Release()) }()
	}
	p := &packFiles{repo: s.repo, base: filepath.Join(s.repo.PackDir(), "pack-"+name.String())}
	err = p.write(pack, index)
	if err == nil {
		err = p.sync(func() error { return nil })
	}
	if err == nil {
		err = s.repo.DB.Add(p.base, index)
	}
	if err == nil {
		at := filepath.Join(s.repo.Git, joinedRef)
		err = errors.Join(s.repo.MkdirAll(filepath.Dir(at)), disk.WriteFileFS(s.repo.FS, at, filepath.Dir(s.repo.Temp(keepFile)), []byte(made.String()+"\n"), 0o644))
	}
	if err != nil {
		return made, errors.Join(fmt.Errorf("write join: %w", err), p.remove())
	}
	return made, p.release()
}

// hasTurn is the key of a context in which this process has the turn.
type hasTurn struct{}

// importJoin has git write a join, over its first parent's files or those of the other.
func (s *Store) importJoin(ctx context.Context, j join, other bool) (Hash, error) {
	var in bytes.Buffer
	fmt.Fprintf(&in, "commit "+joinedRef+"\nmark :1\ncommitter Bagpipe <%s> %d +0000\ndata %d\n%s\nfrom %s\nmerge %s\n",
		JoinerEmail, j.when, len(j.message), j.message, j.parents[0], j.parents[1])
	if other {
		fmt.Fprintf(&in, "M 040000 %s \"\"\n", j.tree)
	}
	for _, p := range slices.Sorted(maps.Keys(j.files)) {
		if data := j.files[p]; data == nil {
			fmt.Fprintf(&in, "D %s\n", quoted(p))
		} else {
			fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n", quoted(p), len(data))
			in.Write(data)
			in.WriteByte('\n')
		}
	}
	in.WriteString("\nget-mark :1\ndone\n")
	var out []byte
	err := cleared(s.repo.Root, func() (err error) {
		out, err = gitSays(ctx, s.repo.Root, in.Bytes(), slices.Concat(safely, []string{"fast-import", "--quiet", "--force", "--done"})...)
		return err
	})
	if err != nil {
		return Hash{}, err
	}
	return ParseHash(strings.TrimSpace(string(out)))
}

// quoted is a path as git fast-import reads it.
func quoted(p string) string {
	if strings.ContainsAny(p, "\"\\\n") {
		return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`).Replace(p) + `"`
	}
	return p
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
