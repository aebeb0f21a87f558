package odb

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

const (
	smallIndex   = 32 << 10 // indexes up to this size are kept in memory
	indexHead    = 8 + 1024
	indexTrailer = 40
	readAhead    = 4 << 10 // most objects are read whole with one ReadAt
)

// pack is one pack and its index. The fields above mu are set once.
type pack struct {
	path   string // without .pack or .idx
	id     uint64 // for the cache of delta bases
	fanout [256]uint32
	n      int
	index  []byte       // the whole index when it is small
	age    int64        // when it was written: packs written one after the other hold what belongs together
	at     atomic.Int32 // its place in the list of packs
	use    atomic.Uint64
	asked  atomic.Int32 // lookups in a large index that is not mapped

	// mu guards the open files and the mapping; a reader of them holds it for reading.
	mu       sync.RWMutex
	packFile *os.File
	idxFile  *os.File // the index when it is large
	mapped   []byte   // the same, when it is asked often
}

// openPack reads the head of an index, or the whole of a small one.
func openPack(path string, id uint64) (p *pack, err error) {
	p = &pack{path: path, id: id}
	f, err := disk.Open(path + ".idx")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p.age = info.ModTime().UnixNano()
	head := make([]byte, min(info.Size(), smallIndex))
	if info.Size() > smallIndex {
		head = head[:indexHead]
	}
	if _, err := io.ReadFull(f, head); err != nil {
		return nil, fmt.Errorf("%w: index %s: %w", errCorrupt, path, err)
	}
	return p, p.setIndex(head, info.Size())
}

// withPack opens the pack when it is not open, and holds it open while use reads
// it.
func (p *pack) withPack(use func(*os.File) error) error {
	p.mu.RLock()
	if p.packFile == nil {
		p.mu.RUnlock()
		p.mu.Lock()
		if p.packFile == nil {
			f, err := disk.Open(p.path + ".pack")
			if err != nil {
				p.mu.Unlock()
				return err
			}
			p.packFile = f
		}
		p.mu.Unlock()
		p.mu.RLock()
	}
	defer p.mu.RUnlock()
	if p.packFile == nil {
		return p.reread(use) // closed in between by the limit on open files
	}
	return use(p.packFile)
}

func (p *pack) reread(use func(*os.File) error) (err error) {
	f, err := disk.Open(p.path + ".pack")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return use(f)
}

// close closes the files and ends the mapping; a later read opens the files again.
func (p *pack) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	if p.packFile != nil {
		errs = append(errs, p.packFile.Close())
		p.packFile = nil
	}
	if p.idxFile != nil {
		errs = append(errs, p.idxFile.Close())
		p.idxFile = nil
	}
	if p.mapped != nil {
		errs = append(errs, unix.Munmap(p.mapped))
		p.mapped = nil
	}
	return errors.Join(errs...)
}

// raw is an entry of a pack as it stands there.
type raw struct {
	t       Type
	data    []byte // the object's bytes, or the delta
	base    int64  // of an OFS_DELTA
	baseRef Hash   // of a REF_DELTA
}

var readBuffers = sync.Pool{New: func() any { return new([readAhead]byte) }}

// read gives the entry at off.
func (p *pack) read(off int64) (raw, error) {
	var r raw
	err := p.withPack(func(f *os.File) (err error) {
		buf := readBuffers.Get().(*[readAhead]byte)
		defer readBuffers.Put(buf)
		n, err := f.ReadAt(buf[:], off)
		if err != nil && err != io.EOF {
			return err
		}
		r, err = parseEntry(buf[:n], f, off)
		return err
	})
	if err != nil {
		return raw{}, fmt.Errorf("read %s.pack at %d: %w", p.path, off, err)
	}
	return r, nil
}

func parseEntry(b []byte, f io.ReaderAt, off int64) (raw, error) {
	r, size, n, err := parseEntryHeader(b, off)
	if err != nil {
		return raw{}, err
	}
	r.data, err = inflate(b[n:], size, func() (io.Reader, error) {
		return io.NewSectionReader(f, off+int64(n), 1<<62), nil
	})
	return r, err
}

var errEntryHeader = fmt.Errorf("%w: entry header", errCorrupt)

// parseEntryHeader reads a header written by appendEntryHeader and appendOffset.
func parseEntryHeader(b []byte, off int64) (r raw, size, n int, err error) {
	bad := errEntryHeader
	if len(b) < 1 {
		return raw{}, 0, 0, bad
	}
	c := b[0]
	r.t, size, n = Type(c>>4&7), int(c&15), 1
	for shift := 4; c&0x80 != 0; shift += 7 {
		if n >= len(b) || shift > 50 {
			return raw{}, 0, 0, bad
		}
		c = b[n]
		size |= int(c&0x7f) << shift
		n++
	}
	switch r.t {
	case TypeCommit, TypeTree, TypeBlob, TypeTag:
	case typeRefDelta:
		if n+20 > len(b) {
			return raw{}, 0, 0, bad
		}
		r.baseRef = Hash(b[n : n+20])
		n += 20
	case typeOfsDelta:
		back, used := readOffset(b[n:])
		if used == 0 || back <= 0 || back >= off {
			return raw{}, 0, 0, bad
		}
		r.base = off - back
		n += used
	default:
		return raw{}, 0, 0, bad
	}
	return r, size, n, nil
}

func readOffset(b []byte) (back int64, n int) {
	for n < len(b) && n < 9 {
		c := b[n]
		n++
		back = back<<7 | int64(c&0x7f)
		if c&0x80 == 0 {
			return back, n
		}
		back++
	}
	return 0, 0
}

// arrange puts the largest pack first, and the others behind it by age.
func arrange(packs []*pack) {
	slices.SortFunc(packs, func(a, b *pack) int { return cmp.Or(cmp.Compare(a.age, b.age), cmp.Compare(a.path, b.path)) })
	largest := 0
	for i, p := range packs {
		if p.n > packs[largest].n {
			largest = i
		}
	}
	if len(packs) > 0 {
		p := packs[largest]
		copy(packs[1:largest+1], packs[:largest])
		packs[0] = p
	}
}
