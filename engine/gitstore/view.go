package gitstore

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"bagpipe/engine/gitstore/internal/odb"
)

// View is the committed files at one commit. It stays valid while the branch
// moves on; any goroutine may use it.
type View struct {
	s      *Store
	commit Hash
	tree   Hash
}

// Entry is one name of a committed folder.
type Entry struct {
	Name  string
	IsDir bool
	Hash  Hash
}

// Tip gives the files where the branch is now; the ref is read again, so a
// commit of another writer is seen although Refresh did not tell of it yet. A
// branch that was moved back is not followed: it is as good as moved forward
// again, which the next group does, and what was acknowledged must not be missed
// meanwhile.
func (s *Store) Tip() (View, error) {
	h, err := s.readRef()
	if err != nil {
		return View{}, err
	}
	if known := *s.tip.Load(); h != known && !known.IsZero() {
		if h, err = s.notBehind(known, h); err != nil {
			return View{}, err
		}
	}
	if h.IsZero() {
		return View{}, fmt.Errorf("read %s: %w", s.branch, fs.ErrNotExist)
	}
	return s.At(h)
}

// Known gives the files at the newest commit this store has made or heard of,
// without a look at the branch: all that it acknowledged is in it.
func (s *Store) Known() (View, error) {
	if known := *s.tip.Load(); !known.IsZero() {
		return s.At(known)
	}
	return s.Tip()
}

// notBehind gives the newer of the commit known and where the branch is now.
func (s *Store) notBehind(known, now Hash) (Hash, error) {
	if now.IsZero() {
		return known, nil
	}
	rel, err := s.relate(known, now)
	if err != nil {
		return now, err
	}
	if rel.behind {
		return known, nil
	}
	return now, nil
}

// At gives the files at a commit.
func (s *Store) At(commit Hash) (View, error) {
	if v := s.lastView.Load(); v != nil && v.commit == commit {
		return *v, nil
	}
	c, err := s.readCommit(commit)
	if err != nil {
		return View{}, err
	}
	return View{s: s, commit: commit, tree: c.Tree}, nil
}

// Commit names the commit.
func (v View) Commit() Hash { return v.commit }

// Tree names the root tree; equal trees hold equal files.
func (v View) Tree() Hash { return v.tree }

// ReadFile gives a file's bytes, which must not be changed; fs.ErrNotExist when
// there is none.
func (v View) ReadFile(name string) ([]byte, error) {
	e, ok, err := v.s.findInTree(v.tree, name)
	if err != nil {
		return nil, fmt.Errorf("read %s at %s: %w", name, v.commit, err)
	}
	if !ok || !e.Mode.IsRegular() {
		return nil, &fs.PathError{Op: "read committed", Path: name, Err: fs.ErrNotExist}
	}
	data, err := v.s.db.ReadAs(e.Hash, odb.TypeBlob)
	if err != nil {
		return nil, fmt.Errorf("read %s at %s: %w", name, v.commit, err)
	}
	return data, nil
}

// TreeOf names the tree of a folder, zero when there is none.
func (v View) TreeOf(dir string) (Hash, error) {
	if isRoot(dir) {
		return v.tree, nil
	}
	e, ok, err := v.s.findInTree(v.tree, dir)
	if err != nil || !ok || !e.Mode.IsDir() {
		return Hash{}, err
	}
	return e.Hash, nil
}

// List gives the names of a folder in their committed order; fs.ErrNotExist when
// there is none. Links and submodules are not listed.
func (v View) List(dir string) ([]Entry, error) {
	h, err := v.TreeOf(dir)
	if err != nil {
		return nil, fmt.Errorf("list %s at %s: %w", dir, v.commit, err)
	}
	if h.IsZero() {
		return nil, &fs.PathError{Op: "list committed", Path: dir, Err: fs.ErrNotExist}
	}
	tree, err := v.s.readTree(h)
	if err != nil {
		return nil, fmt.Errorf("list %s at %s: %w", dir, v.commit, err)
	}
	var list []Entry
	for e := range odb.Entries(tree) {
		if e.Mode.IsDir() || e.Mode.IsRegular() {
			list = append(list, Entry{Name: string(e.Name), IsDir: e.Mode.IsDir(), Hash: e.Hash})
		}
	}
	return list, nil
}

func isRoot(dir string) bool { return dir == "" || dir == "." }

func (s *Store) readTree(h Hash) ([]byte, error) {
	tree, err := s.db.ReadAs(h, odb.TypeTree)
	if err != nil {
		return nil, err
	}
	return tree, odb.CheckTree(tree)
}

