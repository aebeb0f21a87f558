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
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/engine/gitstore/internal/trees"
	"bagpipe/engine/gitstore/internal/worktree"
	"bagpipe/layout/disk"
)

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

// pack writes a join as a pack of its own.
func (j join) pack(ctx context.Context, r *repo.Repo) (made Hash, err error) {
	size := 0
	for p, data := range j.files {
		e, found, err := trees.Find(r.DB, j.tree, p)
		if size += len(data); err != nil || size > mostJoined || found && e.Mode != odb.ModeFile {
			return made, errors.Join(errByGit, err)
		}
	}
	w, err := worktree.New(r.DB, j.tree)
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
		turn, err := r.TakeTurn()
		if err != nil {
			return made, err
		}
		defer func() { err = errors.Join(err, turn.Release()) }()
	}
	p := &packFiles{repo: r, base: filepath.Join(r.PackDir(), "pack-"+name.String())}
	err = p.write(pack, index)
	if err == nil {
		err = p.sync(func() error { return nil })
	}
	if err == nil {
		err = r.DB.Add(p.base, index)
	}
	if err == nil {
		at := filepath.Join(r.Git, joinedRef)
		err = errors.Join(r.MkdirAll(filepath.Dir(at)), disk.WriteFileFS(r.FS, at, filepath.Dir(r.Temp(keepFile)), []byte(made.String()+"\n"), 0o644))
	}
	if err != nil {
		return made, errors.Join(fmt.Errorf("write join: %w", err), p.remove())
	}
	return made, p.release()
}

// hasTurn is the key of a context in which this process has the turn.
type hasTurn struct{}

// byGit has git write a join, over its first parent's files or those of the other.
func (j join) byGit(ctx context.Context, r *repo.Repo, other bool) (Hash, error) {
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
	err := cleared(r.Root, func() (err error) {
		out, err = gitSays(ctx, r.Root, in.Bytes(), slices.Concat(safely, []string{"fast-import", "--quiet", "--force", "--done"})...)
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
