package trees

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"bagpipe/engine/gitstore/internal/odb"
)

const (
	walkAhead = 16  // batches read ahead
	walkBatch = 256 // entries of one batch

	// planDepth is how many levels of folders the planner opens itself: with the
	// sixteen-wide fan-out of items the batches are then folders of few items.
	planDepth = 5
)

// Walk visits every file below the tree of dir that want lets through (nil: all), in the
// order of the trees, one call of visit after the other. A few folders ahead are read side
// by side; memory stays bounded by them.
func Walk(ctx context.Context, db *odb.DB, tree odb.Hash, dir string, want func(path string) bool, visit func(path string, data []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	readers, ctx := errgroup.WithContext(ctx)
	readers.SetLimit(runtime.GOMAXPROCS(0) + 1) // with the planner
	p := &planner{db: db, want: want, readers: readers, order: make(chan *batch, walkAhead)}
	readers.Go(func() error {
		defer close(p.order)
		if err := p.plan(ctx, tree, dir, 0); err != nil {
			return err
		}
		return p.flush(ctx)
	})
	err := visitInOrder(ctx, p.order, visit)
	if err != nil {
		cancel()
	}
	if readErr := readers.Wait(); err == nil {
		err = readErr
	}
	return err
}

// batch is some entries, and the files that a reader finds for them.
type batch struct {
	entries []foundEntry
	files   []file
	ready   chan struct{}
}

type foundEntry struct {
	path string
	mode odb.Mode
	hash odb.Hash
}

type file struct {
	path string
	data []byte
}

// visitInOrder hands the batches on in the planner's order. When ctx ends, its cause is
// the error of the reader that failed.
func visitInOrder(ctx context.Context, order <-chan *batch, visit func(string, []byte) error) error {
	for b := range order {
		select {
		case <-b.ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for _, f := range b.files {
			if err := visit(f.path, f.data); err != nil {
				return err
			}
		}
	}
	return nil
}

// planner cuts the walk into batches.
type planner struct {
	db      *odb.DB
	want    func(string) bool
	readers *errgroup.Group
	order   chan *batch
	next    []foundEntry
}

func (p *planner) plan(ctx context.Context, tree odb.Hash, dir string, depth int) error {
	data, err := p.db.ReadTree(tree)
	if err != nil {
		return errTree(dir, err)
	}
	for e := range odb.Entries(data) {
		name := join(dir, string(e.Name))
		if e.Mode.IsDir() && depth < planDepth {
			if err := p.plan(ctx, e.Hash, name, depth+1); err != nil {
				return err
			}
			continue
		}
		if p.next = append(p.next, foundEntry{name, e.Mode, e.Hash}); len(p.next) < walkBatch {
			continue
		}
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// flush gives the next batch its place in the order, and to a reader.
func (p *planner) flush(ctx context.Context) error {
	b := &batch{entries: p.next, ready: make(chan struct{})}
	p.next = nil
	select {
	case p.order <- b:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.readers.Go(func() error {
		for _, e := range b.entries {
			if err := p.read(ctx, b, e); err != nil {
				return err
			}
		}
		close(b.ready)
		return nil
	})
	return nil
}

func (p *planner) read(ctx context.Context, b *batch, e foundEntry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.mode.IsDir() {
		tree, err := p.db.ReadTreeUncached(e.hash)
		if err != nil {
			return errTree(e.path, err)
		}
		for k := range odb.Entries(tree) {
			if err := p.read(ctx, b, foundEntry{join(e.path, string(k.Name)), k.Mode, k.Hash}); err != nil {
				return err
			}
		}
		return nil
	}
	if !e.mode.IsRegular() || p.want != nil && !p.want(e.path) {
		return nil
	}
	data, err := p.db.ReadAsUncached(e.hash, odb.TypeBlob)
	if err != nil {
		return errFile(e.path, err)
	}
	b.files = append(b.files, file{e.path, data})
	return nil
}
