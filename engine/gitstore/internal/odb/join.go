package odb

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"

	"bagpipe/layout/disk"
)

// MaxJoined bounds a joined pack: its offsets fit 31 bits, and joining takes some
// 17 bytes of memory for each of its objects, about 80 MB at most.
const MaxJoined = 1 << 30

// Join writes one pack of the objects of several, which are named by their paths
// without .pack, and its index. Entries are copied as they stand, deltas included:
// only the distance to a delta's base is written anew, since an object that several
// packs hold is copied once; and, with d, objects become differences. Every entry is
// compared with its checksum on the way, so that a rotten pack is not copied over: a
// *RottenError names it. It gives the new pack's name.
func Join(ctx context.Context, pack, index io.Writer, paths []string, d *Differences) (name Hash, err error) {
	j := &joiner{w: bufio.NewWriterSize(pack, 1<<20), sum: sha1.New()}
	if d != nil {
		j.shrinker = newShrinker(d)
		defer j.shrinker.close()
	}
	defer func() {
		for _, p := range j.packs {
			err = errors.Join(err, p.close())
		}
	}()
	for _, path := range paths {
		p, err := openJoinPack(path)
		if err != nil {
			return Hash{}, rotten(path, err)
		}
		p.number = uint32(len(j.packs))
		j.packs = append(j.packs, p)
	}
	j.sortNames()
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(j.names)))
	if err := j.write(head); err != nil {
		return Hash{}, err
	}
	for _, p := range j.packs {
		if err := j.copy(ctx, p); err != nil {
			return Hash{}, rotten(p.path, err)
		}
	}
	name = Hash(j.sum.Sum(nil))
	if _, err := j.w.Write(name[:]); err != nil {
		return Hash{}, err
	}
	if err := j.w.Flush(); err != nil {
		return Hash{}, err
	}
	return name, j.writeIndex(index, name)
}

// RottenError names a pack that cannot be joined, since it is not as it was written.
type RottenError struct {
	Path string // without .pack
	Err  error
}

func (e *RottenError) Error() string { return fmt.Sprintf("join %s: %v", e.Path, e.Err) }
func (e *RottenError) Unwrap() error { return e.Err }

func rotten(path string, err error) error {
	if errors.Is(err, errCorrupt) {
		return &RottenError{path, err}
	}
	return fmt.Errorf("join %s: %w", path, err)
}

// joiner is the pack being written.
type joiner struct {
	packs []*joinPack
	names []place // every object once, in the order of names
	w     *bufio.Writer
	sum   hash.Hash
	off   int64
	buf   []byte
	head  []byte
	in    *bufio.Reader // one for all packs: there may be thousands

	shrinker *shrinker // nil: entries are copied as they stand
}

// place is an object's place in one of the packs: which pack, and which name of
// its index.
type place struct{ pack, at uint32 }

// copied gives where an object stands in the joined pack; 0: not yet.
func (j *joiner) copied(r place) uint32 {
	if to := j.packs[r.pack].to; to != nil {
		return to[r.at]
	}
	return 0
}

// sortNames lists every object once; one that several packs hold is taken from
// the first. The packs' indexes are in the order of names, so one first byte after
// the other is sorted.
func (j *joiner) sortNames() {
	total := 0
	for _, p := range j.packs {
		total += p.n
	}
	j.names = make([]place, 0, total)
	type named struct {
		head uint64 // of the name: hardly ever two alike
		place
	}
	var some []named
	for first := range 256 {
		some = some[:0]
		for k, p := range j.packs {
			lo := uint32(0)
			if first > 0 {
				lo = p.fanout[first-1]
			}
			for i := lo; i < p.fanout[first]; i++ {
				some = append(some, named{nameHead(p.name(i)), place{uint32(k), i}})
			}
		}
		slices.SortFunc(some, func(a, b named) int {
			if c := cmp.Compare(a.head, b.head); c != 0 {
				return c
			}
			return cmp.Or(bytes.Compare(j.name(a.place), j.name(b.place)), int(a.pack)-int(b.pack))
		})
		from := len(j.names)
		for _, r := range some {
			if n := len(j.names); n > from && bytes.Equal(j.name(j.names[n-1]), j.name(r.place)) {
				j.packs[r.pack].first[r.at] = j.names[n-1]
				continue
			}
			j.names = append(j.names, r.place)
		}
		if first%16 == 15 {
			j.rest()
		}
	}
}

const restEvery = 1 << 16 // objects

func (j *joiner) rest() {
	for _, p := range j.packs {
		p.rest()
	}
}

