package remote

import (
	cryptorand "crypto/rand"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/remote/bus"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/web/access"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Key is a worker's file, as worker reads it.
type Key = wire.Key

// Invite draws a key for a worker, lets it in, and completes the worker's file, which has a name and URLs.
func Invite(root string, k Key, now time.Time) (Key, error) {
	if k.Name == wire.Operator {
		return k, fault.New(fault.Invalid, "a worker cannot be called "+string(k.Name))
	}
	book := access.Open(root)
	authority, err := Authority(book.Dir(), now)
	if err != nil {
		return k, err
	}
	seed, public, err := bus.NewKey()
	if err != nil {
		return k, err
	}
	k.Schema, k.Authority, k.Seed = wire.KeySchema, authority, seed
	return k, book.AddWorker(k.Name, access.WorkerKey{Public: public, Added: now.UTC()})
}

// Revoke takes a worker's key back; a running engine ends its connections.
func Revoke(root string, name layout.Name) error { return access.Open(root).RemoveWorker(name) }

const (
	engineSeed    = "engine.nk"
	clusterSecret = "cluster.secret"
)

// engineKey is by which this workspace's engine comes to servers that are not of its process. It is drawn once.
func engineKey(dir string) (seed, public string, err error) {
	file := filepath.Join(dir, engineSeed)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if seed, public, err = bus.NewKey(); err == nil {
			err = errors.Join(disk.MkdirAll(dir, 0o700), disk.WriteFile(file, []byte(seed+"\n"), 0o600))
		}
		return seed, public, err
	}
	if err != nil {
		return "", "", err
	}
	seed = strings.TrimSpace(string(data))
	public, err = bus.PublicOf(seed)
	return seed, public, err
}

// InviteBroker makes the file of a broker, for a cluster that this workspace's engine uses.
func InviteBroker(root string, now time.Time) (k wire.BrokerKey, err error) {
	dir := access.Open(root).Dir()
	k.Schema = wire.KeySchema
	if k.Authority, err = Authority(dir, now); err != nil {
		return k, err
	}
	if k.Certificate, k.Secret, err = certify(dir, now); err != nil {
		return k, err
	}
	if _, k.Engine, err = engineKey(dir); err != nil {
		return k, err
	}
	file := filepath.Join(dir, clusterSecret)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		data = []byte(cryptorand.Text())
		err = disk.WriteFile(file, data, 0o600)
	}
	k.Cluster = string(data)
	return k, err
}

// Needs are the users that a NATS server needs that is not Bagpipe's, and what each may do.
type Needs struct {
	Name, Public       string
	Publish, Subscribe []string
	Answers            bool // it may answer whom it hears
}

// NeedsOf lists them: the engine, and the workers that were invited.
func NeedsOf(root string) (all []Needs, err error) {
	book := access.Open(root)
	_, public, err := engineKey(book.Dir())
	if err != nil {
		return nil, err
	}
	publish, subscribe := bus.EnginePermissions()
	all = append(all, Needs{"engine", public, publish, subscribe, true})
	keys, err := book.Workers()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		publish, subscribe := bus.Permissions(name)
		all = append(all, Needs{string(name), keys[name].Public, publish, subscribe, false})
	}
	return all, nil
}
