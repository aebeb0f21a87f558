package trees

import (
	"fmt"
	"io/fs"
	"strings"

	"bagpipe/engine/gitstore/internal/odb"
)

// Find follows a path down from a tree. ok is false when a name is missing, or no folder
// on the way.
func Find(db Objects, tree odb.Hash, path string) (e odb.Entry, ok bool, err error) {
	for {
		data, err := db.ReadAs(tree, odb.TypeTree)
		if err != nil {
			return e, false, err
		}
		first, rest, more := strings.Cut(path, "/")
		e, found := odb.Lookup(data, first)
		if !found { // nor behind an entry that cannot be read
			err = odb.CheckTree(data)
		}
		if err != nil {
			return e, false, err
		}
		if !found || !more {
			return e, found, nil
		}
		if !e.Mode.IsDir() {
			return e, false, nil
		}
		tree, path = e.Hash, rest
	}
}

// IsRoot reports whether dir names the root folder.
func IsRoot(dir string) bool { return dir == "" || dir == "." }

// FindDir names the tree of a folder; zero when there is none.
func FindDir(db Objects, tree odb.Hash, dir string) (odb.Hash, error) {
	if IsRoot(dir) {
		return tree, nil
	}
	e, ok, err := Find(db, tree, dir)
	if err != nil || !ok || !e.Mode.IsDir() {
		return odb.Hash{}, err
	}
	return e.Hash, nil
}

// Ways are those to some folders, which need not be gone again. The zero Ways are none; they are
// one goroutine's.
type Ways struct{ known []way }

// way says which tree of a root is that of a folder.
type way struct {
	root odb.Hash
	dir  string
	tree odb.Hash
}

// mostWays bounds those that are kept: most commits change files of one folder or two.
const mostWays = 8

// Forget makes room for others.
func (w *Ways) Forget() { w.known = w.known[:0] }

// Keep notes the ways from two roots to a folder's trees.
func (w *Ways) Keep(from, to odb.Hash, in Pair) {
	if n := len(w.known); n < mostWays && (n == 0 || w.known[n-1].dir != in.Dir) {
		w.known = append(w.known, way{from, in.Dir, in.From}, way{to, in.Dir, in.To})
	}
}

// FindDir is the function FindDir, which is asked where the way is not known.
func (w *Ways) FindDir(db Objects, root odb.Hash, dir string) (odb.Hash, error) {
	if w != nil {
		for _, known := range w.known {
			if known.root == root && known.dir == dir {
				return known.tree, nil
			}
		}
	}
	return FindDir(db, root, dir)
}

// ReadFile gives a file's bytes, which must not be changed; fs.ErrNotExist when there is
// none.
func ReadFile(db Objects, tree odb.Hash, path string) ([]byte, error) {
	e, ok, err := Find(db, tree, path)
	if err == nil && (!ok || !e.Mode.IsRegular()) {
		return nil, &fs.PathError{Op: "read committed", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return ReadBlob(db, path, e.Hash)
}

// ReadBlob gives the bytes of a file whose name is known.
func ReadBlob(db Objects, path string, blob odb.Hash) ([]byte, error) {
	data, err := db.ReadAs(blob, odb.TypeBlob)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
