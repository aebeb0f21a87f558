package odb

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// Pairs say which blob took the place of which: 40 bytes each, the new one's name
// and the old one's.
type Pairs []byte

// PairLen is the length of one pair.
const PairLen = 40

// AppendPair adds a pair.
func AppendPair(dst []byte, fresh, old Hash) []byte {
	return append(append(dst, fresh[:]...), old[:]...)
}

// Differences make Join store a blob as the difference from the one it replaced,
// where that one comes before it in the joined pack. What nothing has replaced yet
// stays whole: it is what is read most, and a long chain takes ten times as long.
type Differences struct {
	Pairs Pairs
	Read  func(Hash) ([]byte, error) // a blob's bytes
}

// shrinker is the state of one Join with Differences.
type shrinker struct {
	from   *Differences
	order  []uint32     // the pairs, in the order of their new names
	olds   []uint32     // … of their old names
	recent *cache[Hash] // blobs that the next are likely to replace
	z      *deflater
	delta  []byte
	out    []byte
}

const recentBlobs = 64 << 20

func newShrinker(d *Differences) *shrinker {
	s := &shrinker{from: d, recent: newCache[Hash](recentBlobs), z: deflaters.Get().(*deflater)}
	s.order, s.olds = sortPairs(d.Pairs, 0), sortPairs(d.Pairs, 20)
	return s
}

// sortPairs gives the pairs in the order of the names that begin at a byte of each.
func sortPairs(p Pairs, at int) []uint32 {
	order := make([]uint32, len(p)/PairLen)
	for i := range order {
		order[i] = uint32(i)
	}
	name := func(i uint32) []byte { return p[PairLen*int(i)+at:][:20] }
	slices.SortFunc(order, func(a, b uint32) int { return bytes.Compare(name(a), name(b)) })
	return order
}

func (s *shrinker) close() { deflaters.Put(s.z) }

// replacedBy gives what a blob took the place of, when another took its own since.
func (s *shrinker) replacedBy(name []byte) (old Hash, ok bool) {
	p := s.from.Pairs
	search := func(order []uint32, at int) (int, bool) {
		return slices.BinarySearchFunc(order, name, func(i uint32, name []byte) int {
			return bytes.Compare(p[PairLen*int(i)+at:][:20], name)
		})
	}
	if _, was := search(s.olds, 20); !was {
		return Hash{}, false
	}
	n, ok := search(s.order, 0)
	if !ok {
		return Hash{}, false
	}
	return Hash(p[PairLen*int(s.order[n])+20:][:20]), true
}

func (s *shrinker) read(h Hash) ([]byte, error) {
	if _, data, ok := s.recent.find(h); ok {
		return data, nil
	}
	return s.from.Read(h)
}

// shrink gives the entry in j.buf, a whole blob whose bytes begin at n, as a
// difference, when the blob it replaced stands in the joined pack already and the
// difference is smaller. ok false: it is to be copied as it is.
func (j *joiner) shrink(p *joinPack, i uint32, size, n int) (entry []byte, base place, ok bool, err error) {
	s := j.shrinker
	fresh, err := inflate(j.buf[n:], size, nil)
	if err != nil {
		return nil, place{}, false, err
	}
	s.recent.put(Hash(p.name(i)), TypeBlob, fresh)
	old, ok := s.replacedBy(p.name(i))
	if !ok {
		return nil, place{}, false, nil
	}
	base, ok = j.find(old)
	if !ok || j.packs[base.pack].to[base.at] == 0 || j.packs[base.pack].depth[base.at] >= maxChain {
		return nil, place{}, false, nil
	}
	before, err := s.read(old)
	if err != nil { // no blob, or rotten: what reads that one says so
		return nil, place{}, false, nil
	}
	s.delta = appendLineDelta(s.delta[:0], before, fresh)
	if again, err := applyDelta(before, s.delta); err != nil || !bytes.Equal(again, fresh) {
		return nil, place{}, false, err // never: but what is whole can only be lost here
	}
	s.out = appendEntryHeader(s.out[:0], typeOfsDelta, len(s.delta))
	s.out = appendOffset(s.out, uint64(j.off)-uint64(j.packs[base.pack].to[base.at]))
	s.out = s.z.append(s.out, s.delta)
	return s.out, base, len(s.out) < len(j.buf), nil
}

// find gives the place of an object of the joined pack.
func (j *joiner) find(h Hash) (place, bool) {
	n, ok := slices.BinarySearchFunc(j.names, h, func(r place, h Hash) int { return bytes.Compare(j.name(r), h[:]) })
	if !ok {
		return place{}, false
	}
	return j.names[n], true
}

// appendLineDelta appends the delta that turns old into new, line by line: JSON
// with one key a line changes in few of them. Lines are looked for anywhere in
// what lies between the common head and tail.
func appendLineDelta(dst, old, fresh []byte) []byte {
	head := commonPrefix(old, fresh)
	tail := commonSuffix(old[head:], fresh[head:])
	dst = binary.AppendUvarint(dst, uint64(len(old)))
	dst = binary.AppendUvarint(dst, uint64(len(fresh)))
	dst = appendCopy(dst, 0, head)
	at := map[uint32]int{} // lines of the old middle, by their checksum: the first of each
	for off := head; off < len(old)-tail; {
		line := firstLine(old[off : len(old)-tail])
		if sum := crc32.ChecksumIEEE(line); len(line) > minCopy {
			if _, there := at[sum]; !there {
				at[sum] = off
			}
		}
		off += len(line)
	}
	var plain []byte // lines that are new
	for mid := fresh[head : len(fresh)-tail]; len(mid) > 0; {
		line := firstLine(mid)
		off, there := at[crc32.ChecksumIEEE(line)]
		if n := commonPrefix(old[min(off, len(old)):], mid); there && n >= len(line) {
			dst = appendInsert(dst, plain)
			plain = plain[:0]
			dst = appendCopy(dst, off, n)
			mid = mid[n:]
			continue
		}
		plain = append(plain, line...)
		mid = mid[len(line):]
	}
	dst = appendInsert(dst, plain)
	return appendCopy(dst, len(old)-tail, tail)
}

const minCopy = 8 // bytes of a line worth a copy instruction

func firstLine(b []byte) []byte {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i+1]
	}
	return b
}