func (j *joiner) name(r place) []byte { return j.packs[r.pack].name(r.at) }

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
	if err := p.begin(); err != nil {
		return err
	}
	defer func() { p.order = nil }()
	f, err := disk.Open(p.path + ".pack")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if j.in == nil {
		j.in = bufio.NewReaderSize(nil, 1<<20)
	}
	r := j.in
	r.Reset(io.NewSectionReader(f, packHeaderLen, info.Size()-packHeaderLen-20))
	at := int64(packHeaderLen)
	for n, o := range p.order {
		i, end := uint32(o), info.Size()-20
		if n+1 < len(p.order) {
			end = int64(p.order[n+1] >> 32)
		}
		if int64(o>>32) != at || end <= at {
			return fmt.Errorf("%w: entries do not follow each other at %d", errCorrupt, at)
		}
		j.buf = slices.Grow(j.buf[:0], int(end-at))[:end-at]
		if _, err := io.ReadFull(r, j.buf); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%w: it ends at %d", errCorrupt, info.Size())
		} else if err != nil {
			return err
		}
		if crc32.ChecksumIEEE(j.buf) != p.checksum(i) {
			return fmt.Errorf("%w: %x: wrong checksum", errCorrupt, p.name(i))
		}
		at = end
		if _, again := p.first[i]; !again {
			if err := j.copyEntry(p, i, int64(o>>32)); err != nil {
				return err
			}
		}
		if n%restEvery == 0 {
			if p.rest(); ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}

// copyEntry copies the entry in buf, which stands at an offset of p.
func (j *joiner) copyEntry(p *joinPack, i uint32, at int64) error {
	r, size, n, err := parseEntryHeader(j.buf, at)
	if err != nil {
		return err
	}
	start := uint32(j.off)
	p.crc[i] = p.checksum(i)
	switch {
	case r.t == typeOfsDelta:
		base, err := j.moved(p, r.base)
		if err != nil {
			return fmt.Errorf("%x: %w", p.name(i), err)
		}
		p.depth[i] = j.deeper(base)
		j.shrinker.follow(base, place{p.number, i})
		j.head = appendEntryHeader(j.head[:0], typeOfsDelta, size)
		j.head = appendOffset(j.head, uint64(start)-uint64(j.copied(base)))
		p.crc[i] = crc32.Update(crc32.ChecksumIEEE(j.head), crc32.IEEETable, j.buf[n:])
		if err := j.write(j.head); err != nil {
			return err
		}
		j.buf = j.buf[n:]
	case r.t == typeRefDelta:
		p.depth[i] = maxChain // how many it is the last of is not known
	case j.shrinker != nil && r.t != TypeTag:
		entry, base, ok, err := j.shrink(p, i, r.t, size, n)
		if err != nil {
			return fmt.Errorf("%x: %w", p.name(i), err)
		}
		if ok {
			p.crc[i], p.depth[i], p.to[i] = crc32.ChecksumIEEE(entry), j.deeper(base), start
			return j.write(entry)
		}
	}
	p.to[i] = start
	return j.write(j.buf)
}

func (j *joiner) deeper(base place) uint8 {
	return min(j.packs[base.pack].depth[base.at], 254) + 1
}

// moved gives the place whose entry the joined pack has for the one at an offset
// of p.
func (j *joiner) moved(p *joinPack, off int64) (place, error) {
	n, _ := slices.BinarySearch(p.order, uint64(off)<<32)
	if n == len(p.order) || int64(p.order[n]>>32) != off {
		return place{}, fmt.Errorf("%w: no base at %d", errCorrupt, off)
	}
	r := place{p.number, uint32(p.order[n])}
	if earlier, again := p.first[r.at]; again {
		r = earlier
	}
	if j.copied(r) == 0 {
		return place{}, fmt.Errorf("%w: its base was not copied before it", errCorrupt)
	}
	return r, nil
}

// writeIndex writes an index of version 2.
func (j *joiner) writeIndex(to io.Writer, pack Hash) error {
	sum := sha1.New()
	w := bufio.NewWriterSize(io.MultiWriter(to, sum), 1<<18)
	number := func(n uint32) {
		w.Write(binary.BigEndian.AppendUint32(w.AvailableBuffer(), n)) //nolint:errcheck // Flush says it
	}
	w.WriteString("\xfftOc\x00\x00\x00\x02") //nolint:errcheck // as above
	n := 0
	for first := range 256 {
		for n < len(j.names) && int(j.name(j.names[n])[0]) <= first {
			n++
		}
		number(uint32(n))
	}
	for n, r := range j.names {
		w.Write(j.name(r)) //nolint:errcheck // as above
		if n%restEvery == 0 {
			j.rest()
		}
	}
	for _, r := range j.names {
		number(j.packs[r.pack].crc[r.at])
	}
	for _, r := range j.names {
		number(j.packs[r.pack].to[r.at])
	}
	w.Write(pack[:]) //nolint:errcheck // as above
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := to.Write(sum.Sum(nil))
	return err
}
