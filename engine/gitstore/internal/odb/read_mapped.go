package odb

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// The rules are: whoever reads very many objects reads them from packs that are
// mapped while it does, into its own memory, in the order in which they stand there.
// A pack that cannot be mapped, an object that is not whole in one, and a page that
// the disk does not give (a fault, not an error) are left to ReadUncached, which
// names the fault.

// maxMapped bounds how many packs a Bulk maps: the first that are asked for. A history of a day
// has some hundred, of one group of transitions each; Linux allows a process 65,530 mappings.
const maxMapped = 1024

// Bulk holds packs mapped for Readers. It must be closed after them.
type Bulk struct {
	db     *DB
	mu     sync.RWMutex // guards the rest; whoever reads a mapping holds it for reading
	mapped map[*pack][]byte
	closed bool
}

// Bulk begins to read very many objects.
func (db *DB) Bulk() *Bulk { return &Bulk{db: db, mapped: map[*pack][]byte{}} }

// ReadMany maps each pack that a read of the DB asks, and each index, until end is called: a read of an object
// then asks the system for nothing. Of several callers the first maps, and ends it.
func (db *DB) ReadMany() (end func() error) {
	b := db.Bulk()
	if !db.many.CompareAndSwap(nil, b) {
		return func() error { return nil }
	}
	db.mu.RLock()
	packs := db.packs
	db.mu.RUnlock()
	for _, p := range packs[:min(len(packs), maxMapped)] {
		if p.index == nil {
			p.asked.Store(mapFrom) // the next lookup maps it: packs that hold nothing of what is read are asked as often
		}
	}
	return func() error {
		db.many.Store(nil)
		db.Release()
		return b.Close()
	}
}

// entry reads the entry of a pack that begins at off; false: it is to be read otherwise.
func (b *Bulk) entry(p *pack, off int64) (r raw, ok bool) {
	b.bytesOf(p)
	b.mu.RLock() // nothing is unmapped meanwhile
	defer b.mu.RUnlock()
	data := b.mapped[p]
	if off < packHeaderLen || off >= int64(len(data)) {
		return raw{}, false
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if e := recover(); e != nil {
			if _, fault := e.(interface{ Addr() uintptr }); !fault {
				panic(e)
			}
			ok = false // the disk does not give the page
		}
	}()
	r, size, n, err := parseEntryHeader(data[off:], off)
	if err == nil {
		r.data, err = inflate(data[off+int64(n):], size, nil)
	}
	return r, err == nil
}

// mostResident is how many bytes of files a process may have in memory by its mappings: they count as its own
// until they are given back, and a history of a million commits has gigabytes of packs.
const mostResident = 192 << 20

// shed gives the pages of all mappings back where they are more than most bytes. Whoever reads on gets them
// again, as a rule from the system's memory of the files.
func (b *Bulk) shed(most int64) error {
	pages, err := residentPages()
	if err != nil || pages*int64(os.Getpagesize()) <= most {
		return err
	}
	b.db.mu.RLock()
	packs := b.db.packs
	b.db.mu.RUnlock()
	var errs []error
	give := func(data []byte) {
		if data != nil {
			errs = append(errs, unix.Madvise(data, unix.MADV_DONTNEED))
		}
	}
	for _, p := range packs {
		p.mu.RLock()
		give(p.mapped)
		p.mu.RUnlock()
	}
	for _, of := range []*Bulk{b, b.db.many.Load()} {
		if of == nil {
			continue
		}
		of.mu.RLock()
		for _, data := range of.mapped {
			give(data)
		}
		of.mu.RUnlock()
	}
	return errors.Join(errs...)
}

// residentPages is how many pages of files are in this process's memory.
func residentPages() (int64, error) {
	said, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(said)) // all, in memory, of these of files
	if len(fields) < 3 {
		return 0, fmt.Errorf("/proc/self/statm says %.100q", said)
	}
	return strconv.ParseInt(fields[2], 10, 64)
}

