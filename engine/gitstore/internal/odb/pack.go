package odb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
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
	index  []byte // the whole index when it is small
	use    atomic.Uint64

	// mu guards the open files: held for reading while they are read.
	mu        sync.RWMutex
	packFile  *os.File
	indexFile *os.File
}

// openPack reads the head of an index.
func openPack(path string, id uint64) (*pack, error) {
	p := &pack{path: path, id: id}
	f, err := os.Open(path + ".idx")
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	head := make([]byte, min(info.Size(), smallIndex))
	if info.Size() > smallIndex {
		head = head[:indexHead]
	}
	if _, err := io.ReadFull(f, head); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: index %s: %w", errCorrupt, path, err), f.Close())
	}
	if err := p.setIndex(head, info.Size()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if p.index == nil {
		p.indexFile = f
		return p, nil
	}
	return p, f.Close()
}

func (p *pack) setIndex(head []byte, size int64) error {
	if len(head) < indexHead || string(head[:8]) != "\xfftOc\x00\x00\x00\x02" {
		return fmt.Errorf("%w: index %s: is not of version 2", errCorrupt, p.path)
	}
	for i := range p.fanout {
		p.fanout[i] = binary.BigEndian.Uint32(head[8+4*i:])
		if i > 0 && p.fanout[i] < p.fanout[i-1] {
			return fmt.Errorf("%w: index %s: table not in order", errCorrupt, p.path)
		}
	}
	p.n = int(p.fanout[255])
	if size < int64(indexHead+p.n*28+indexTrailer) {
		return fmt.Errorf("%w: index %s: too short", errCorrupt, p.path)
	}
	if int64(len(head)) == size {
		p.index = bytes.Clone(head)
	}
	return nil
}

// find gives where the object's entry begins in the pack.
func (p *pack) find(h Hash) (off int64, ok bool, err error) {
	lo, hi := 0, int(p.fanout[h[0]])
	if h[0] > 0 {
		lo = int(p.fanout[h[0]-1])
	}
	if lo == hi {
		return 0, false, nil
	}
	if p.index != nil {
		i, ok := searchNames(p.index[indexHead+20*lo:indexHead+20*hi], h)
		if !ok {
			return 0, false, nil
		}
		off, err = p.offset(bytes.NewReader(p.index), lo+i)
		return off, err == nil, err
	}
	err = p.withFile(&p.indexFile, ".idx", func(f *os.File) (err error) {
		var i int
		if i, ok, err = searchFile(f, h, lo, hi); err != nil || !ok {
			return err
		}
		off, err = p.offset(f, i)
		return err
	})
	return off, ok && err == nil, err
}

// offset reads the i-th offset; those of 2 GiB and more stand in a table of
// their own at the end.
func (p *pack) offset(r io.ReaderAt, i int) (int64, error) {
	var b [8]byte
	if _, err := r.ReadAt(b[:4], int64(indexHead+24*p.n+4*i)); err != nil {
		return 0, err
	}
	off := binary.BigEndian.Uint32(b[:])
	if off&(1<<31) == 0 {
		return int64(off), nil
	}
	at := int64(indexHead+28*p.n) + 8*int64(off&^(1<<31))
	if _, err := r.ReadAt(b[:], at); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(b[:])), nil
}

func searchNames(names []byte, h Hash) (int, bool) {
	lo, hi := 0, len(names)/20
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		switch c := bytes.Compare(names[20*mid:20*mid+20], h[:]); {
		case c == 0:
			return mid, true
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0, false
}

// searchFile looks among the sorted names from lo to hi (exclusive). Names are
// even as random numbers are, so the first guess is nearly always within the
// 4 KiB read around it.
func searchFile(f *os.File, h Hash, lo, hi int) (int, bool, error) {
	const window = 200
	var buf [20 * window]byte
	for hi-lo > window {
		share := float64(binary.BigEndian.Uint32(h[1:])) / (1 << 32)
		mid := min(max(lo, lo+int(share*float64(hi-lo))-window/2), hi-window)
		if hi-lo < 1<<12 {
			mid = lo + (hi-lo-window)/2 // narrowed already: the share no longer holds
		}
		if _, err := f.ReadAt(buf[:], int64(indexHead+20*mid)); err != nil {
			return 0, false, err
		}
		switch {
		case bytes.Compare(h[:], buf[:20]) < 0:
			hi = mid
		case bytes.Compare(h[:], buf[20*(window-1):]) > 0:
			lo = mid + window
		default:
			i, ok := searchNames(buf[:], h)
			return mid + i, ok, nil
		}
	}
	names := buf[:20*max(0, hi-lo)]
	if _, err := f.ReadAt(names, int64(indexHead+20*lo)); err != nil && len(names) > 0 {
		return 0, false, err
	}
	i, ok := searchNames(names, h)
	return lo + i, ok, nil
}

// withFile opens one of the pack's files when it is not open, and holds it open
// while use reads it.
func (p *pack) withFile(at **os.File, ext string, use func(*os.File) error) error {
	p.mu.RLock()
	if *at == nil {
		p.mu.RUnlock()
		p.mu.Lock()
		if *at == nil {
			f, err := os.Open(p.path + ext)
			if err != nil {
				p.mu.Unlock()
				return err
			}
			*at = f
		}
		p.mu.Unlock()
		p.mu.RLock()
	}
	defer p.mu.RUnlock()
	if *at == nil {
		return p.reread(ext, use) // closed in between by the limit on open files
	}
	return use(*at)
}

func (p *pack) reread(ext string, use func(*os.File) error) (err error) {
	f, err := os.Open(p.path + ext)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return use(f)
}

// close closes the open files; a later read opens them again.
func (p *pack) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, at := range []**os.File{&p.packFile, &p.indexFile} {
		if *at != nil {
			errs = append(errs, (*at).Close())
			*at = nil
		}
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
	err := p.withFile(&p.packFile, ".pack", func(f *os.File) (err error) {
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

// parseEntryHeader reads what appendEntryHeader and appendOffset wrote.
func parseEntryHeader(b []byte, off int64) (r raw, size, n int, err error) {
	bad := fmt.Errorf("%w: entry header", errCorrupt)
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

func sortBySize(packs []*pack) {
	slices.SortStableFunc(packs, func(a, b *pack) int { return b.n - a.n })
}
