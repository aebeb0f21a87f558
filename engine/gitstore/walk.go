package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"

	"bagpipe/engine/gitstore/internal/odb"
)

// Walk visits every file below dir ("" for all) that want lets through (nil:
// all), in the order of the trees, one call of visit after the other. The bytes
// must not be changed. It fails with fs.ErrNotExist when there is no such
// folder.
//
// A few folders ahead are read side by side; memory stays bounded by them.
func (v View) Walk(ctx context.Context, dir string, want func(path string) bool, visit func(path string, data []byte) error) error {
	h, err := v.TreeOf(dir)
	if err != nil {
		return fmt.Errorf("walk %s at %s: %w", dir, v.commit, err)
	}
	if h.IsZero() {
		return &fs.PathError{Op: "walk committed", Path: dir, Err: fs.ErrNotExist}
	}
	if isRoot(dir) {
		dir = ""
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &walker{s: v.s, want: want, ctx: ctx, order: make(chan *batch, walkAhead), work: make(chan *batch, walkAhead)}
	defer w.wait.Wait()
	defer cancel()
	w.wait.Go(func() { w.plan(h, dir) })
	for range runtime.GOMAXPROCS(0) {
		w.wait.Go(w.read)
	}
	for b := range w.order {
		select {
		case <-b.ready:
		case <-ctx.Done():
			return ctx.Err()
		}
		if b.err != nil {
			return fmt.Errorf("walk %s at %s: %w", dir, v.commit, b.err)
		}
		for _, f := range b.files {
			if err := visit(f.path, f.data); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

const (
	walkAhead = 16  // batches read ahead
	walkBatch = 256 // entries of one batch
)

// walker cuts the walk into batches of entries: the planner lists them in order,
// readers fill them, and Walk hands them on in the planner's order.
type walker struct {
	s     *Store
	want  func(string) bool
	ctx   context.Context // ends with Walk, which waits for the goroutines
	order chan *batch
	work  chan *batch
	wait  sync.WaitGroup
	next  *batch // being planned
}

type batch struct {
	todo  []pathEntry
	files []walked
	err   error
	ready chan struct{}
}

type pathEntry struct {
	path string
	mode odb.Mode
	hash Hash
}

type walked struct {
	path string
	data []byte
}

// planDepth is how many levels of folders the planner opens itself: with the
// sixteen-wide fan-out of items the batches are then folders of few items.
const planDepth = 5

func (w *walker) plan(h Hash, dir string) {
	defer close(w.order)
	defer close(w.work)
	err := w.planTree(h, dir, 0)
	if err == nil {
		err = w.flush()
	}
	if err != nil && w.ctx.Err() == nil {
		failed := &batch{err: err, ready: make(chan struct{})}
		close(failed.ready)
		select {
		case w.order <- failed:
		case <-w.ctx.Done():
		}
	}
}

func (w *walker) planTree(h Hash, dir string, depth int) error {
	tree, err := w.s.readTree(h)
	if err != nil {
		return fmt.Errorf("read tree of %s: %w", dir, err)
	}
	for e := range odb.Entries(tree) {
		name := join(dir, string(e.Name))
		if e.Mode.IsDir() && depth < planDepth {
			if err := w.planTree(e.Hash, name, depth+1); err != nil {
				return err
			}
			continue
		}
		if err := w.add(pathEntry{name, e.Mode, e.Hash}); err != nil {
			return err
		}
	}
	return nil
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func (w *walker) add(e pathEntry) error {
	if w.next == nil {
		w.next = &batch{ready: make(chan struct{})}
	}
	w.next.todo = append(w.next.todo, e)
	if len(w.next.todo) < walkBatch {
		return nil
	}
	return w.flush()
}

// flush hands the batch over, first for its place in the order.
func (w *walker) flush() error {
	b := w.next
	if w.next = nil; b == nil {
		return nil
	}
	for _, to := range []chan *batch{w.order, w.work} {
		select {
		case to <- b:
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
	return nil
}

func (w *walker) read() {
	for b := range w.work {
		for _, e := range b.todo {
			if b.err = w.fill(b, e); b.err != nil {
				break
			}
		}
		close(b.ready)
	}
}

func (w *walker) fill(b *batch, e pathEntry) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if e.mode.IsDir() {
		tree, err := w.s.db.ReadAsUncached(e.hash, odb.TypeTree)
		if err == nil {
			err = odb.CheckTree(tree)
		}
		if err != nil {
			return fmt.Errorf("read tree of %s: %w", e.path, err)
		}
		for k := range odb.Entries(tree) {
			if err := w.fill(b, pathEntry{join(e.path, string(k.Name)), k.Mode, k.Hash}); err != nil {
				return err
			}
		}
		return nil
	}
	if !e.mode.IsRegular() || w.want != nil && !w.want(e.path) {
		return nil
	}
	data, err := w.s.db.ReadAsUncached(e.hash, odb.TypeBlob)
	if err != nil {
		return errors.Join(fmt.Errorf("read %s", e.path), err)
	}
	b.files = append(b.files, walked{e.path, data})
	return nil
}
