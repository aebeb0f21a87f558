package trees

import (
	"bytes"
	"slices"

	"bagpipe/engine/gitstore/internal/odb"
)

// Visit is told the path of a file that differs and the name of its bytes; zero when the
// file is gone.
type Visit func(path string, blob odb.Hash) error

// DiffCommits visits every file that differs from one commit to another, in the order of
// paths. The zero commit has no files.
func DiffCommits(db *odb.DB, from, to odb.Hash, visit Visit) error {
	var roots [2]odb.Hash
	for i, h := range []odb.Hash{from, to} {
		if h.IsZero() {
			continue
		}
		c, err := db.ReadCommit(h)
		if err != nil {
			return err
		}
		roots[i] = c.Tree
	}
	return diff(db, roots[0], roots[1], "", visit)
}

// diff compares two trees of the folder dir; zero is the empty tree. Equal trees are
// passed over unread.
func diff(db *odb.DB, from, to odb.Hash, dir string, visit Visit) error {
	if from == to {
		return nil
	}
	old, err := entries(db, from)
	if err != nil {
		return err
	}
	now, err := entries(db, to)
	if err != nil {
		return err
	}
	for len(old) > 0 || len(now) > 0 {
		var x, y odb.Entry // of one name; the zero Entry: there is none
		switch order := compare(old, now); {
		case order < 0:
			x, old = old[0], old[1:]
		case order > 0:
			y, now = now[0], now[1:]
		default:
			x, old, y, now = old[0], old[1:], now[0], now[1:]
		}
		if err := diffEntry(db, x, y, dir, visit); err != nil {
			return err
		}
	}
	return nil
}

// entries lists a tree; the list does not share the cache's memory.
func entries(db *odb.DB, tree odb.Hash) ([]odb.Entry, error) {
	if tree.IsZero() {
		return nil, nil
	}
	data, err := db.ReadTree(tree)
	if err != nil {
		return nil, err
	}
	return slices.Collect(odb.Entries(bytes.Clone(data))), nil
}

// compare tells which list's first entry comes first in Git's order; 0: both.
func compare(a, b []odb.Entry) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return odb.CompareNames(a[0].Name, a[0].Mode.IsDir(), b[0].Name, b[0].Mode.IsDir())
}

// diffEntry compares the entries of one name.
func diffEntry(db *odb.DB, x, y odb.Entry, dir string, visit Visit) error {
	if x.Hash == y.Hash && x.Mode == y.Mode {
		return nil
	}
	name := x.Name
	if name == nil {
		name = y.Name
	}
	path := join(dir, string(name))
	if x.Mode.IsDir() || y.Mode.IsDir() {
		return diff(db, dirHash(x), dirHash(y), path, visit)
	}
	switch {
	case y.Mode.IsRegular() && x.Mode.IsRegular() && x.Hash == y.Hash:
		return nil // only the permissions changed
	case y.Mode.IsRegular():
		return visit(path, y.Hash)
	case x.Mode.IsRegular():
		return visit(path, odb.Hash{})
	}
	return nil
}

// dirHash names the tree of a folder's entry; the empty tree for any other entry.
func dirHash(e odb.Entry) odb.Hash {
	if !e.Mode.IsDir() {
		return odb.Hash{}
	}
	return e.Hash
}
