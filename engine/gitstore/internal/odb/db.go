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
	"time"

	"golang.org/x/sys/unix"
)

// ErrMissing says that no pack and no loose file holds an object.
var ErrMissing = errors.New("object is missing")

var errClosed = errors.New("object database is closed")

const (
	objectCacheBytes = 12 << 20
	baseCacheBytes   = 8 << 20
	maxOpenPacks     = 256 // each with its index where that is large
)

// DB reads the objects of one repository. Any number of goroutines may use it.
type DB struct {
	dir      string // the objects folder
	fallback func(Hash) (Type, []byte, error)

	objects *cache[Hash]
	bases   *cache[baseKey]
	clock   atomic.Uint64
	recent

	// mu guards packs and known; the slice is replaced, never changed in place.
	// The largest pack comes first, those just written last.
	mu     sync.RWMutex
	packs  []*pack
	known  map[string]*pack
	small  smallTable
	nextID uint64
	opened atomic.Int64
	most   int64 // packs to hold open

	scanMu sync.Mutex // one look at the folder at a time
	closed bool       // guarded by mu
}

// recent is where reads look first.
type recent struct {
	last atomic.Pointer[pack] // where the last object was found
	many atomic.Pointer[Bulk] // the packs mapped for whoever reads very much; nil: nobody does
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
		most:     mostOpen(),
	}
	return db, db.Rescan()
}

// mostOpen leaves three quarters of the files that the process may open to others.
func mostOpen() int64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return maxOpenPacks
	}
	return int64(min(maxOpenPacks, max(limit.Cur/8, 2)))
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

// Packs is how many packs are known.
func (db *DB) Packs() int {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return len(db.packs)
}

// Release ends the mappings of large indexes that were asked very often. It is quick.
func (db *DB) Release() {
	db.mu.RLock()
	packs := db.packs
	db.mu.RUnlock()
	for _, p := range packs {
		if p.index == nil {
			p.release()
		}
	}
}

// Rescan looks at the packs' folder again.
func (db *DB) Rescan() error {
	_, err := db.rescan()
	return err
}

// rescan reports whether the packs are not the same as before.
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
			db.small.add(p, false)
			changed = true
		}
		packs = append(packs, p)
	}
	for name, p := range db.known {
		if !names[name] {
			delete(db.known, name)
			db.small.drop(p)
			p.close() //nolint:errcheck // opened for reading
			db.last.CompareAndSwap(p, nil)
			changed = true
		}
	}
	arrange(packs)
	db.setPacks(packs)
	return changed, nil
}

// setPacks takes a new list; mu is held.
func (db *DB) setPacks(packs []*pack) {
	for i, p := range packs {
		p.at.Store(int32(i))
	}
	db.packs = packs
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
	// An index without its pack tells of objects that are not there, as git knows: they may stand elsewhere.
	packed := make(map[string]bool, len(names))
	for _, e := range list {
		if base, ok := strings.CutSuffix(e.Name(), ".pack"); ok {
			packed[filepath.Join(dir, base)] = true
		}
	}
	for name := range names {
		if packed[name] {
			continue
		}
		if _, err := os.Lstat(name + ".pack"); errors.Is(err, fs.ErrNotExist) { // else both came while the folder was listed
			delete(names, name)
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
	db.small.add(p, false)
	if n := len(db.packs); n > 0 {
		p.age = db.packs[n-1].age + 1
	}
	p.at.Store(int32(len(db.packs)))
	db.packs = append(db.packs[:len(db.packs):len(db.packs)], p)
	return nil
}

// Forget drops a pack that was removed again before its publication.
func (db *DB) Forget(path string) error {
	db.mu.Lock()
	p := db.known[path]
	delete(db.known, path)
	if p != nil {
		db.small.drop(p)
	}
	packs := make([]*pack, 0, len(db.packs))
	for _, q := range db.packs {
		if q != p {
			packs = append(packs, q)
		}
	}
	db.setPacks(packs)
	db.mu.Unlock()
	if p == nil {
		return nil
	}
	db.last.CompareAndSwap(p, nil)
	return p.close()
}

// Keep puts an object into the cache, without writing it anywhere.
func (db *DB) Keep(h Hash, t Type, data []byte) { db.objects.put(h, t, data) }

// hasScans is how often Has looks at the packs' folder before it says no: as with
// reads, a look while others pack again may lack the object, also one that another
// goroutine took.
const hasScans = 4

// Has reports whether the object exists.
func (db *DB) Has(h Hash) (bool, error) {
	has, err := db.HasEach([]Hash{h})
	return has[0], err
}

// HasEach is Has of each of some objects. For those that are not there it looks at the packs'
// folder again, a few times for all of them.
func (db *DB) HasEach(objects []Hash) (has []bool, err error) {
	has = make([]bool, len(objects))
	for i := range hasScans + 1 {
		if i > 0 {
			if _, err := db.rescan(); err != nil {
				return has, err
			}
		}
		wanting := 0
		for n, h := range objects {
			if has[n] {
				continue
			}
			if has[n], err = db.seen(h); err != nil {
				return has, err
			}
			if !has[n] {
				wanting++
			}
		}
		if wanting == 0 {
			break
		}
		if i > 0 && i < hasScans {
			time.Sleep(scanPause)
		}
	}
	return has, nil
}

// seen reports whether an object stands where it was looked last.
func (db *DB) seen(h Hash) (bool, error) {
	if _, _, ok := db.objects.find(h); ok {
		return true, nil
	}
	if _, _, ok, err := db.locate(h); ok || err != nil {
		return ok, err
	}
	_, err := os.Lstat(db.loosePath(h))
	return err == nil, nil
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
const maxScans = 8

const scanPause = 2 * time.Millisecond

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
		// A listing made while names come and go may lack both the old pack and
		// the new one; objects that are truly missing are rare enough to wait for.
		// Where others add packs all the time, every listing differs: then the pause is
		// short, but there is one.
		switch {
		case i == 0:
		case changed:
			time.Sleep(scanPause)
		default:
			time.Sleep(scanPause << i)
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

// ReadTree gives a tree that Entries goes over to its end.
func (db *DB) ReadTree(h Hash) ([]byte, error) {
	tree, err := db.ReadAs(h, TypeTree)
	if err != nil {
		return nil, err
	}
	return tree, CheckTree(tree)
}

// ReadTreeUncached is ReadTree for long walks.
func (db *DB) ReadTreeUncached(h Hash) ([]byte, error) {
	tree, err := db.ReadAsUncached(h, TypeTree)
	if err != nil {
		return nil, err
	}
	return tree, CheckTree(tree)
}

// ReadCommit gives a commit.
func (db *DB) ReadCommit(h Hash) (Commit, error) {
	data, err := db.ReadAsUncached(h, TypeCommit)
	if err == nil {
		var c Commit
		if c, err = ParseCommit(data); err == nil {
			return c, nil
		}
	}
	return Commit{}, fmt.Errorf("read commit %s: %w", h, err)
}
