package claim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/gofrs/flock"
)

var (
	// ErrClosed answers an engine that has been closed.
	ErrClosed = errors.New("the engine is closed")
	// ErrLost answers an engine whose file is gone or not its own: others take
	// it for dead, so it must stop. Deleting .bagpipe under it does this.
	ErrLost = errors.New("the engine's own file is gone, so others take it for dead")
)

const (
	filePerm = 0o644
	dirPerm  = 0o755
	guardLck = layout.StateDir + "/claims.lock"
)

// Engine is this process's right to act. It lives until Close, or until the
// process ends in whatever way: the kernel then frees its flock.
type Engine struct {
	*Observer
	id    layout.EngineID
	lock  *flock.Flock
	room  disk.Folder // of the claims
	guard disk.Lock   // of what is taken over or given back there

	// state guards what follows.
	state  sync.Mutex
	closed bool
	lost   bool
	serial int
	spares []string          // files of earlier claims, to be used again
	claims map[string]*Claim // by file
}

// Register makes this process the engine id, and removes the files that dead
// engines of this host left. An id that is registered and alive is refused.
func Register(root string, id layout.EngineID, h Host, now func() time.Time) (*Engine, error) {
	if _, err := layout.ParseEngineID(string(id)); err != nil {
		return nil, fmt.Errorf("register engine: %w", err)
	}
	for _, dir := range []string{layout.EnginesDir, layout.ClaimsDir} {
		if err := os.MkdirAll(filepath.Join(root, dir), dirPerm); err != nil {
			return nil, wrap("register engine", string(id), err)
		}
	}
	e := &Engine{Observer: NewObserver(root, h, now), id: id, claims: map[string]*Claim{}}
	err := guarded(root, func() error {
		if err := e.sweep(); err != nil {
			return err
		}
		return e.enter()
	})
	if err == nil {
		err = e.openClaims()
	}
	if err != nil {
		return nil, wrap("register engine", string(id), err)
	}
	return e, nil
}

// openClaims opens the claims' folder and its guard; what was entered is left to who sweeps when
// it cannot.
func (e *Engine) openClaims() (err error) {
	if e.room, err = disk.OpenFolder(filepath.Join(e.root, layout.ClaimsDir)); err != nil {
		return errors.Join(err, e.lock.Unlock())
	}
	if e.guard, err = disk.OpenLock(filepath.Join(e.root, guardLck), filePerm); err != nil {
		err = errors.Join(err, e.room.Close(), e.lock.Unlock())
	}
	return err
}

// ID is the engine's identifier.
func (e *Engine) ID() layout.EngineID { return e.id }

// enter puts the engine's file in place, locked and complete. It is synced
// before its name appears, so that a power cut leaves no file without content.
func (e *Engine) enter() (err error) {
	path := enginePath(e.root, e.id)
	state, err := probe(path)
	if err != nil {
		return err
	}
	if !state.gone {
		return errors.New("this identifier is in use")
	}
	tmp := tempName(path, 0)
	lock := flock.New(tmp, flock.SetPermissions(filePerm))
	ok, err := lock.TryLock()
	if err != nil {
		return err
	}
	if !ok {
		return errors.New("this identifier is being registered by another process")
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeIfThere(tmp), lock.Unlock())
		}
	}()
	info := engineInfo{BootID: e.host.BootID, Engine: e.id, Host: e.host.Name, PID: e.host.PID,
		Schema: 1, Since: e.now().UTC()}
	if err := writeSynced(tmp, encode(info)); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil { // the lock belongs to the file and goes with it
		return err
	}
	e.lock = lock
	return nil
}

// Beat touches the engine's file, and marks the claims that others have taken
// as lost. The engine's loop calls it every ten seconds. After ErrLost the
// engine must stop acting.
func (e *Engine) Beat() error {
	e.state.Lock()
	defer e.state.Unlock()
	if err := e.usable(); err != nil {
		return err
	}
	if err := e.check(); err != nil {
		return err
	}
	for _, c := range e.claims {
		if still, err := c.stillOurs(); err == nil && !still {
			c.markLost()
		}
	}
	now := e.now()
	return wrap("touch the file of engine", string(e.id), os.Chtimes(enginePath(e.root, e.id), now, now))
}

