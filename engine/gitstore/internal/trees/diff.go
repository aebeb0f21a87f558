package trees

import (
	"bytes"

	"bagpipe/engine/gitstore/internal/odb"
)

// Visit is told the path of a file that differs and the name of its bytes; zero when the
// file is gone.
type Visit func(path string, blob odb.Hash) error

// Objects gives trees and blobs; package odb has several ways.
type Objects interface {
	ReadTree(h odb.Hash) ([]byte, error)
	ReadAs(h odb.Hash, t odb.Type) ([]byte, error)
}

// Commits are Objects that give commits, too.
type Commits interface {
	Objects
	ReadCommit(h odb.Hash) (odb.Commit, error)
}

// DiffCommits visits every file that differs from one commit to another, in the order of
// paths. The zero commit has no files.
func DiffCommits(db Commits, from, to odb.Hash, visit Visit) error {
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
	return Diff(db, roots[0], roots[1], "", nil, func(_ Pair, path string, _, is odb.Hash) error { return visit(path, is) })
}

// Pair is a folder, and its trees on either side.
type Pair struct {
	Dir      string
	From, To odb.Hash
}

// Diff visits every file of the folder dir that differs from one of its trees to another, in the
// order of paths, with the folder that it stands in and the names of its bytes there and here; zero:
// there is no file. The zero tree is empty. Equal trees are passed over unread, and so are those of
// folders that enter refuses; nil: it refuses none.
func Diff(db Objects, from, to odb.Hash, dir string, enter func(dir string) bool, visit func(in Pair, path string, was, is odb.Hash) error) error {
	if from == to {
		return nil
	}
	old, err := treeOf(db, from)
	if err != nil {
		return err
	}
	now, err := treeOf(db, to)
	if err != nil {
		return err
	}
	same := odb.SameEntries(old, now)
	x, moreOld := odb.EntryAt(old, same)
	y, moreNow := odb.EntryAt(now, same)
	for moreOld || moreNow {
		var a, b odb.Entry // of one name; the zero Entry: there is none
		order := compare(x, moreOld, y, moreNow)
		if order <= 0 {
			a = x
			x, moreOld = odb.EntryAt(old, x.At+x.Len)
		}
		if order >= 0 {
			b = y
			y, moreNow = odb.EntryAt(now, y.At+y.Len)
		}
		if a.Hash == b.Hash && a.Mode == b.Mode {
			continue
		}
		if err := diffEntry(db, a, b, Pair{dir, from, to}, enter, visit); err != nil {
			return err
		}
		if moreOld && moreNow && bytes.Equal(old[x.At:], now[y.At:]) {
			return nil
		}
	}
	return nil
}

func treeOf(db Objects, tree odb.Hash) ([]byte, error) {
	if tree.IsZero() {
		return nil, nil
	}
	return db.ReadTree(tree)
}

// compare tells which of two entries, where there are more, comes first in Git's order; 0: both.
func compare(a odb.Entry, moreA bool, b odb.Entry, moreB bool) int {
	switch {
	case !moreA:
		return 1
	case !moreB:
		return -1
	}
	return odb.CompareNames(a.Name, a.Mode.IsDir(), b.Name, b.Mode.IsDir())
}

// diffEntry compares the entries of one name.
func diffEntry(db Objects, x, y odb.Entry, in Pair, enter func(dir string) bool, visit func(in Pair, path string, was, is odb.Hash) error) error {
	name := x.Name
	if name == nil {
		name = y.Name
	}
	path := join(in.Dir, string(name))
	if x.Mode.IsDir() || y.Mode.IsDir() {
		if enter != nil && !enter(path) {
			return nil
		}
		return Diff(db, dirHash(x), dirHash(y), path, enter, visit)
	}
	switch {
	case y.Mode.IsRegular() && x.Mode.IsRegular() && x.Hash == y.Hash:
		return nil // only the permissions changed
	case y.Mode.IsRegular():
		return visit(in, path, fileHash(x), y.Hash)
	case x.Mode.IsRegular():
		return visit(in, path, x.Hash, odb.Hash{})
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

// fileHash names the bytes of a file's entry; zero for any other entry.
func fileHash(e odb.Entry) odb.Hash {
	if !e.Mode.IsRegular() {
		return odb.Hash{}
	}
	return e.Hash
}
