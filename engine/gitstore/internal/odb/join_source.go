package odb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"bagpipe/layout/disk"
)

// joinPack is one of the packs to be joined. Its slices go by the place of a name
// in the index.
type joinPack struct {
	*pack
	number uint32
	first  map[uint32]place // objects that an earlier pack holds: where

	order []uint64 // offset<<32 | place, in the order of the pack; while it is copied
	to    []uint32 // where the entry stands in the joined pack; 0: not copied; nil: none is
	crc   []uint32 // its checksum there
	depth []uint8  // how many differences it is the last of
}

func openJoinPack(path string) (_ *joinPack, err error) {
	opened, err := openPack(path, 0)
	if err != nil {
		return nil, err
	}
	p := &joinPack{pack: opened, first: map[uint32]place{}}
	if err := p.open(); err != nil {
		return nil, err
	}
	if !hasChecksum(p.bytes(), p.mapped) {
		return nil, errors.Join(fmt.Errorf("%w: index %s: wrong checksum", errCorrupt, path), p.close())
	}
	return p, nil
}

// open maps a large index.
func (p *joinPack) open() (err error) {
	if p.index != nil {
		return nil
	}
	f, err := disk.Open(p.path + ".idx")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return p.mapIndex(f)
}

func (p *joinPack) rest() { giveBack(p.mapped) }

// begin readies a pack for copying.
func (p *joinPack) begin() error {
	p.order, p.to, p.crc, p.depth = make([]uint64, p.n), make([]uint32, p.n), make([]uint32, p.n), make([]uint8, p.n)
	index := p.bytes()
	for i := range p.order {
		at := p.offset(index, i)
		if at < 0 || at > MaxJoined {
			return fmt.Errorf("%w: an entry at %d", errCorrupt, at)
		}
		p.order[i] = uint64(at)<<32 | uint64(i)
	}
	slices.Sort(p.order)
	return nil
}

// bytes is the index; nobody else uses this pack, so no lock is needed.
func (p *joinPack) bytes() []byte {
	if p.index != nil {
		return p.index
	}
	return p.mapped
}

func (p *joinPack) name(i uint32) []byte {
	return p.bytes()[indexHead+20*int(i):][:20]
}

func (p *joinPack) checksum(i uint32) uint32 {
	return binary.BigEndian.Uint32(p.bytes()[indexHead+20*p.n+4*int(i):])
}