// findInTree follows a path down from a tree. ok is false when something is
// missing or no folder on the way.
func (s *Store) findInTree(tree Hash, name string) (e odb.Entry, ok bool, err error) {
	for {
		data, err := s.readTree(tree)
		if err != nil {
			return e, false, err
		}
		first, rest, more := strings.Cut(name, "/")
		e, found, _ := odb.FindEntry(data, first, false)
		if !found || !more {
			return e, found, nil
		}
		if !e.Mode.IsDir() {
			return e, false, nil
		}
		tree, name = e.Hash, rest
	}
}

// HoldsBlob tells whether these bytes were ever committed as a file, or at least
// stored in the repository. It is quick whatever the length of the history.
func (s *Store) HoldsBlob(data []byte) (bool, error) { return s.db.Has(odb.Name(odb.TypeBlob, data)) }

// Diff tells every file that differs from one commit to another, in the order
// of paths. Equal subtrees are passed over unread.
func (s *Store) Diff(ctx context.Context, from, to Hash, visit func(FileChange) error) error {
	return s.diffCommits(from, to, func(c FileChange) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return visit(c)
	})
}

func (s *Store) diffCommits(from, to Hash, visit func(FileChange) error) error {
	return s.diffNames(from, to, s.withBytes(visit))
}

// diffNames is Diff that reads no file.
func (s *Store) diffNames(from, to Hash, visit visitName) error {
	var trees [2]Hash
	for i, h := range []Hash{from, to} {
		if h.IsZero() {
			continue // the empty tree
		}
		c, err := s.readCommit(h)
		if err != nil {
			return err
		}
		trees[i] = c.Tree
	}
	return s.diffTrees(trees[0], trees[1], "", visit)
}

// visitName is told the path of a file and the name of its bytes; zero: it is gone.
type visitName func(path string, blob Hash) error

func (s *Store) withBytes(visit func(FileChange) error) visitName {
	return func(path string, blob Hash) error {
		if blob.IsZero() {
			return visit(FileChange{Path: path, Deleted: true})
		}
		data, err := s.readBlob(path, blob)
		if err != nil {
			return err
		}
		return visit(FileChange{Path: path, Data: data})
	}
}

func (s *Store) readBlob(path string, blob Hash) ([]byte, error) {
	data, err := s.db.ReadAs(blob, odb.TypeBlob)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

// DiffTrees is Diff of two trees whose files stand below prefix. Zero is the
// empty tree.
func (s *Store) DiffTrees(from, to Hash, prefix string, visit func(FileChange) error) error {
	return s.diffTrees(from, to, prefix, s.withBytes(visit))
}

func (s *Store) diffTrees(from, to Hash, prefix string, visit visitName) error {
	if from == to {
		return nil
	}
	var old, new []byte
	var err error
	if !from.IsZero() {
		if old, err = s.readTree(from); err != nil {
			return err
		}
	}
	if !to.IsZero() {
		if new, err = s.readTree(to); err != nil {
			return err
		}
	}
	return s.diffEntries(bytes.Clone(old), bytes.Clone(new), prefix, visit)
}

// diffEntries walks two trees side by side in Git's order.
func (s *Store) diffEntries(old, new []byte, prefix string, visit visitName) error {
	a, b := listEntries(old), listEntries(new)
	for len(a) > 0 || len(b) > 0 {
		order := 0
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		default:
			order = odb.CompareNames(a[0].Name, a[0].Mode.IsDir(), b[0].Name, b[0].Mode.IsDir())
		}
		var x, y *odb.Entry
		if order <= 0 {
			x, a = &a[0], a[1:]
		}
		if order >= 0 {
			y, b = &b[0], b[1:]
		}
		if err := s.diffEntry(x, y, prefix, visit); err != nil {
			return err
		}
	}
	return nil
}

func listEntries(tree []byte) []odb.Entry {
	var list []odb.Entry
	for e := range odb.Entries(tree) {
		list = append(list, e)
	}
	return list
}

// diffEntry compares what stands under one name; nil is nothing.
func (s *Store) diffEntry(x, y *odb.Entry, prefix string, visit visitName) error {
	if x != nil && y != nil && x.Hash == y.Hash && x.Mode == y.Mode {
		return nil
	}
	either := x
	if either == nil {
		either = y
	}
	name := path.Join(prefix, string(either.Name))
	if x != nil && x.Mode.IsDir() || y != nil && y.Mode.IsDir() {
		return s.diffTrees(dirHash(x), dirHash(y), name, visit)
	}
	isFile := func(e *odb.Entry) bool { return e != nil && e.Mode.IsRegular() }
	switch {
	case isFile(y) && isFile(x) && x.Hash == y.Hash:
		return nil // only the permissions changed
	case isFile(y):
		return visit(name, y.Hash)
	case isFile(x):
		return visit(name, Hash{})
	}
	return nil
}

// dirHash names the tree of an entry that is one; an empty one otherwise.
func dirHash(e *odb.Entry) Hash {
	if e == nil || !e.Mode.IsDir() {
		return Hash{}
	}
	return e.Hash
}
