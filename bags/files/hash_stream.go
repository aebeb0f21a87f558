package files

import (
	"bytes"
	"context"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"
)

// inMemory bounds the files of a stream that are handed to another goroutine
// whole; of larger ones each digest has its goroutine.
const inMemory = 1 << 20

// HashStream hashes planned files that come one after the other. walk hands each file to
// take, which passes over files that are not planned. Small files are hashed by other
// goroutines while walk goes on.
func HashStream(ctx context.Context, plan []Planned, o HashOptions, each func(Hashed) error,
	walk func(ctx context.Context, take func(path string, size int64, r io.Reader) error) error) error {
	p := newHashPool(plan, o, each)
	wanted := make(map[string]Planned, len(plan))
	for _, it := range plan {
		wanted[it.Path] = it
	}
	buffers := sync.Pool{New: func() any { return new(bytes.Buffer) }}
	type small struct {
		it   Planned
		data *bytes.Buffer
	}
	ready := make(chan small, 4)
	g, ctx := errgroup.WithContext(ctx)
	for range max(1, o.Workers) {
		g.Go(func() error {
			w := newHashWorker(p)
			for s := range ready {
				if err := w.file(ctx, opened{io.NopCloser(s.data)}, s.it); err != nil {
					return err
				}
				s.data.Reset()
				buffers.Put(s.data)
			}
			return nil
		})
	}
	g.Go(func() error {
		defer close(ready)
		w := newHashWorker(p)
		return walk(ctx, func(path string, size int64, r io.Reader) error {
			it, ok := wanted[path]
			if !ok {
				return nil
			}
			if size > inMemory {
				return w.file(ctx, opened{io.NopCloser(r)}, it)
			}
			data := buffers.Get().(*bytes.Buffer)
			if _, err := data.ReadFrom(r); err != nil {
				return err
			}
			select {
			case ready <- small{it, data}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	return g.Wait()
}
