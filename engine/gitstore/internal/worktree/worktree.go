package worktree

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"

	"bagpipe/engine/gitstore/internal/odb"
)

// Tree is the tree of the tip, with the edits of the group being built. It holds the trees
// in memory that were used lately. After an error in Edit, or a refused publication, a Tree
// no longer matches any commit and is thrown away.
type Tree struct {
	// Replaced are odb.Pairs: the group's blobs and trees, and those they took the place of.
	Replaced []byte

	db      *odb.DB
	root    *node
	group   uint32 // number of the group: packs differ from group to group
	stamp   uint64 // number of the edit
	touched []*node
	written []*node           // by the group
	size    int               // bytes of the nodes held, about
	loads   int               // trees read since Loads was asked
	dir     string            // the path of dirNode
	dirNode *node             // the folder looked at last: the files of an edit mostly stand in one
	fresh   map[string][]byte // files written by the group; nil: deleted
}

// node is one tree in memory.
type node struct {
	parent *node
	name   string
	hash   odb.Hash // zero: not written yet
	raw    []byte
	old    []byte // as it was before the edit with this stamp
	kids   map[string]*node
	depth  int
	at     int        // where its entry stood last in the parent
	placed odb.Placed // in the pack of the group in
	in     uint32
	stamp  uint64
	used   uint32 // the last group that needed it
}

const releaseEvery = 64 // groups: about a second at full speed

const (
	nodeOverhead  = 600      // with its place in the parent, and what it keeps of the edit before
	worktreeLimit = 16 << 20 // the trees of some thousand items, and those above them
)

// New gives the tree of a root; zero: the empty tree.
func New(db *odb.DB, root odb.Hash) (*Tree, error) {
	w := &Tree{db: db, fresh: map[string][]byte{}}
	n, err := w.load(nil, "", root)
	if err != nil {
		return nil, err
	}
	w.root = n
	return w, nil
}

func (w *Tree) load(parent *node, name string, h odb.Hash) (*node, error) {
	n := &node{parent: parent, name: name, hash: h}
	if parent != nil {
		n.depth = parent.depth + 1
	}
	if !h.IsZero() {
		w.loads++
		raw, err := w.db.ReadTreeUncached(h)
		if err != nil {
			return nil, fmt.Errorf("read tree of %q: %w", n.path(), err)
		}
		n.raw = bytes.Clone(raw) // it will be changed in place
	}
	w.size += len(n.raw) + nodeOverhead
	return n, nil
}

func (n *node) path() string {
	if n.parent == nil {
		return ""
	}
	if n.parent.parent == nil {
		return n.name
	}
	return n.parent.path() + "/" + n.name
}

// Root names the root tree as it was written last.
func (w *Tree) Root() odb.Hash { return w.root.hash }

// Loads is how many trees were read since the last call.
func (w *Tree) Loads() int {
	n := w.loads
	w.loads = 0
	return n
}

// RootHash names the root tree after an edit; the very first one may be empty.
func (w *Tree) RootHash(b *odb.Builder) odb.Hash {
	if w.root.hash.IsZero() {
		w.root.hash, w.root.placed = b.AddTree(w.root.raw, nil, odb.Placed{})
		w.root.in = w.group
	}
	return w.root.hash
}

// KeepWritten puts the group's trees into the cache: what reads the tip need not look for
// them in the pack that was just written.
func (w *Tree) KeepWritten() {
	for _, n := range w.written {
		if len(n.raw) > 0 || n.parent == nil { // the others are gone again
			w.db.Keep(n.hash, odb.TypeTree, bytes.Clone(n.raw))
		}
	}
}

// BeginGroup starts a group: its pack is empty, so no tree is placed in the pack.
func (w *Tree) BeginGroup() {
	w.group++
	clear(w.fresh)
	w.Replaced = w.Replaced[:0]
	clear(w.written)
	w.written = w.written[:0]
	w.dirNode = nil
	if w.size > worktreeLimit {
		w.forget()
	}
	if w.group%releaseEvery == 0 {
		w.db.Release()
	}
}

