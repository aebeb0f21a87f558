package odb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// ErrMissing says that no pack and no loose file holds an object.
var ErrMissing = errors.New("object is missing")

var errClosed = errors.New("object database is closed")

const (
	objectCacheBytes = 48 << 20
	baseCacheBytes   = 16 << 20
	maxOpenPacks     = 256
)

// DB reads the objects of one repository. Any number of goroutines may use it.
type DB struct {
	dir      string // the objects folder
	fallback func(Hash) (Type, []byte, error)

	objects *cache[Hash]
	bases   *cache[baseKey]
	last    atomic.Pointer[pack] // where the last object was found
	clock   atomic.Uint64

	// mu guards packs and known; the slice is replaced, never changed in place.
	mu     sync.RWMutex
	packs  []*pack
	known  map[string]*pack
	nextID uint64
	opened atomic.Int64

	scanMu sync.Mutex // one look at the folder at a time
	closed bool       // guarded by mu
}

type baseKey struct {
	pack uint64
	off  int64
}

// Open gives the objects below dir (a repository's objects folder). It lists
// the packs and reads the head of each index, no object. fallback, if any, is
// asked last for an object that is nowhere (an alternate's, for example).
func Open(dir string, fallback func(Hash) (Type, []byte, error)) (*DB, error) {
	db := &DB{
		dir:      dir,
		fallback: fallback,
		objects:  newCache[Hash](objectCacheBytes),
		bases:    newCache[baseKey](baseCacheBytes),
		known:    map[string]*pack{},
	}
	return db, db.Rescan()
}

// Close closes the open packs. Reads after it fail.
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	var errs []error
	for _, p := range db.packs {
		errs = append(errs, p.close())
	}
	db.packs, db.known, db.closed = nil, map[string]*pack{}, true
	return errors.Join(errs...)
}

// Rescan looks at the packs' folder again.
func (db *DB) Rescan() error {
	_, err := db.rescan()
	return err
}

// rescan tells whether the packs are not the same as before.
func (db *DB) rescan() (changed bool, err error) {
	db.scanMu.Lock()
	defer db.scanMu.Unlock()
	names, err := db.listPacks()
	if err != nil {
		return false, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return false, errClosed
	}
	var packs []*pack
	for name := range names {
		p := db.known[name]
		if p == nil {
			// A broken index, or one removed meanwhile, must not hide the other
			// packs: what only it holds will be reported as missing.
			if p, err = openPack(name, db.nextID+1); err != nil {
				continue
			}
			db.nextID++
			db.known[name] = p
			changed = true
		}
		packs = append(packs, p)
	}
	for name, p := range db.known {
		if !names[name] {
			delete(db.known, name)
			p.close() //nolint:errcheck // opened for reading
			db.last.CompareAndSwap(p, nil)
			changed = true
		}
	}
	sortBySize(packs)
	db.packs = packs
	return changed, nil
}

func (db *DB) listPacks() (map[string]bool, error) {
	dir := filepath.Join(db.dir, "pack")
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list packs: %w", err)
	}
	names := make(map[string]bool, len(list)/2)
	for _, e := range list {
		if base, ok := strings.CutSuffix(e.Name(), ".idx"); ok && strings.HasPrefix(base, "pack-") {
			names[filepath.Join(dir, base)] = true
		}
	}
	return names, nil
}

// Add makes a pack known that was just written; path is without .pack.
func (db *DB) Add(path string, index []byte) error {
	p := &pack{path: path}
	if err := p.setIndex(index[:min(len(index), smallIndex)], int64(len(index))); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.known[path] != nil || db.closed {
		return nil
	}
	db.nextID++
	p.id = db.nextID
	db.known[path] = p
	db.packs = append(db.packs[:len(db.packs):len(db.packs)], p)
	return nil
}

// Forget drops a pack that was removed again before its publication.
func (db *DB) Forget(path string) error {
	db.mu.Lock()
	p := db.known[path]
	delete(db.known, path)
	packs := make([]*pack, 0, len(db.packs))
	for _, q := range db.packs {
		if q != p {
			packs = append(packs, q)
		}
	}
	db.packs = packs
	db.mu.Unlock()
	if p == nil {
		return nil
	}
	db.last.CompareAndSwap(p, nil)
	return p.close()
}

// Keep puts an object into the cache, without writing it anywhere.
func (db *DB) Keep(h Hash, t Type, data []byte) { db.objects.put(h, t, data) }

// Has tells whether the object exists.
func (db *DB) Has(h Hash) (bool, error) {
	if _, _, ok := db.objects.find(h); ok {
		return true, nil
	}
	if _, _, ok, err := db.locate(h); ok || err != nil {
		return ok, err
	}
	if _, err := os.Lstat(db.loosePath(h)); err == nil {
		return true, nil
	}
	if changed, err := db.rescan(); err != nil || !changed {
		return false, err
	}
	_, _, ok, err := db.locate(h)
	return ok, err
}

// Read gives an object. The bytes are shared: they must not be changed.
func (db *DB) Read(h Hash) (Type, []byte, error) {
	if t, data, ok := db.objects.find(h); ok {
		return t, data, nil
	}
	t, data, err := db.ReadUncached(h)
	if err == nil {
		db.objects.put(h, t, data)
	}
	return t, data, err
}