// Close unmaps the packs.
func (b *Bulk) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	var errs []error
	for p, data := range b.mapped {
		if data != nil {
			errs = append(errs, unix.Munmap(data))
		}
		delete(b.mapped, p)
	}
	return errors.Join(errs...)
}

// bytesOf gives a pack's bytes; nil when it is not mapped.
func (b *Bulk) bytesOf(p *pack) []byte {
	b.mu.RLock()
	data, known := b.mapped[p]
	full := len(b.mapped) >= maxMapped
	b.mu.RUnlock()
	if known || full {
		return data
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	if data, known = b.mapped[p]; !known {
		_ = p.withPack(func(f *os.File) error { // else it stays nil, and is read otherwise
			info, err := f.Stat()
			if err == nil && int64(int(info.Size())) == info.Size() {
				data, err = unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
			}
			return err
		})
		b.mapped[p] = data
	}
	return data
}

// Place is where an object stands. The zero Place: in no pack.
type Place struct {
	p   *pack
	off int64
}

// Compare orders places as they are read fastest.
func (a Place) Compare(b Place) int {
	return cmp.Or(cmp.Compare(a.number(), b.number()), cmp.Compare(a.off, b.off))
}

func (a Place) number() uint64 {
	if a.p == nil {
		return 0
	}
	return a.p.id
}

// Place gives where an object stands.
func (b *Bulk) Place(h Hash) Place {
	p, off, ok, err := b.db.locate(h)
	if err != nil || !ok {
		return Place{}
	}
	return Place{p, off}
}

// Reader reads objects. It is one goroutine's.
type Reader struct {
	b    *Bulk
	last *pack
	data []byte // of last
}

// Reader makes one.
func (b *Bulk) Reader() *Reader { return &Reader{b: b} }

// Read gives an object that must have the type t, in the memory of buf where it has
// room. at is its Place, if that is known.
func (r *Reader) Read(h Hash, at Place, t Type, buf []byte) ([]byte, error) {
	if at.p == nil {
		at = r.locate(h)
	} else if at.p != r.last {
		r.last, r.data = at.p, r.b.bytesOf(at.p)
	}
	if data, ok := r.mapped(at, t, buf); ok {
		return data, nil
	}
	data, err := r.b.db.ReadAsUncached(h, t)
	return append(buf[:0], data...), err // the caller's own, as that may be the cache's
}

func (r *Reader) mapped(at Place, t Type, buf []byte) (data []byte, ok bool) {
	if at.p == nil || len(r.data) == 0 {
		return nil, false
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if e := recover(); e != nil {
			if _, fault := e.(interface{ Addr() uintptr }); !fault {
				panic(e)
			}
			data, ok = nil, false // the disk does not give the page
		}
	}()
	return r.entry(at.off, t, buf, 0)
}

// entry reads the entry of the last pack that begins at off.
func (r *Reader) entry(off int64, t Type, buf []byte, depth int) ([]byte, bool) {
	if off < packHeaderLen || off >= int64(len(r.data)) || depth > maxChain {
		return nil, false
	}
	e, size, n, err := parseEntryHeader(r.data[off:], off)
	src := r.data[off:]
	if err != nil || size > wholeAtMost*len(src) {
		return nil, false
	}
	src = src[n:]
	if e.t == t {
		return inflateWhole(buf, size, src)
	}
	if e.t != typeOfsDelta {
		return nil, false
	}
	base, ok := r.entry(e.base, t, nil, depth+1)
	if !ok {
		return nil, false
	}
	delta, ok := inflateWhole(nil, size, src)
	if !ok {
		return nil, false
	}
	data, err := applyDelta(base, delta)
	return data, err == nil
}

// locate asks the pack of the object before first.
func (r *Reader) locate(h Hash) Place {
	if r.last != nil {
		if off, ok, err := r.last.find(h); err == nil && ok {
			return Place{r.last, off}
		}
	}
	at := r.b.Place(h)
	if at.p != nil {
		r.last, r.data = at.p, r.b.bytesOf(at.p)
	}
	return at
}
