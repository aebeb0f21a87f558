package worktree

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"bagpipe/engine/gitstore/internal/odb"
)

// Edit applies a change's files and adds the new objects to the pack: blobs, and every
// tree from the changed ones to the root. Edit gives the paths that really changed, in
// order. After an error, clean reports whether the Tree is unchanged.
func (w *Tree) Edit(b *odb.Builder, files map[string][]byte) (changed []string, clean bool, err error) {
	if err := checkSize(files); err != nil {
		return nil, true, err
	}
	paths := slices.Sorted(maps.Keys(files))
	w.dirNode = nil
	defer func() { w.dirNode = nil }() // write may drop it
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
func (w *Tree) set(b *odb.Builder, path string, data []byte) (changed bool, err error) {
	if dir, name := splitPath(path); w.dirNode != nil && w.dir == dir {
		return w.setEntry(b, w.dirNode, name, data), nil
	}
	n := w.root
	for {
		name, rest, more := strings.Cut(path, "/")
		if !more {
			return w.setEntry(b, n, name, data), nil
		}
		path = rest
		if k := n.kids[name]; k != nil { // it may have been begun by an earlier path of this edit
			k.used = w.group
			n = k
			continue
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
			k := &node{parent: n, name: name, depth: n.depth + 1, used: w.group}
			w.size += nodeOverhead
			n.adopt(k)
			n = k
		}
	}
}

func (w *Tree) setEntry(b *odb.Builder, n *node, name string, data []byte) bool {
	e, found, at := odb.FindEntry(n.raw, name, false)
	if data == nil {
		if found {
			w.touch(n)
			w.splice(n, e.At, e.Len, nil)
		}
		return found
	}
	h := b.AddBlob(data, e.Hash)
	switch {
	case !found:
		w.touch(n)
		w.splice(n, at, 0, odb.AppendEntry(nil, odb.ModeFile, name, h))
	case e.Mode.IsRegular() && e.Hash == h:
		return false
	case e.Mode.IsRegular(): // an executable stays one
		w.touch(n)
		w.Replaced = odb.AppendPair(w.Replaced, h, e.Hash)
		copy(n.raw[e.At+e.Len-len(h):], h[:])
	default:
		w.touch(n)
		w.splice(n, e.At, e.Len, nil)
		_, _, at = odb.FindEntry(n.raw, name, false)
		w.splice(n, at, 0, odb.AppendEntry(nil, odb.ModeFile, name, h))
	}
	return true
}

// touch marks a tree and those above it as changed by this edit, and keeps the bytes that
// each had before.
func (w *Tree) touch(n *node) {
	for ; n != nil && n.stamp != w.stamp; n = n.parent {
		n.stamp = w.stamp
		n.old = append(n.old[:0], n.raw...)
		w.touched = append(w.touched, n)
	}
}

func (w *Tree) splice(n *node, at, del int, ins []byte) {
	n.raw = slices.Replace(n.raw, at, at+del, ins...)
	w.size += len(ins) - del
}

// write adds the touched trees to the pack, the deepest first, so that each
// knows its children's names.
func (w *Tree) write(b *odb.Builder) {
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
			w.written = append(w.written, n)
		}
		w.addTree(b, n)
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

// addTree adds a tree to the pack. The pair of the tree and its version before is noted
// where either is whole: maintenance makes differences of whole trees but the newest.
func (w *Tree) addTree(b *odb.Builder, n *node) {
	hash, placed := n.hash, n.placed
	n.hash, n.placed = b.AddTree(n.raw, n.old, n.placed)
	if !hash.IsZero() && (n.placed.Whole() || placed.Whole()) {
		w.Replaced = odb.AppendPair(w.Replaced, n.hash, hash)
	}
}

// link writes a tree's new name into its parent.
func (w *Tree) link(n *node) {
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

func (w *Tree) drop(n *node) {
	p := n.parent
	if e, found, _ := odb.FindEntry(p.raw, n.name, true); found {
		w.splice(p, e.At, e.Len, nil)
	}
	delete(p.kids, n.name)
	w.size -= nodeOverhead
}
