package remote

import (
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/remote/bus"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/web/access"
	"bagpipe/layout"
)

// Key is a worker's file, as worker reads it.
type Key = wire.Key

// Invite draws a key for a worker, lets it in, and gives the worker's file.
func Invite(root string, name layout.Name, urls []string, now time.Time) (Key, error) {
	if name == wire.Operator {
		return Key{}, fault.New(fault.Invalid, "a worker cannot be called "+string(name))
	}
	book := access.Open(root)
	authority, err := Authority(book.Dir(), now)
	if err != nil {
		return Key{}, err
	}
	seed, public, err := bus.NewKey()
	if err != nil {
		return Key{}, err
	}
	if err := book.AddWorker(name, access.WorkerKey{Public: public, Added: now.UTC()}); err != nil {
		return Key{}, err
	}
	return Key{Schema: wire.KeySchema, Name: name, URLs: urls, Authority: authority, Seed: seed}, nil
}

// Revoke takes a worker's key back; a running engine ends its connections.
func Revoke(root string, name layout.Name) error { return access.Open(root).RemoveWorker(name) }
