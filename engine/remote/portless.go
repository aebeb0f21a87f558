package remote

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"bagpipe/engine/remote/bus"
	"bagpipe/engine/web/access"
	"bagpipe/layout"
)

// Portless prepares an engine that lends steps over its pages alone: no worker can come. One
// engine lends a workspace's steps; fault.Busy says that another does.
func Portless(o ServiceOptions) (_ *Service, err error) {
	s := &Service{o: o, book: access.Open(o.Root)}
	dir := filepath.Join(o.Root, filepath.FromSlash(Dir))
	if err := s.take(dir); err != nil {
		return nil, err
	}
	s.Place = Place{Root: o.Root, ID: o.ID, Broker: &noBroker{}, Restart: func() error { return nil },
		Start: func(context.Context, *Remote) (func(), error) { return func() {}, nil }}
	if s.Place.Secret, err = secretIn(dir); err != nil {
		s.Close()
		return nil, fmt.Errorf("read the secret of attempts: %w", err)
	}
	return s, nil
}

// noBroker carries nothing: there is nobody to carry it to.
type noBroker struct {
	mu    sync.Mutex // guards epoch
	epoch string
}

// Begin notes the epoch.
func (b *noBroker) Begin(_ context.Context, epoch string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.epoch = epoch
	return nil
}

// Class makes nothing.
func (b *noBroker) Class(context.Context, string) error { return nil }

// Publish is not called: no worker is there that a step could be offered to.
func (b *noBroker) Publish(context.Context, []bus.Message) ([]uint64, error) { return nil, nil }

// Clear takes nothing out.
func (b *noBroker) Clear(context.Context, string, uint64) error { return nil }

// Tell reaches nobody.
func (b *noBroker) Tell(layout.Name, []byte) {}

// Look finds what was begun.
func (b *noBroker) Behind(context.Context) ([]string, error) { return nil, nil }

func (b *noBroker) Look(context.Context) (epoch string, offers uint64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.epoch, 0, nil
}

// Queue is empty.
func (b *noBroker) Queue(context.Context, string) (bus.Queue, error) { return bus.Queue{}, nil }

// Answers is always so.
func (b *noBroker) Answers(context.Context) bool { return true }

// Connected is always so.
func (b *noBroker) Connected() bool { return true }
