package trees

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"bagpipe/engine/gitstore/internal/odb"
)

// The rules are: compare finds the folders, in the order of their names, which for items
// is random; they are collected, and read in the order in which they stand in the packs,
// several goroutines side by side. The first collections are small, so that the readers
// have something to do; no collection takes more than a few megabytes.
const (
	firstCollected = 512
	mostCollected  = 1 << 16
	foldersAtOnce  = 64 // handed to a reader
)

// Folders visits the folders that stand depth levels below dir, whose tree is to, and are
// not the same in the tree from; zero: all of them. visit is called by several goroutines
// side by side, in no order. Subtrees with equal names are passed over unread.
func Folders(ctx context.Context, db *odb.DB, from, to odb.Hash, dir string, depth int, visit func(Folder) error) error {
	bulk := db.Bulk()
	readers, ctx := errgroup.WithContext(ctx)
	w := &folderWalk{db: db, bulk: bulk, work: make(chan []foundFolder, 2*runtime.GOMAXPROCS(0)), most: firstCollected}
	for range runtime.GOMAXPROCS(0) {
		readers.Go(func() error { return w.read(ctx, visit) })
	}
	err := w.compare(ctx, from, to, dir, depth)
	if err == nil {
		err = w.hand(ctx)
	}
	close(w.work)
	if readErr := readers.Wait(); readErr != nil {
		err = readErr // the end of ctx is only a consequence
	}
	return errors.Join(err, bulk.Close())
}

// foundFolder is a folder that differs.
type foundFolder struct {
	path  string
	hash  odb.Hash // zero: it is gone
	place odb.Place
}

// folderWalk finds folders and hands them to the readers.
type folderWalk struct {
	db        *odb.DB
	bulk      *odb.Bulk
	work      chan []foundFolder
	collected []foundFolder
	most      int
}

// compare finds the folders that differ below two trees.
func (w *folderWalk) compare(ctx context.Context, from, to odb.Hash, dir string, depth int) error {
	if from == to {
		return nil
	}
	if depth == 0 {
		return w.found(ctx, dir, to)
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
		if err := w.compare(ctx, old[name], h, join(dir, name), depth-1); err != nil {
			return err
		}
	}
	for name, h := range old {
		if now[name].IsZero() {
			if err := w.compare(ctx, h, odb.Hash{}, join(dir, name), depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// folders gives the folders of a tree by name.
func (w *folderWalk) folders(h odb.Hash, dir string) (map[string]odb.Hash, error) {
	if h.IsZero() {
		return nil, nil
	}
	tree, err := w.db.ReadTreeUncached(h)
	if err != nil {
		return nil, errTree(dir, err)
	}
	found := make(map[string]odb.Hash, 16)
	for e := range odb.Entries(tree) {
		if e.Mode.IsDir() {
			found[string(e.Name)] = e.Hash
		}
	}
	return found, nil
}

// found collects a folder that differs.
func (w *folderWalk) found(ctx context.Context, path string, h odb.Hash) error {
	if w.collected = append(w.collected, foundFolder{path: path, hash: h}); len(w.collected) < w.most {
		return nil
	}
	w.most = min(2*w.most, mostCollected)
	return w.hand(ctx)
}

// hand gives the collection to the readers. The index of a large pack is read from front
// to back, too: to go to and fro in it took longer than to sort.
func (w *folderWalk) hand(ctx context.Context) error {
	all := w.collected
	w.collected = nil
	slices.SortFunc(all, func(a, b foundFolder) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	for i := range all {
		if f := &all[i]; !f.hash.IsZero() {
			f.place = w.bulk.Place(f.hash)
		}
	}
	slices.SortFunc(all, func(a, b foundFolder) int { return a.place.Compare(b.place) })
	for some := range slices.Chunk(all, foldersAtOnce) {
		select {
		case w.work <- some:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// read is one reader.
func (w *folderWalk) read(ctx context.Context, visit func(Folder) error) error {
	r := &folderReader{objects: w.bulk.Reader()}
	for some := range w.work {
		for _, f := range some {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := r.visit(f, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// folderReader is the memory of one reader.
type folderReader struct {
	objects *odb.Reader
	tree    []byte // of the folder that is visited
	files   [][]byte
	used    int
}

func (r *folderReader) visit(f foundFolder, visit func(Folder) error) (err error) {
	r.used = 0
	gone := f.hash.IsZero()
	if !gone {
		if r.tree, err = r.objects.Read(f.hash, f.place, odb.TypeTree, r.tree); err == nil {
			err = odb.CheckTree(r.tree)
		}
		if err != nil {
			return errTree(f.path, err)
		}
	}
	return visit(Folder{Path: f.path, Gone: gone, r: r})
}

// Folder is a folder that differs. It is valid until the visit ends.
type Folder struct {
	Path string
	Gone bool // it is not there any more
	r    *folderReader
}

// ReadFile gives a file that stands in the folder itself; nil when there is none. The
// bytes are valid until the visit ends.
func (f Folder) ReadFile(name string) ([]byte, error) {
	r := f.r
	e, ok, _ := odb.FindEntry(r.tree, name, false)
	if f.Gone || !ok || !e.Mode.IsRegular() {
		return nil, nil
	}
	if r.used == len(r.files) { // memory that is used again for the next folder
		r.files = append(r.files, nil)
	}
	data, err := r.objects.Read(e.Hash, odb.Place{}, odb.TypeBlob, r.files[r.used])
	if err != nil {
		return nil, errFile(join(f.Path, name), err)
	}
	r.files[r.used] = data
	r.used++
	return data, nil
}

func errTree(dir string, err error) error  { return fmt.Errorf("read tree of %s: %w", dir, err) }
func errFile(path string, err error) error { return fmt.Errorf("read %s: %w", path, err) }
