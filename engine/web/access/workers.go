package access

import (
	"fmt"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/layout"
)

// WorkerKey lets one worker in. The secret part is in the worker's own file alone.
type WorkerKey struct {
	Public string    `json:"public"`
	Added  time.Time `json:"added"`
}

type workersFile struct {
	Schema  int                       `json:"schema"`
	Workers map[layout.Name]WorkerKey `json:"workers"`
}

const workersJSON = "workers.json"

// Workers are the keys of workers, by name.
func (b *Book) Workers() (map[layout.Name]WorkerKey, error) {
	f, err := load[workersFile](b, workersJSON)
	return f.Workers, err
}

// AddWorker lets a worker in. A name that has a key is refused: revoke it first.
func (b *Book) AddWorker(name layout.Name, key WorkerKey) error {
	return edit(b, workersJSON, func(f *workersFile) error {
		if _, there := f.Workers[name]; there {
			return fault.New(fault.Refused, fmt.Sprintf("worker %s has a key already; revoke it first", name))
		}
		if f.Workers == nil {
			f.Workers = map[layout.Name]WorkerKey{}
		}
		f.Schema, f.Workers[name] = schema, key
		return nil
	})
}

// RemoveWorker revokes a worker's key.
func (b *Book) RemoveWorker(name layout.Name) error {
	return edit(b, workersJSON, func(f *workersFile) error {
		if _, there := f.Workers[name]; !there {
			return fault.New(fault.NotFound, fmt.Sprintf("no worker %s has a key", name))
		}
		delete(f.Workers, name)
		return nil
	})
}

// Dir is the folder of the accounts, which only the workspace's own account reads.
func (b *Book) Dir() string { return b.dir }
