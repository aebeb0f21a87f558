package odb

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

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
		off, ok = p.findIn(p.index, lo, hi, h)
		return off, ok, nil
	}
	err = p.withIndex(func(f io.ReaderAt, mapped []byte) error {
		if mapped == nil {
			off, ok, err = p.findAt(f, lo, hi, h)
			return err
		}
		off, ok = p.findIn(mapped, lo, hi, h)
		return nil
	})
	return off, ok && err == nil, err
}

// findIn is find in an index that is in memory, among the names from lo to hi.
func (p *pack) findIn(index []byte, lo, hi int, h Hash) (off int64, ok bool) {
	i, ok := searchNames(index[indexHead+20*lo:indexHead+20*hi], h)
	if !ok {
		return 0, false
	}
	return p.offset(index, lo+i), true
}

// offset reads the i-th offset; those of 2 GiB and more stand in a table of
// their own at the end. One that points beyond the table is 0, where no entry is.
func (p *pack) offset(index []byte, i int) int64 {
	off := binary.BigEndian.Uint32(index[indexHead+24*p.n+4*i:])
	if off&(1<<31) == 0 {
		return int64(off)
	}
	at := indexHead + 28*p.n + 8*int(off&^(1<<31))
	if at+8 > len(index) {
		return 0
	}
	return int64(binary.BigEndian.Uint64(index[at:]))
}

// guesses is how often searchNames guesses before it halves.
const guesses = 8

// searchNames looks for a name among sorted ones of the same first byte. Names are
// even as random numbers are, so that a guess by their first bytes is off by a square
// root of their number, and the next by one of that: few lines of a large index are
// touched. Names that somebody made uneven are found by halving.
func searchNames(names []byte, h Hash) (int, bool) {
	lo, hi := 0, len(names)/20
	want := binary.BigEndian.Uint64(h[:])
	below, above := want&(0xff<<56), want|(1<<56-1) // what stands before lo, and at hi
	for n := 0; lo < hi; n++ {
		mid := int(uint(lo+hi) / 2)
		if n < guesses {
			share := float64(want-below) / (float64(above-below) + 1)
			mid = min(lo+int(share*float64(hi-lo)), hi-1)
		}
		name := names[20*mid : 20*mid+20]
		first := binary.BigEndian.Uint64(name)
		order := cmp.Compare(first, want)
		if order == 0 {
			order = bytes.Compare(name, h[:])
		}
		switch {
		case order == 0:
			return mid, true
		case order < 0:
			lo, below = mid+1, first
		default:
			hi, above = mid, first
		}
	}
	return 0, false
}

const windowNames = 400 // names read at once, 8 KB: a guess is hardly ever further off

var windows = sync.Pool{New: func() any { return new([20 * windowNames]byte) }}

// findAt is find in an index that is read where it is asked.
func (p *pack) findAt(f io.ReaderAt, lo, hi int, h Hash) (off int64, ok bool, err error) {
	window := windows.Get().(*[20 * windowNames]byte)
	defer windows.Put(window)
	want := binary.BigEndian.Uint64(h[:])
	below, above := want&(0xff<<56), want|(1<<56-1)
	for n := 0; lo < hi; n++ {
		mid := int(uint(lo+hi) / 2)
		if n < guesses {
			share := float64(want-below) / (float64(above-below) + 1)
			mid = lo + int(share*float64(hi-lo))
		}
		from := max(lo, min(mid-windowNames/2, hi-windowNames))
		names := window[:20*min(windowNames, hi-from)]
		if _, err := f.ReadAt(names, int64(indexHead+20*from)); err != nil {
			return 0, false, fmt.Errorf("read %s.idx: %w", p.path, err)
		}
		first, last := names[:20], names[len(names)-20:]
		switch {
		case bytes.Compare(h[:], first) < 0:
			hi, above = from, nameHead(first)
		case bytes.Compare(h[:], last) > 0:
			lo, below = from+len(names)/20, nameHead(last)
		default:
			i, ok := searchNames(names, h)
			if !ok {
				return 0, false, nil
			}
			off, err := p.offsetAt(f, from+i)
			return off, err == nil, err
		}
	}
	return 0, false, nil
}

// offsetAt is offset in an index that is read where it is asked.
func (p *pack) offsetAt(f io.ReaderAt, i int) (int64, error) {
	var b [8]byte
	if _, err := f.ReadAt(b[:4], int64(indexHead+24*p.n+4*i)); err != nil {
		return 0, fmt.Errorf("read %s.idx: %w", p.path, err)
	}
	off := binary.BigEndian.Uint32(b[:])
	if off&(1<<31) == 0 {
		return int64(off), nil
	}
	_, err := f.ReadAt(b[:], int64(indexHead+28*p.n+8*int(off&^(1<<31))))
	if err != nil {
		return 0, nil // beyond the table; see offset
	}
	return int64(binary.BigEndian.Uint64(b[:])), nil
}

// mapFrom is how many lookups make it pay to map a large index: as many pages of it
// then count as the process' memory as the mapping has, until release.
const mapFrom = 1 << 12

// withIndex gives a large index: open, or mapped when it was asked very often, and
// holds it so while use reads it. An index is never changed in place.
func (p *pack) withIndex(use func(f io.ReaderAt, mapped []byte) error) error {
	p.mu.RLock()
	if p.mapped != nil || p.idxFile != nil && p.asked.Add(1) < mapFrom {
		defer p.mu.RUnlock()
		return use(p.idxFile, p.mapped)
	}
	p.mu.RUnlock()
	f, err := disk.Open(p.path + ".idx")
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock() // use is quick
	switch {
	case p.mapped != nil:
	case p.asked.Load() >= mapFrom:
		if err := p.mapIndex(f); err != nil {
			return errors.Join(err, f.Close())
		}
	case p.idxFile == nil && p.use.Load() != 0: // one of those that are kept open
		p.idxFile = f
		return use(f, nil)
	}
	return errors.Join(use(f, p.mapped), f.Close())
}

func (p *pack) mapIndex(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < int64(indexHead+p.n*28+indexTrailer) {
		return fmt.Errorf("%w: index %s: too short", errCorrupt, p.path)
	}
	if p.mapped, err = unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("map %s.idx: %w", p.path, err)
	}
	return nil
}

// release ends a mapping.
func (p *pack) release() {
	p.asked.Store(0)
	p.mu.RLock()
	mapped := p.mapped != nil
	p.mu.RUnlock()
	if !mapped {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mapped != nil {
		unix.Munmap(p.mapped) //nolint:errcheck // mapped by us
		p.mapped = nil
	}
}
