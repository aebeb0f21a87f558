package odb

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"slices"
)

// MaxJoined bounds a joined pack, so that its offsets fit 31 bits.
const MaxJoined = 1900 << 20

// Join writes one pack of the objects of several, which are named by their paths
// without .pack. Entries are copied as they stand, deltas included: only the
// distance to a delta's base is written anew, since an object that several packs
// hold is copied once. Every entry is compared with its checksum on the way, so
// that a rotten pack is not copied over. It gives the index and the new name.
func Join(ctx context.Context, w io.Writer, paths []string) (index []byte, name Hash, err error) {
	j := &joiner{w: bufio.NewWriterSize(w, 1<<20), sum: sha1.New(), at: map[Hash]uint32{}}
	var packs []*joinPack
	total := 0
	seen := map[Hash]bool{}
	for _, path := range paths {
		p, err := readJoinPack(path)
		if err != nil {
			return nil, Hash{}, err
		}
		for i := range p.entries {
			e := &p.entries[i]
			if e.again = seen[e.name]; !e.again {
				seen[e.name] = true
				total++
			}
		}
		packs = append(packs, p)
	}
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(total))
	if err := j.write(head); err != nil {
		return nil, Hash{}, err
	}
	for _, p := range packs {
		if err := j.copy(ctx, p); err != nil {
			return nil, Hash{}, fmt.Errorf("join %s: %w", p.path, err)
		}
	}
	name = Hash(j.sum.Sum(nil))
	if _, err := j.w.Write(name[:]); err != nil {
		return nil, Hash{}, err
	}
	return appendIndex(nil, j.entries, name), name, j.w.Flush()
}

// joinPack is a pack's index, in the order of the pack.
type joinPack struct {
	path    string
	entries []joinEntry
	byOff   map[int64]int
}

type joinEntry struct {
	name  Hash
	crc   uint32
	off   int64
	again bool // an earlier pack holds it
}

func readJoinPack(path string) (*joinPack, error) {
	index, err := os.ReadFile(path + ".idx")
	if err != nil {
		return nil, err
	}
	p := &pack{path: path}
	if err := p.setIndex(index, int64(len(index))); err != nil {
		return nil, err
	}
	if sha1.Sum(index[:len(index)-20]) != Hash(index[len(index)-20:]) {
		return nil, fmt.Errorf("%w: index %s: wrong checksum", errCorrupt, path)
	}
	jp := &joinPack{path: path, entries: make([]joinEntry, p.n), byOff: make(map[int64]int, p.n)}
	for i := range jp.entries {
		e := &jp.entries[i]
		e.name = Hash(index[indexHead+20*i:])
		e.crc = binary.BigEndian.Uint32(index[indexHead+20*p.n+4*i:])
		if e.off, err = p.offset(readerAt(index), i); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(jp.entries, func(a, b joinEntry) int { return int(a.off - b.off) })
	for i, e := range jp.entries {
		jp.byOff[e.off] = i
	}
	return jp, nil
}

type readerAt []byte

func (r readerAt) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(r)) {
		return 0, io.ErrUnexpectedEOF
	}
	if n := copy(b, r[off:]); n < len(b) {
		return n, io.ErrUnexpectedEOF
	}
	return len(b), nil
}

// joiner is the pack being written.
type joiner struct {
	w       *bufio.Writer
	sum     hash.Hash
	off     int64
	entries []entry
	at      map[Hash]uint32
	buf     []byte
	head    []byte
}

func (j *joiner) write(b []byte) error {
	j.sum.Write(b)
	j.off += int64(len(b))
	if j.off > 1<<31-1 {
		return errors.New("the joined pack is too large")
	}
	_, err := j.w.Write(b)
	return err
}

func (j *joiner) copy(ctx context.Context, p *joinPack) (err error) {
	f, err := os.Open(p.path + ".pack")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, packHeaderLen, info.Size()-packHeaderLen-20), 1<<20)
	at := int64(packHeaderLen)
	for i, e := range p.entries {
		end := info.Size() - 20
		if i+1 < len(p.entries) {
			end = p.entries[i+1].off
		}
		if e.off != at || end <= at {
			return fmt.Errorf("%w: entries do not follow each other at %d", errCorrupt, at)
		}
		j.buf = slices.Grow(j.buf[:0], int(end-at))[:end-at]
		if _, err := io.ReadFull(r, j.buf); err != nil {
			return err
		}
		if crc32.ChecksumIEEE(j.buf) != e.crc {
			return fmt.Errorf("%w: %s: wrong checksum", errCorrupt, e.name)
		}
		at = end
		if e.again {
			continue
		}
		if err := j.copyEntry(p, e); err != nil {
			return err
		}
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (j *joiner) copyEntry(p *joinPack, e joinEntry) error {
	r, size, n, err := parseEntryHeader(j.buf, e.off)
	if err != nil {
		return err
	}
	start := j.off
	crc := e.crc
	if r.t == typeOfsDelta {
		i, ok := p.byOff[r.base]
		if !ok {
			return fmt.Errorf("%w: %s: no base at %d", errCorrupt, e.name, r.base)
		}
		base, ok := j.at[p.entries[i].name]
		if !ok {
			return fmt.Errorf("%w: %s: its base was not copied before it", errCorrupt, e.name)
		}
		j.head = appendEntryHeader(j.head[:0], typeOfsDelta, size)
		j.head = appendOffset(j.head, uint64(start)-uint64(base))
		crc = crc32.Update(crc32.ChecksumIEEE(j.head), crc32.IEEETable, j.buf[n:])
		if err := j.write(j.head); err != nil {
			return err
		}
		j.buf = j.buf[n:]
	}
	if err := j.write(j.buf); err != nil {
		return err
	}
	j.entries = append(j.entries, entry{e.name, crc, uint32(start)})
	j.at[e.name] = uint32(start)
	return nil
}
