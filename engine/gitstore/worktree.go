package gitstore

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"bagpipe/engine/gitstore/internal/odb"
)

// worktree is the tree of the tip, with the edits of the group being built. It
// holds the trees in memory that were used lately. It belongs to the owner
// goroutine. After an error in edit, or a refused publication, it no longer
// matches any commit and is thrown away.
type worktree struct {
	db      *odb.DB
	root    *node
	group   uint32 // number of the group: packs differ from group to group
	stamp   uint64 // number of the edit
	touched []*node
	size    int               // bytes of the nodes held, about
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
	placed odb.Placed // in the pack of group placedIn
	in     uint32
	stamp  uint64
	used   uint32 // the last group that needed it
}

const (
	nodeOverhead  = 256
	worktreeLimit = 96 << 20
)

func newWorktree(db *odb.DB, root odb.Hash) (*worktree, error) {
	w := &worktree{db: db, fresh: map[string][]byte{}}
	n, err := w.load(nil, "", root)
	if err != nil {
		return nil, err
	}
	w.root = n
	return w, nil
}

func (w *worktree) load(parent *node, name string, h odb.Hash) (*node, error) {
	n := &node{parent: parent, name: name, hash: h}
	if parent != nil {
		n.depth = parent.depth + 1
	}
	if !h.IsZero() {
		raw, err := w.db.ReadAsUncached(h, odb.TypeTree)
		if err != nil {
			return nil, fmt.Errorf("read tree of %q: %w", n.path(), err)
		}
		if err := odb.CheckTree(raw); err != nil {
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

// beginGroup starts a group: its pack is empty, so nothing is placed in it.
func (w *worktree) beginGroup() {
	w.group++
	clear(w.fresh)
	if w.size > worktreeLimit {
		w.forget()
	}
}

// forget drops the trees the last groups did not need, so that about the most
// recently used half stays; trees of a changed path are always of this kind.
func (w *worktree) forget() {
	for keep := w.group / 2; w.size > worktreeLimit/2; keep = w.group - (w.group-keep)/2 {
		w.size = w.prune(w.root, keep)
		if w.group-keep <= 1 {
			w.root.kids = nil
			w.size = len(w.root.raw) + nodeOverhead
			return
		}
	}
}

func (w *worktree) prune(n *node, keep uint32) int {
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

// kid gives the tree an entry names, loading it when it is not in memory.
func (w *worktree) kid(n *node, e odb.Entry) (*node, error) {
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

// find gives the entry of a path; parent is the last tree on the way that exists.
func (w *worktree) find(path string) (e odb.Entry, ok bool, err error) {
	n := w.root
	for {
		name, rest, more := strings.Cut(path, "/")
		e, found, _ := odb.FindEntry(n.raw, name, false)
		if !found || !more {
			return e, found, nil
		}
		if !e.Mode.IsDir() {
			return e, false, &pathError{path: path, cause: errInTheWay}
		}
		if n, err = w.kid(n, e); err != nil {
			return odb.Entry{}, false, err
		}
		path = rest
	}
}

// ReadFile is what apply sees.
func (w *worktree) ReadFile(path string) ([]byte, error) {
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

// edit applies a change's files and adds what it makes to the pack: blobs, and
// every tree from the changed ones to the root. It gives the paths that really
// changed, in order. When it fails before anything was changed, clean is true.
func (w *worktree) edit(b *odb.Builder, files map[string][]byte) (changed []string, clean bool, err error) {
	paths := slices.Sorted(maps.Keys(files))
	for _, p := range paths {
		if err := w.check(p, files); err != nil {
			return nil, true, err
		}
	}
	w.stamp++
	w.touched = w.touched[:0]
	for _, p := range paths {
		did, err := w.set(b, p, files[p])
		if err != nil {
			return nil, false, err
		}
		if did {
			changed = append(changed, p)
			w.fresh[p] = files[p]
		}
	}
	w.write(b)
	return changed, true, nil
}

// set changes one entry, and touches the trees on the way to it.
func (w *worktree) set(b *odb.Builder, path string, data []byte) (changed bool, err error) {
	n := w.root
	for {
		name, rest, more := strings.Cut(path, "/")
		if !more {
			return w.setEntry(b, n, name, data), nil
		}
		e, found, _ := odb.FindEntry(n.raw, name, true)
		switch {
		case found:
			if n, err = w.kid(n, e); err != nil {
				return false, err
			}
		case data == nil:
			return false, nil // nothing to delete
		default:
			k := n.kids[name] // begun by an earlier path of this edit
			if k == nil {
				k = &node{parent: n, name: name, depth: n.depth + 1, used: w.group}
				w.size += nodeOverhead
				n.adopt(k)
			}
			n = k
		}
		path = rest
	}
}

func (w *worktree) setEntry(b *odb.Builder, n *node, name string, data []byte) bool {
	e, found, at := odb.FindEntry(n.raw, name, false)
	if data == nil {
		if found {
			w.touch(n)
			w.splice(n, e.At, e.Len, nil)
		}
		return found
	}
	h := b.AddBlob(data)
	switch {
	case !found:
		w.touch(n)
		w.splice(n, at, 0, odb.AppendEntry(nil, odb.ModeFile, name, h))
	case e.Mode.IsRegular() && e.Hash == h:
		return false
	case e.Mode.IsRegular(): // an executable stays one
		w.touch(n)
		copy(n.raw[e.At+e.Len-len(h):], h[:])
	default:
		w.touch(n)
		w.splice(n, e.At, e.Len, nil)
		_, _, at = odb.FindEntry(n.raw, name, false)
		w.splice(n, at, 0, odb.AppendEntry(nil, odb.ModeFile, name, h))
	}
	return true
}

// touch marks a tree and those above it as changed by this edit, and keeps what
// each was before.
func (w *worktree) touch(n *node) {
	for ; n != nil && n.stamp != w.stamp; n = n.parent {
		n.stamp = w.stamp
		n.old = append(n.old[:0], n.raw...)
		w.touched = append(w.touched, n)
	}
}

func (w *worktree) splice(n *node, at, del int, ins []byte) {
	n.raw = slices.Replace(n.raw, at, at+del, ins...)
	w.size += len(ins) - del
}

// write adds the touched trees to the pack, the deepest first, so that each
// knows its children's names.
func (w *worktree) write(b *odb.Builder) {
	slices.SortStableFunc(w.touched, func(x, y *node) int { return y.depth - x.depth })
	for _, n := range w.touched {
		if len(n.raw) == 0 && n.parent != nil {
			w.drop(n) // Git has no empty folders
			continue
		}
		if bytes.Equal(n.old, n.raw) && !n.hash.IsZero() {
			continue
		}
		if n.in != w.group {
			n.placed, n.in = odb.Placed{}, w.group
		}
		n.hash, n.placed = b.AddTree(n.raw, n.old, n.placed)
		if n.parent != nil {
			w.link(n)
		}
	}
	for _, n := range w.touched {
		n.old = n.old[:0]
		if cap(n.old) > 4<<10 {
			n.old = nil
		}
	}
}

// link writes a tree's new name into its parent.
func (w *worktree) link(n *node) {
	p := n.parent
	if e, ok := odb.EntryAt(p.raw, n.at); ok && string(e.Name) == n.name && e.Mode.IsDir() {
		copy(p.raw[e.At+e.Len-len(n.hash):], n.hash[:])
		return
	}
	e, found, at := odb.FindEntry(p.raw, n.name, true)
	if found && e.Mode.IsDir() {
		copy(p.raw[e.At+e.Len-len(n.hash):], n.hash[:])
		return
	}
	w.splice(p, at, 0, odb.AppendEntry(nil, odb.ModeDir, n.name, n.hash))
}

func (w *worktree) drop(n *node) {
	p := n.parent
	if e, found, _ := odb.FindEntry(p.raw, n.name, true); found {
		w.splice(p, e.At, e.Len, nil)
	}
	delete(p.kids, n.name)
	w.size -= nodeOverhead
}
