package odb

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

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
	err = p.withIndex(func(index []byte) error {
		var i int
		if i, ok = searchNames(index[indexHead+20*lo:indexHead+20*hi], h); ok {
			off = p.offset(index, lo+i)
		}
		return nil
	})
	return off, ok && err == nil, err
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

// withIndex gives the bytes of the index, which it maps when it is large and not
// mapped, and holds the mapping while use reads it. An index is never changed in
// place.
func (p *pack) withIndex(use func([]byte) error) error {
	if p.index != nil {
		return use(p.index)
	}
	p.mu.RLock()
	if p.mapped != nil {
		defer p.mu.RUnlock()
		return use(p.mapped)
	}
	p.mu.RUnlock()
	p.mu.Lock()
	defer p.mu.Unlock() // use is quick
	if p.mapped == nil {
		if err := p.mapAgain(); err != nil {
			return err
		}
	}
	return use(p.mapped)
}

func (p *pack) mapAgain() (err error) {
	f, err := os.Open(p.path + ".idx")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < int64(indexHead+p.n*28+indexTrailer) {
		return fmt.Errorf("%w: index %s: too short", errCorrupt, p.path)
	}
	return p.mapIndex(f, info.Size())
}

func (p *pack) mapIndex(f *os.File, size int64) (err error) {
	if p.mapped, err = unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("map %s.idx: %w", p.path, err)
	}
	return nil
}