// forget drops the trees that the last groups did not need, so that about the most
// recently used half stays. The trees of a changed path are recently used.
func (w *Tree) forget() {
	for keep := w.group / 2; w.size > worktreeLimit/2; keep = w.group - (w.group-keep)/2 {
		w.size = w.prune(w.root, keep)
		if w.group-keep <= 1 {
			w.root.kids = nil
			w.size = len(w.root.raw) + nodeOverhead
			return
		}
	}
}

func (w *Tree) prune(n *node, keep uint32) int {
	size := len(n.raw) + nodeOverhead
	for name, k := range n.kids {
		if k.used < keep {
			delete(n.kids, name)
			continue
		}
		size += w.prune(k, keep)
	}
	return size
}

// kid gives the tree that an entry names, and loads a tree that is not in memory.
func (w *Tree) kid(n *node, e odb.Entry) (*node, error) {
	if k := n.kids[string(e.Name)]; k != nil {
		k.used, k.at = w.group, e.At
		return k, nil
	}
	name := string(e.Name)
	k, err := w.load(n, name, e.Hash)
	if err != nil {
		return nil, err
	}
	k.used, k.at = w.group, e.At
	n.adopt(k)
	return k, nil
}

func (n *node) adopt(k *node) {
	if n.kids == nil {
		n.kids = map[string]*node{}
	}
	n.kids[k.name] = k
}

// find gives the entry of a path.
func (w *Tree) find(path string) (e odb.Entry, ok bool, err error) {
	dir, name := splitPath(path)
	if w.dirNode != nil && w.dir == dir {
		e, ok, _ = odb.FindEntry(w.dirNode.raw, name, false)
		return e, ok, nil
	}
	n := w.root
	for rest := path; ; {
		name, after, more := strings.Cut(rest, "/")
		if k := n.kids[name]; k != nil && more { // an entry is looked for in up to 256, a child is known by its name
			k.used = w.group
			n, rest = k, after
			continue
		}
		e, found, _ := odb.FindEntry(n.raw, name, false)
		if !more {
			w.dir, w.dirNode = dir, n
		}
		if !found || !more {
			return e, found, nil
		}
		if !e.Mode.IsDir() {
			return e, false, &pathError{path: path, cause: errInTheWay, at: path[:len(path)-len(after)-1]}
		}
		if n, err = w.kid(n, e); err != nil {
			return odb.Entry{}, false, err
		}
		rest = after
	}
}

// Below gives the path of each entry at a path or below it that is no folder, links and
// submodules too, as a change that deletes them.
func (w *Tree) Below(path string) (map[string][]byte, error) {
	w.dirNode = nil
	defer func() { w.dirNode = nil }()
	e, ok, err := w.find(path)
	files := map[string][]byte{}
	if err != nil || !ok {
		return files, err
	}
	if !e.Mode.IsDir() {
		files[path] = nil
		return files, nil
	}
	err = below(w.db, e.Hash, path, files) // a folder in memory is as its hash says between edits
	return files, err
}

func below(db *odb.DB, tree odb.Hash, dir string, files map[string][]byte) error {
	data, err := db.ReadTree(tree)
	if err != nil {
		return err
	}
	for e := range odb.Entries(bytes.Clone(data)) {
		path := dir + "/" + string(e.Name)
		if !e.Mode.IsDir() {
			files[path] = nil
		} else if err := below(db, e.Hash, path, files); err != nil {
			return err
		}
	}
	return nil
}

func splitPath(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// ReadFile gives a file as the edits before have left it; fs.ErrNotExist when there is
// none.
func (w *Tree) ReadFile(path string) ([]byte, error) {
	if data, ok := w.fresh[path]; ok {
		if data == nil {
			return nil, &fs.PathError{Op: "read committed", Path: path, Err: fs.ErrNotExist}
		}
		return data, nil
	}
	e, ok, err := w.find(path)
	if _, inTheWay := err.(*pathError); inTheWay || err == nil && (!ok || !e.Mode.IsRegular()) {
		return nil, &fs.PathError{Op: "read committed", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	data, err := w.db.ReadAs(e.Hash, odb.TypeBlob)
	if err != nil {
		return nil, fmt.Errorf("read committed %s: %w", path, err)
	}
	return data, nil
}
