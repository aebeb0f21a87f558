package odb

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"slices"
	"sync"
)

const (
	packHeaderLen = 12
	maxChain      = 50
)

// entry is one object of the pack being built.
type entry struct {
	name Hash
	crc  uint32
	off  uint32 // packs a Builder makes are far below 2 GiB: see Size
}

// Builder collects the objects of one pack in memory. It belongs to one
// goroutine. Reset makes it ready for the next pack, keeping its memory.
type Builder struct {
	h       *hasher
	buf     []byte // header, commits and trees; Finish appends the blobs
	scratch []byte
	entries []entry
	blobs   []Blob
	seen    map[Hash]int // place in blobs, from 1; notBlob of other objects
	pending int          // bytes of blobs not yet in buf
	parts   []part
	index   []byte
}

const notBlob = -1

// Blob is a blob of the pack being built. Its data must not be changed.
type Blob struct {
	Name  Hash
	Data  []byte
	base  int // place in the builder's blobs, from 1, of the version before; 0: not in this pack
	chain int // versions below it that are in this pack
}

// Blobs are the blobs collected since Reset.
func (b *Builder) Blobs() []Blob { return b.blobs }

// NewBuilder gives an empty Builder.
func NewBuilder() *Builder {
	b := &Builder{h: newHasher(), seen: map[Hash]int{}}
	b.Reset()
	return b
}

// Reset forgets everything collected.
func (b *Builder) Reset() {
	b.buf = append(b.buf[:0], "PACK\x00\x00\x00\x02\x00\x00\x00\x00"...)
	b.entries = b.entries[:0]
	clear(b.blobs)
	b.blobs = b.blobs[:0]
	b.pending = 0
	if len(b.seen) > 1<<16 {
		b.seen = map[Hash]int{} // to clear a large map takes long, whatever is in it
	}
	clear(b.seen)
}

// add reports whether the pack has no object of that name yet.
func (b *Builder) add(name Hash) bool {
	if b.seen[name] != 0 {
		return false
	}
	b.seen[name] = notBlob
	return true
}

// Len is the number of objects collected.
func (b *Builder) Len() int { return len(b.entries) + len(b.blobs) }

// Size is about the bytes the pack will have, before blobs are deflated.
func (b *Builder) Size() int { return len(b.buf) + b.pending }

// AddBlob collects a blob. The data must not change until Finish. old names the version
// before, which may be zero or anywhere; in this pack it serves as the base of a difference.
func (b *Builder) AddBlob(data []byte, old Hash) Hash {
	name := b.h.name(TypeBlob, data)
	if !b.add(name) {
		return name
	}
	blob := Blob{Name: name, Data: data}
	if base := b.seen[old]; base > 0 && b.blobs[base-1].chain < maxChain {
		blob.base, blob.chain = base, b.blobs[base-1].chain+1
	}
	b.blobs = append(b.blobs, blob)
	b.seen[name] = len(b.blobs)
	b.pending += len(data)
	return name
}

// AddCommit collects a commit; the data may be reused.
func (b *Builder) AddCommit(data []byte) Hash {
	name := b.h.name(TypeCommit, data)
	if b.add(name) {
		b.addStored(name, TypeCommit, data)
	}
	return name
}

// Placed says where in the pack being built a tree's last version stands.
type Placed struct {
	off   uint32 // 0: not in this pack
	chain uint8  // deltas below it
}

// Whole reports whether the version is no difference from another.
func (p Placed) Whole() bool { return p.off != 0 && p.chain == 0 }

// AddTree collects a tree whose version before, old, stands at p (which may be
// the zero Placed). It gives the tree's name and where it stands now.
func (b *Builder) AddTree(data, old []byte, p Placed) (Hash, Placed) {
	name := b.h.name(TypeTree, data)
	if !b.add(name) {
		return name, Placed{} // it stands further up; where does not matter
	}
	if p.off != 0 && p.chain < maxChain {
		b.scratch = appendDelta(b.scratch[:0], old, data)
		if len(b.scratch) < len(data) {
			return name, b.addDelta(name, p)
		}
	}
	return name, Placed{off: b.addStored(name, TypeTree, data)}
}

func (b *Builder) addStored(name Hash, t Type, data []byte) uint32 {
	at := len(b.buf)
	b.buf = appendEntryHeader(b.buf, t, len(data))
	b.buf = appendStored(b.buf, data)
	return b.close(name, at)
}

func (b *Builder) addDelta(name Hash, base Placed) Placed {
	at := len(b.buf)
	b.buf = appendEntryHeader(b.buf, typeOfsDelta, len(b.scratch))
	b.buf = appendOffset(b.buf, uint64(at)-uint64(base.off))
	b.buf = appendStored(b.buf, b.scratch)
	return Placed{off: b.close(name, at), chain: base.chain + 1}
}

func (b *Builder) close(name Hash, at int) uint32 {
	b.entries = append(b.entries, entry{name, crc32.ChecksumIEEE(b.buf[at:]), uint32(at)})
	return uint32(at)
}

// appendEntryHeader writes an entry's type and size: 4 bits of the size in the
// first byte, 7 in each that follows, lowest first.
func appendEntryHeader(dst []byte, t Type, size int) []byte {
	c := byte(t)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		dst = append(dst, c|0x80)
		c = byte(size & 0x7f)
	}
	return append(dst, c)
}