// maxScans bounds how often a read looks at the packs' folder again.
const maxScans = 5

// ReadUncached is Read for long walks, which would only empty the cache. Its
// error never is fs.ErrNotExist: that a pack is gone is no answer to a caller.
func (db *DB) ReadUncached(h Hash) (t Type, data []byte, err error) {
	for i := range maxScans {
		t, data, err = db.read(h)
		if err == nil || errors.Is(err, errCorrupt) {
			return t, data, err
		}
		// Others may have packed again: a pack that we know was removed before we
		// opened it, or the object stands in one that we do not know yet.
		changed, scanErr := db.rescan()
		if scanErr != nil {
			return 0, nil, scanErr
		}
		if !changed && i > 0 {
			break
		}
	}
	if db.fallback != nil && errors.Is(err, ErrMissing) {
		if t, data, fallbackErr := db.fallback(h); fallbackErr == nil {
			return t, data, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: %w (%v)", h, ErrMissing, err)
	}
	return 0, nil, err
}

// ReadAs is Read of an object that must have the type t.
func (db *DB) ReadAs(h Hash, t Type) ([]byte, error) {
	found, data, err := db.Read(h)
	return expect(h, t, found, data, err)
}

// ReadAsUncached is ReadUncached of an object that must have the type t.
func (db *DB) ReadAsUncached(h Hash, t Type) ([]byte, error) {
	if found, data, ok := db.objects.find(h); ok {
		return expect(h, t, found, data, nil)
	}
	found, data, err := db.ReadUncached(h)
	return expect(h, t, found, data, err)
}

func expect(h Hash, want, found Type, data []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	if found != want {
		return nil, fmt.Errorf("%w: %s is a %s, not a %s", errCorrupt, h, found, want)
	}
	return data, nil
}

func (db *DB) read(h Hash) (Type, []byte, error) {
	p, off, ok, err := db.locate(h)
	if err != nil {
		return 0, nil, err
	}
	if ok {
		t, data, err := db.resolve(p, off)
		if errors.Is(err, fs.ErrNotExist) {
			db.last.CompareAndSwap(p, nil)
		}
		return t, data, err
	}
	t, data, err := readLoose(db.loosePath(h))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, fmt.Errorf("%s: %w", h, ErrMissing)
	}
	return t, data, err
}

// locate asks the pack of the last hit first, then all: those just written, then
// the smaller, then the larger.
func (db *DB) locate(h Hash) (*pack, int64, bool, error) {
	last := db.last.Load()
	if last != nil {
		if off, ok, err := last.find(h); err == nil && ok {
			db.touch(last)
			return last, off, true, nil
		}
	}
	db.mu.RLock()
	packs := db.packs
	db.mu.RUnlock()
	for i := len(packs) - 1; i >= 0; i-- {
		p := packs[i]
		if p == last {
			continue
		}
		off, ok, err := p.find(h)
		if err != nil {
			return nil, 0, false, err
		}
		if ok {
			db.last.Store(p)
			db.touch(p)
			return p, off, true, nil
		}
	}
	return nil, 0, false, nil
}

// touch notes the use of a pack, and closes the files of the least recently
// used half when too many are open.
func (db *DB) touch(p *pack) {
	if p.use.Swap(db.clock.Add(1)) != 0 {
		return
	}
	if db.opened.Add(1) <= maxOpenPacks {
		return
	}
	db.mu.RLock()
	packs := db.packs
	db.mu.RUnlock()
	oldest := db.clock.Load() - maxOpenPacks/2
	closed := int64(0)
	for _, q := range packs {
		if u := q.use.Load(); q != p && u != 0 && u < oldest && q.use.CompareAndSwap(u, 0) {
			q.close() //nolint:errcheck // opened for reading
			closed++
		}
	}
	db.opened.Add(-closed)
}

// resolve reads an entry and applies the deltas it is made of.
func (db *DB) resolve(p *pack, off int64) (Type, []byte, error) {
	var deltas [][]byte
	var offs []int64
	var t Type
	var data []byte
	for at := off; ; {
		var ok bool
		if t, data, ok = db.bases.find(baseKey{p.id, at}); ok {
			break
		}
		r, err := p.read(at)
		if err != nil {
			return 0, nil, err
		}
		if r.t != typeOfsDelta && r.t != typeRefDelta {
			t, data = r.t, r.data
			if len(deltas) > 0 {
				db.bases.put(baseKey{p.id, at}, t, data)
			}
			break
		}
		deltas, offs = append(deltas, r.data), append(offs, at)
		if r.t == typeRefDelta {
			if t, data, err = db.read(r.baseRef); err != nil {
				return 0, nil, err
			}
			break
		}
		at = r.base
	}
	for i := len(deltas) - 1; i >= 0; i-- {
		var err error
		if data, err = applyDelta(data, deltas[i]); err != nil {
			return 0, nil, fmt.Errorf("read %s.pack at %d: %w", p.path, offs[i], err)
		}
		if t != TypeBlob { // neighbours of trees share their bases; blobs here have none
			db.bases.put(baseKey{p.id, offs[i]}, t, data)
		}
	}
	return t, data, nil
}
