package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"

	"bagpipe/engine/gitstore/internal/odb"
)

// Folder is one folder that Folders found to differ.
type Folder struct {
	Path string
	Gone bool // it is not there any more
	r    *folderReader
}

// ReadFile gives a file that stands in the folder itself; nil when there is none.
// The bytes are valid until the visit ends.
func (f Folder) ReadFile(name string) ([]byte, error) {
	e, ok, _ := odb.FindEntry(f.r.tree, name, false)
	if f.Gone || !ok || !e.Mode.IsRegular() {
		return nil, nil
	}
	data, err := f.r.file(e.Hash)
	if err != nil {
		return nil, fmt.Errorf("read %s/%s: %w", f.Path, name, err)
	}
	return data, nil
}

// Folders visits the folders that stand depth levels below dir and are not the same
// in the tree since; zero: all of them. visit is called by several goroutines side
// by side, in no order, as reading and understanding a folder takes far longer than
// finding it. Subtrees with equal hashes are passed over unread.
func (v View) Folders(ctx context.Context, since Hash, dir string, depth int, visit func(Folder) error) error {
	to, err := v.TreeOf(dir)
	if err != nil {
		return fmt.Errorf("look for folders in %s at %s: %w", dir, v.commit, err)
	}
	from := Hash{}
	if !since.IsZero() {
		if from, err = (View{s: v.s, commit: v.commit, tree: since}).TreeOf(dir); err != nil {
			return fmt.Errorf("look for folders in %s of tree %s: %w", dir, since, err)
		}
	}
	w := &folderWalk{s: v.s, visit: visit, bulk: v.s.db.Bulk(), work: make(chan []foundFolder, 2*runtime.GOMAXPROCS(0))}
	err = errors.Join(w.run(ctx, from, to, dir, depth), w.bulk.Close())
	if err != nil {
		return fmt.Errorf("read the folders in %s at %s: %w", dir, v.commit, err)
	}
	return nil
}

// compare finds the folders that differ below two trees.
func (w *folderWalk) compare(from, to Hash, dir string, depth int) error {
	if from == to {
		return nil
	}
	if depth == 0 {
		return w.found(dir, to)
	}
	old, err := w.folders(from, dir)
	if err != nil {
		return err
	}
	now, err := w.folders(to, dir)
	if err != nil {
		return err
	}
	for name, h := range now {
		if err := w.compare(old[name], h, join(dir, name), depth-1); err != nil {
			return err
		}
	}
	for name, h := range old {
		if now[name].IsZero() {
			if err := w.compare(h, Hash{}, join(dir, name), depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// folders gives the folders of a tree by name.
func (w *folderWalk) folders(h Hash, dir string) (map[string]Hash, error) {
	if h.IsZero() {
		return nil, nil
	}
	tree, err := w.s.db.ReadAsUncached(h, odb.TypeTree)
	if err == nil {
		err = odb.CheckTree(tree)
	}
	if err != nil {
		return nil, fmt.Errorf("read tree of %s: %w", dir, err)
	}
	found := make(map[string]Hash, 16)
	for e := range odb.Entries(tree) {
		if e.Mode.IsDir() {
			found[string(e.Name)] = e.Hash
		}
	}
	return found, nil
}

// HasTree tells whether a tree is in the repository.
func (s *Store) HasTree(h Hash) (bool, error) {
	_, err := s.readTree(h)
	if errors.Is(err, odb.ErrMissing) || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