// appendOffset writes how far back a delta's base stands: 7 bits a byte,
// highest first, one added at each step (so that no number has two spellings).
func appendOffset(dst []byte, n uint64) []byte {
	var tmp [10]byte
	i := len(tmp) - 1
	tmp[i] = byte(n & 0x7f)
	for n >>= 7; n > 0; n >>= 7 {
		n--
		i--
		tmp[i] = 0x80 | byte(n&0x7f)
	}
	return append(dst, tmp[i:]...)
}

// Finish gives the bytes of the pack and of its index, and the pack's own name
// (the checksum at its end). They are valid until Reset.
func (b *Builder) Finish() (pack, index []byte, name Hash) {
	b.deflateBlobs()
	binary.BigEndian.PutUint32(b.buf[8:], uint32(len(b.entries)))
	name = sha1.Sum(b.buf)
	b.buf = append(b.buf, name[:]...)
	b.index = appendIndex(b.index[:0], b.entries, name)
	return b.buf, b.index, name
}

// minShare is the number of blobs from which a second goroutine pays.
const minShare = 64

// deflateBlobs appends the blobs, deflated side by side when there are many.
func (b *Builder) deflateBlobs() {
	shares := max(1, min(runtime.GOMAXPROCS(0), len(b.blobs)/minShare))
	if len(b.parts) < shares {
		b.parts = make([]part, shares)
	}
	parts := b.parts[:shares]
	var wg sync.WaitGroup
	for i := range parts {
		from, to := len(b.blobs)*i/shares, len(b.blobs)*(i+1)/shares
		if i == shares-1 {
			parts[i].deflate(b.blobs, from, to)
			continue
		}
		wg.Go(func() { parts[i].deflate(b.blobs, from, to) })
	}
	wg.Wait()
	for i := range parts {
		shift := uint32(len(b.buf))
		for _, e := range parts[i].entries {
			e.off += shift
			b.entries = append(b.entries, e)
		}
		b.buf = append(b.buf, parts[i].buf...)
	}
}

type part struct {
	buf     []byte
	delta   []byte
	entries []entry
	full    map[int]int // the place in entries of the blob of a length that was written in full last
}

// smallDelta is the part of a blob up to which a difference is written for it: a step changes
// little of a record, and a description of an item all of it.
const smallDelta = 8

// smallAligned is that part where the other blob is another file's. What deflates well, like many lines alike, is
// shorter deflated than as a difference in each of its lines.
const smallAligned = 5

// deflate writes the blobs between two places. A version before in another part is where this
// part cannot know how far away it stands: then the blob is written in full.
func (p *part) deflate(blobs []Blob, from, to int) {
	d := deflaters.Get().(*deflater)
	defer deflaters.Put(d)
	p.buf, p.entries = p.buf[:0], p.entries[:0]
	p.full = map[int]int{}
	for i, bl := range blobs[from:to] {
		at := len(p.buf)
		if base, ok := p.differs(blobs[from:to], bl, from); ok {
			p.buf = appendEntryHeader(p.buf, typeOfsDelta, len(p.delta))
			p.buf = appendOffset(p.buf, uint64(at)-uint64(p.entries[base].off))
			p.buf = d.append(p.buf, p.delta)
		} else {
			p.full[len(bl.Data)] = i
			p.buf = appendEntryHeader(p.buf, TypeBlob, len(bl.Data))
			p.buf = d.append(p.buf, bl.Data)
		}
		p.entries = append(p.entries, entry{bl.Name, crc32.ChecksumIEEE(p.buf[at:]), uint32(at)})
	}
}

// differs finds a blob of the part, which begins at a place of all blobs, from which another differs little:
// the version before, or one that is as long. It leaves the difference in p.delta.
func (p *part) differs(part []Blob, bl Blob, from int) (base int, ok bool) {
	if bl.base > from {
		base = bl.base - 1 - from
		p.delta = appendDelta(p.delta[:0], part[base].Data, bl.Data)
		return base, len(p.delta) < len(bl.Data)/smallDelta
	}
	if base, ok = p.full[len(bl.Data)]; ok {
		p.delta, ok = appendAligned(p.delta[:0], part[base].Data, bl.Data, len(bl.Data)/smallAligned)
	}
	return base, ok
}

// appendIndex gives an index of version 2. It sorts the entries.
func appendIndex(out []byte, entries []entry, pack Hash) []byte {
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.name[:], b.name[:]) })
	const perObject = 20 + 4 + 4
	out = slices.Grow(out, 8+1024+len(entries)*perObject+40)
	out = append(out, "\xfftOc\x00\x00\x00\x02"...)
	n := 0
	for first := range 256 {
		for n < len(entries) && int(entries[n].name[0]) <= first {
			n++
		}
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	for i := range entries {
		out = append(out, entries[i].name[:]...)
	}
	for i := range entries {
		out = binary.BigEndian.AppendUint32(out, entries[i].crc)
	}
	for i := range entries {
		out = binary.BigEndian.AppendUint32(out, entries[i].off)
	}
	out = append(out, pack[:]...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}