// Check answers ErrLost, as the next Beat would, when others take the engine for dead.
func (e *Engine) Check() error {
	e.state.Lock()
	defer e.state.Unlock()
	if err := e.usable(); err != nil {
		return err
	}
	return e.check()
}

// check is called with e.state held.
func (e *Engine) check() error {
	ours, err := e.owns(enginePath(e.root, e.id))
	if err != nil {
		return wrap("look for the file of engine", string(e.id), err)
	}
	if !ours {
		e.lost = true
		for _, c := range e.claims {
			c.markLost()
		}
		return ErrLost
	}
	return nil
}

// owns tells whether path is still the file this engine's lock is on.
func (e *Engine) owns(path string) (bool, error) {
	named, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	locked, err := e.lock.Stat()
	if err != nil {
		return false, err
	}
	return os.SameFile(named, locked), nil
}

// Close releases the engine's claims, removes its file and frees its lock.
// Closing twice is fine.
func (e *Engine) Close() error {
	e.state.Lock()
	defer e.state.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	var errs []error
	for _, c := range e.claims {
		errs = append(errs, c.remove())
	}
	clear(e.claims)
	for _, spare := range e.spares {
		errs = append(errs, removeIfThere(filepath.Join(e.root, layout.ClaimsDir, spare)))
	}
	path := enginePath(e.root, e.id)
	if ours, err := e.owns(path); err != nil {
		errs = append(errs, err)
	} else if ours {
		errs = append(errs, removeIfThere(path))
	}
	errs = append(errs, e.lock.Unlock(), e.room.Close(), e.guard.Close())
	return wrap("close engine", string(e.id), errors.Join(errs...))
}

// usable is called with e.state held.
func (e *Engine) usable() error {
	switch {
	case e.closed:
		return ErrClosed
	case e.lost:
		return ErrLost
	}
	return nil
}

// sweep removes what dead engines of this host left: their files, and the
// temporary files of claims they were writing. Their claims stay, to be taken
// over or shown. The caller holds the guard, under which engines register.
func (e *Engine) sweep() error {
	dir := filepath.Join(e.root, layout.EnginesDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		state, err := probe(path)
		if err != nil {
			return err
		}
		if state.gone || state.held || !e.host.sharesLocks(state.info.Host, state.info.BootID) {
			continue
		}
		if err := removeIfThere(path); err != nil {
			return err
		}
	}
	return e.sweepTemps()
}

func (e *Engine) sweepTemps() error {
	dir := filepath.Join(e.root, layout.ClaimsDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		id, ok := tempOwner(entry.Name())
		if !ok {
			continue
		}
		if alive, err := e.Alive(id); err != nil || alive {
			continue // a temporary file is not worth an error
		}
		if err := removeIfThere(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// guarded runs act while no other process of the workspace runs one.
func guarded(root string, act func() error) (err error) {
	unlock, err := disk.LockFile(filepath.Join(root, guardLck), filePerm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return act()
}

// A temporary file beside path is named .ENGINE.N.tmp, so that a later engine
// can tell whose it was.
func tempName(enginePath string, n int) string {
	return filepath.Join(filepath.Dir(enginePath), fmt.Sprintf(".%s.%d.tmp", filepath.Base(enginePath), n))
}

func tempOwner(name string) (layout.EngineID, bool) {
	if !strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ".tmp") {
		return "", false
	}
	owner, _, _ := strings.Cut(name[1:], ".")
	id, err := layout.ParseEngineID(owner)
	return id, err == nil
}

func writeSynced(path string, data []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, filePerm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// encode writes v, whose fields stand in the order of their keys.
func encode(v any) []byte {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("claim: encode %T: %v", v, err)) // plain structs of strings and numbers
	}
	return append(data, '\n')
}

func wrap(verb, object string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", verb, object, err)
}
