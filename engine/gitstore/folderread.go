package gitstore

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"bagpipe/engine/gitstore/internal/odb"
)

// The rules are: compare finds the folders, in the order of their names, which for
// items is none at all; they are collected and read in the order in which they stand
// in the packs, several goroutines side by side. The first collections are small, so
// that the readers have something to do; none has more than a few megabytes.

const (
	firstCollected = 512
	mostCollected  = 1 << 16
	foldersAtOnce  = 64 // handed to a reader
)

// foundFolder is a folder that differs.
type foundFolder struct {
	path  string
	hash  Hash // zero: it is gone
	place odb.Place
}

// folderWalk is one call of Folders.
type folderWalk struct {
	s     *Store
	ctx   context.Context // ends with Folders, which waits for the goroutines
	visit func(Folder) error
	bulk  *odb.Bulk
	work  chan []foundFolder

	collected []foundFolder
	most      int
}

func (w *folderWalk) run(ctx context.Context, from, to Hash, dir string, depth int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.ctx, w.most = ctx, firstCollected
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			if err := w.readers(); err != nil {
				cancel(err)
			}
		})
	}
	err := w.compare(from, to, dir, depth)
	if err == nil {
		err = w.hand()
	}
	close(w.work)
	wait.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// found collects a folder that differs.
func (w *folderWalk) found(path string, h Hash) error {
	if w.collected = append(w.collected, foundFolder{path: path, hash: h}); len(w.collected) < w.most {
		return nil
	}
	w.most = min(2*w.most, mostCollected)
	return w.hand()
}

// hand gives what was collected to the readers. The index of a large pack is read from
// front to back, too: to go to and fro in it took longer than to sort.
func (w *folderWalk) hand() error {
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
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
	return nil
}

// folderReader is what one goroutine reads folders with.
type folderReader struct {
	objects *odb.Reader
	tree    []byte // of the folder that is visited
	files   [][]byte
	used    int
}

func (w *folderWalk) readers() error {
	r := &folderReader{objects: w.bulk.Reader()}
	for some := range w.work {
		for _, f := range some {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if err := r.visit(f, w.visit); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *folderReader) visit(f foundFolder, visit func(Folder) error) (err error) {
	r.used = 0
	gone := f.hash.IsZero()
	if !gone {
		if r.tree, err = r.objects.Read(f.hash, f.place, odb.TypeTree, r.tree); err == nil {
			err = odb.CheckTree(r.tree)
		}
		if err != nil {
			return fmt.Errorf("read tree of %s: %w", f.path, err)
		}
	}
	return visit(Folder{Path: f.path, Gone: gone, r: r})
}

// file reads a file into memory that is used again for the next folder.
func (r *folderReader) file(h Hash) ([]byte, error) {
	if r.used == len(r.files) {
		r.files = append(r.files, nil)
	}
	data, err := r.objects.Read(h, odb.Place{}, odb.TypeBlob, r.files[r.used])
	if err == nil {
		r.files[r.used] = data
		r.used++
	}
	return data, err
}
