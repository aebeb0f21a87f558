package odb

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// Pairs say which object took the place of which: 16 bytes each, the head of the new
// one's name and of the old one's. A head that fits another object as well costs a
// difference nobody needs: the written difference is applied and compared.
type Pairs []byte

// PairLen is the length of one pair.
const PairLen = 16

// AppendPair adds a pair.
func AppendPair(dst []byte, fresh, old Hash) []byte {
	return append(append(dst, fresh[:8]...), old[:8]...)
}

// Differences make Join store a blob or a tree as the difference from the one it
// replaced, where that one comes before it in the joined pack, and a commit as the
// difference from the one before. The newest versions stay whole: they are read most, and a
// long chain takes ten times as long.
type Differences struct {
	Pairs Pairs
	Read  func(Hash, Type) ([]byte, error) // an object's bytes
}

// shrinker is the state of one Join with Differences.
type shrinker struct {
	from     *Differences
	replaced []replacement // in the order of the new names
	olds     []uint64      // sorted
	recent   *cache[Hash]  // blobs that the next are likely to replace
	commit   []byte        // the one before, if it is known, which stands at
	at       place
	begun    bool // there is one before
	z        *deflater
	delta    []byte
	out      []byte
}

// replacement is a pair, of the heads of names.
type replacement struct{ fresh, old uint64 }

const (
	recentBlobs  = 64 << 20
	maxRewritten = 8  // differences of commits upon one another: git log reads them all
	maxShrunk    = 12 // … of others, on top of those a pack came with: with 50 a store takes 4 % less room, and twice as long to be read
)

func newShrinker(d *Differences) *shrinker {
	n := len(d.Pairs) / PairLen
	s := &shrinker{from: d, recent: newCache[Hash](recentBlobs), z: deflaters.Get().(*deflater),
		replaced: make([]replacement, n), olds: make([]uint64, n)}
	for i := range s.replaced {
		pair := d.Pairs[PairLen*i:][:PairLen]
		s.replaced[i] = replacement{nameHead(pair), nameHead(pair[8:])}
		s.olds[i] = s.replaced[i].old
	}
	slices.SortFunc(s.replaced, func(a, b replacement) int { return cmp.Compare(a.fresh, b.fresh) })
	slices.Sort(s.olds)
	return s
}

func nameHead(name []byte) uint64 { return binary.BigEndian.Uint64(name) }

func (s *shrinker) close() { deflaters.Put(s.z) }

// replacedBy gives the version that an object replaced, when a newer one has replaced the
// object since.
func (s *shrinker) replacedBy(name []byte) (old uint64, ok bool) {
	head := nameHead(name)
	if _, was := slices.BinarySearch(s.olds, head); !was {
		return 0, false
	}
	n, ok := slices.BinarySearchFunc(s.replaced, head, func(r replacement, head uint64) int { return cmp.Compare(r.fresh, head) })
	if !ok {
		return 0, false
	}
	return s.replaced[n].old, true
}

func (s *shrinker) read(h Hash, t Type) ([]byte, error) {
	if _, data, ok := s.recent.find(h); ok {
		return data, nil
	}
	return s.from.Read(h, t)
}

// shrink gives the entry in j.buf, a whole object whose bytes begin at n, as a
// difference, when there is one that is smaller. ok false: it is to be copied as it
// is.
func (j *joiner) shrink(p *joinPack, i uint32, t Type, size, n int) (entry []byte, base place, ok bool, err error) {
	fresh, err := inflate(j.buf[n:], size, nil)
	if err != nil {
		return nil, place{}, false, err
	}
	s := j.shrinker
	var before []byte
	switch t {
	case TypeCommit:
		before, base, ok = j.lastCommit()
		s.commit, s.at, s.begun = fresh, place{p.number, i}, true
	case TypeBlob:
		s.recent.put(Hash(p.name(i)), TypeBlob, fresh)
		before, base, ok = j.before(p.name(i), t)
	default:
		before, base, ok = j.before(p.name(i), t)
	}
	if ok {
		entry, ok, err = j.difference(before, fresh, t, base)
	}
	return entry, base, ok, err
}

// lastCommit gives the commit before, unless it is the last of a long chain.
func (j *joiner) lastCommit() (data []byte, at place, ok bool) {
	s := j.shrinker
	if !s.begun || j.packs[s.at.pack].depth[s.at.at] >= maxRewritten {
		return nil, place{}, false
	}
	if s.commit != nil {
		return s.commit, s.at, true
	}
	data, err := s.from.Read(Hash(j.name(s.at)), TypeCommit)
	return data, s.at, err == nil
}

// follow notes that the entry copied to at is a difference from base: a commit, if
// that is one.
func (s *shrinker) follow(base, at place) {
	if s != nil && s.begun && base == s.at {
		s.commit, s.at = nil, at
	}
}

// before gives the version that the object of this name replaced, when that version stands
// in the joined pack already.
func (j *joiner) before(name []byte, t Type) (data []byte, base place, ok bool) {
	old, ok := j.shrinker.replacedBy(name)
	if !ok {
		return nil, place{}, false
	}
	if base, ok = j.find(old); !ok || j.copied(base) == 0 || j.packs[base.pack].depth[base.at] >= maxShrunk {
		return nil, place{}, false
	}
	data, err := j.shrinker.read(Hash(j.name(base)), t)
	return data, base, err == nil // another type, or rotten: what reads that one says so
}

// difference gives the entry that makes fresh of before, which stands at base.
func (j *joiner) difference(before, fresh []byte, t Type, base place) (entry []byte, ok bool, err error) {
	s := j.shrinker
	if t == TypeTree {
		s.delta = appendDelta(s.delta[:0], before, fresh)
	} else {
		s.delta = appendLineDelta(s.delta[:0], before, fresh)
	}
	if again, err := applyDelta(before, s.delta); err != nil || !bytes.Equal(again, fresh) {
		return nil, false, err // never: but what is whole can only be lost here
	}
	s.out = appendEntryHeader(s.out[:0], typeOfsDelta, len(s.delta))
	s.out = appendOffset(s.out, uint64(j.off)-uint64(j.copied(base)))
	if t == TypeTree { // hardly anything but a name, which is as good as random
		s.out = appendStored(s.out, s.delta)
	} else {
		s.out = s.z.append(s.out, s.delta)
	}
	return s.out, len(s.out) < len(j.buf), nil
}

// find gives the place of the object of the joined pack whose name begins so.
func (j *joiner) find(head uint64) (place, bool) {
	n, ok := slices.BinarySearchFunc(j.names, head, func(r place, head uint64) int { return cmp.Compare(nameHead(j.name(r)), head) })
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
