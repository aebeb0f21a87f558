package claim

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/gofrs/flock"
)

const (
	// heartbeatLimit is how long another host's heartbeat may stand still: six
	// beats of ten seconds.
	heartbeatLimit = 60 * time.Second
	// DamagedLimit is how long a claim that cannot be read is left alone. A
	// writer is between create and write for microseconds.
	DamagedLimit = 10 * time.Second
)

// Observer judges whether engines live. What it saw before counts (see the
// rules of liveness), so one observer is kept for the life of a process.
type Observer struct {
	root string
	host Host
	now  func() time.Time

	// mu guards seen.
	mu   sync.Mutex
	seen map[string]sighting
}

// sighting is a file's state and since when the observer has known it so. The
// times come from now and carry its monotonic reading.
type sighting struct {
	mtime time.Time
	size  int64
	since time.Time
}

// NewObserver watches the engines of the workspace at root from host h.
func NewObserver(root string, h Host, now func() time.Time) *Observer {
	return &Observer{root: root, host: h, now: now, seen: map[string]sighting{}}
}

// Alive tells whether the engine may still act.
func (o *Observer) Alive(id layout.EngineID) (bool, error) {
	path := enginePath(o.root, id)
	state, err := probe(path)
	switch {
	case err != nil:
		return false, wrap("look for engine", string(id), err)
	case state.gone:
		o.forget(path)
		return false, nil
	case state.held:
		return true, nil
	case o.host.sharesLocks(state.info.Host, state.info.BootID):
		return false, nil
	}
	return o.unchangedFor(path, state.stat) < heartbeatLimit, nil
}

// unchangedFor is how long this observer has seen path as it is now.
func (o *Observer) unchangedFor(path string, st fs.FileInfo) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	s, ok := o.seen[path]
	if !ok || !s.mtime.Equal(st.ModTime()) || s.size != st.Size() {
		s = sighting{mtime: st.ModTime(), size: st.Size(), since: now}
		o.seen[path] = s
	}
	return now.Sub(s.since)
}

func (o *Observer) forget(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.seen, path)
}

// damagedIsDead judges a claim's file that names no engine.
func (o *Observer) damagedIsDead(path string) (bool, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	watched := o.unchangedFor(path, st)
	return watched >= DamagedLimit || o.now().Sub(st.ModTime()) >= DamagedLimit, nil
}

// engineInfo is the content of an engine's file.
type engineInfo struct {
	BootID string          `json:"bootId"`
	Engine layout.EngineID `json:"engine"`
	Host   string          `json:"host"`
	PID    int             `json:"pid"`
	Schema int             `json:"schema"`
	Since  time.Time       `json:"since"`
	Worker string          `json:"worker,omitempty"` // of a guest: its name and host
}

// engineState is what one look at an engine's file shows.
type engineState struct {
	gone, held bool
	stat       fs.FileInfo
	info       engineInfo // zero when held, or when the file is damaged
}

// probe looks at an engine's file without creating it. Opening it, rather than
// a stat alone, makes a network file system ask its server.
func probe(path string) (state engineState, err error) {
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if errors.Is(err, fs.ErrNotExist) {
		return engineState{gone: true}, nil
	}
	if err != nil || !free {
		return engineState{held: err == nil}, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if state.stat, err = lock.Stat(); err != nil {
		return state, err
	}
	data, err := disk.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return engineState{gone: true}, nil
	}
	if err != nil {
		return state, err
	}
	if json.Unmarshal(data, &state.info) != nil {
		state.info = engineInfo{}
	}
	return state, nil
}

func enginePath(root string, id layout.EngineID) string {
	return filepath.Join(root, layout.EnginesDir, string(id))
}
