package odb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
)

// The rules are: a Scan reads the objects of neighbouring commits, of which most stand near
// one another in one pack, and most trees differ in one entry from one read just before. So
// packs are mapped, and an object is kept by its name and, as what the next is a difference
// from, by its place. What cannot be read so is left to ReadUncached, which names the fault.

// scanCacheBytes is what each of a Scan's two memories keeps: of some thousand commits.
const scanCacheBytes = 16 << 20

// Scan reads very many objects, such as those of consecutive commits. It is one goroutine's,
// and is of no use after its Bulk was closed.
type Scan struct {
	r       *Reader
	objects slotted[Hash]
	bases   slotted[Place]
	digests *Digests
	hash    *hasher
	scratch []byte // what is inflated at the moment
	block   block  // for trees and commits, which nobody keeps for long
	count   uint   // of entries that were read from packs
	end     int64  // where the entry ends that was read last
	ahead   ahead
	near    []*pack // that objects stood in lately, the last one first
}

// nearPacks is how many packs are asked before all are: those of a few histories that meet.
const nearPacks = 6

// locate gives where an object stands.
func (s *Scan) locate(h Hash) Place {
	for i, p := range s.near {
		if off, ok, err := p.find(h); err == nil && ok {
			copy(s.near[1:i+1], s.near[:i])
			s.near[0] = p
			return Place{p, off}
		}
	}
	at := s.r.b.Place(h)
	if at.p != nil {
		s.near = append([]*pack{at.p}, s.near[:min(len(s.near), nearPacks-1)]...)
	}
	return at
}

// Scan makes one; digests, if any, is told which objects have the bytes that their names say,
// and an object that has not is not given.
func (b *Bulk) Scan(digests *Digests) *Scan {
	return &Scan{r: b.Reader(), objects: newSlotted[Hash](scanCacheBytes), bases: newSlotted[Place](scanCacheBytes), digests: digests, hash: newHasher()}
}

// ErrDigest says that an object has not the bytes that its name says.
var ErrDigest = errors.New("the bytes do not fit the name")

// ReadAs gives an object that must have the type t. The bytes are shared: they must not be changed.
func (s *Scan) ReadAs(h Hash, t Type) ([]byte, error) { return s.read(h, t, false) }

// ReadNext is ReadAs of a commit or a blob that most likely stands behind the one that ReadNext gave before.
func (s *Scan) ReadNext(h Hash, t Type) ([]byte, error) { return s.read(h, t, s.ahead.on) }

func (s *Scan) read(h Hash, t Type, next bool) ([]byte, error) {
	found, data, ok := s.objects.find(h.bits(), h)
	if ok {
		return expect(h, t, found, data, nil)
	}
	if next {
		if found, data, ok = s.foreseen(h, t); ok {
			return expect(h, t, found, data, nil)
		}
	}
	at := s.locate(h)
	found, data, ok = s.at(at)
	if !ok {
		var err error
		if found, data, err = s.r.b.db.ReadUncached(h); err != nil {
			return nil, err
		}
	} else if next {
		s.ahead.from(at, t, s.end)
	}
	whole := s.digests != nil // what was noted, strict went over
	if whole && !s.digests.seen(at) {
		if s.hash.name(found, data) != h {
			return nil, fmt.Errorf("%s: %w", h, ErrDigest)
		}
		if err := strict(found, data); err != nil {
			return nil, fmt.Errorf("%s: %w", h, err)
		}
		s.digests.note(at, h)
	}
	data, err := expect(h, t, found, data, nil)
	if err != nil {
		return nil, err
	}
	s.keep(h, found, data, whole)
	return data, nil
}

func (s *Scan) keep(h Hash, t Type, data []byte, whole bool) {
	s.objects.put(h.bits(), h, t, data)
	s.objects.slot(h.bits()).whole = whole
}

// ReadTree gives a tree that Entries goes over to its end.
func (s *Scan) ReadTree(h Hash) ([]byte, error) {
	tree, err := s.ReadAs(h, TypeTree)
	if err != nil {
		return nil, err
	}
	kept := s.objects.slot(h.bits())
	if kept.key == h && kept.whole {
		return tree, nil
	}
	if err := CheckTree(tree); err != nil {
		return tree, err
	}
	kept.whole = kept.key == h
	return tree, nil
}

// ReadCommit gives a commit.
func (s *Scan) ReadCommit(h Hash) (Commit, error) {
	data, err := s.ReadAs(h, TypeCommit)
	if err == nil {
		var c Commit
		if c, err = ParseCommit(data); err == nil {
			return c, nil
		}
	}
	return Commit{}, fmt.Errorf("read commit %s: %w", h, err)
}

// at reads the object at a place; ok is false where the general way has to look at it.
func (s *Scan) at(at Place) (t Type, data []byte, ok bool) {
	if at.p == nil {
		return 0, nil, false
	}
	if at.p != s.r.last {
		s.r.last, s.r.data = at.p, s.r.b.bytesOf(at.p)
	}
	if len(s.r.data) == 0 {
		return 0, nil, false
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if e := recover(); e != nil {
			if _, fault := e.(interface{ Addr() uintptr }); !fault {
				panic(e)
			}
			t, data, ok = 0, nil, false // the disk does not give the page
		}
	}()
	return s.entry(at, 0)
}

// entry reads an entry of the last pack.
func (s *Scan) entry(at Place, depth int) (Type, []byte, bool) {
	if depth > 0 { // what is asked for itself was looked for by its name
		if t, data, ok := s.bases.find(at.bits(), at); ok {
			return t, data, true
		}
	}
	if at.off < packHeaderLen || at.off >= int64(len(s.r.data)) || depth > maxScanChain {
		return 0, nil, false
	}
	src := s.r.data[at.off:]
	e, size, n, err := parseEntryHeader(src, at.off)
	if err != nil || size > wholeAtMost*len(src) {
		return 0, nil, false
	}
	var base []byte
	t := e.t
	switch t {
	case typeRefDelta:
		ok := false
		if t, base, ok = s.ofName(e.baseRef, depth+1); !ok {
			return 0, nil, false
		}
	case typeOfsDelta:
		ok := false
		if t, base, ok = s.entry(Place{at.p, e.base}, depth+1); !ok {
			return 0, nil, false
		}
	}
	data, used, ok := storedStream(size, src[n:])
	if !ok {
		if data, used, ok = inflateStream(s.scratch, size, src[n:]); !ok {
			return 0, nil, false
		}
		s.scratch = data
	}
	s.end = at.off + int64(n+used)
	if s.count++; s.count%shedEach == 0 {
		_ = s.r.b.shed(mostResident) // it costs memory alone
	}
	in := &s.block
	if t == TypeBlob {
		in = nil
	}
	if base != nil {
		data, err = applyDeltaIn(in, base, data)
	} else {
		data = append(in.take(len(data)), data...)
	}
	if err != nil {
		return 0, nil, false
	}
	s.bases.put(at.bits(), at, t, data)
	return t, data, true
}

// ofName reads what a difference names, which may stand in another pack: git fetches such.
func (s *Scan) ofName(h Hash, depth int) (t Type, data []byte, ok bool) {
	if t, data, ok = s.objects.find(h.bits(), h); ok {
		return t, data, true
	}
	p, bytes := s.r.last, s.r.data
	if at := s.locate(h); at.p != nil {
		s.r.last, s.r.data = at.p, s.r.b.bytesOf(at.p)
		t, data, ok = s.entry(at, depth)
	}
	s.r.last, s.r.data = p, bytes
	return t, data, ok
}

// shedEach is after how many entries a Scan looks how much of the packs is in memory: the system may bring
// 64 kB with each.
const shedEach = 1 << 10

// maxScanChain is how many differences upon one another are followed; git makes 50, and joined
// packs have some more.
const maxScanChain = 250

// slotted keeps what was used lately, each thing in the one slot that its key has: whatever comes
// to that slot next takes its place. That costs less than any order of them all.
type slotted[K comparable] struct {
	slots []slot[K]
	size  int
	limit int // bytes
}

type slot[K comparable] struct {
	key   K
	t     Type // 0: the slot is empty
	whole bool // a tree that CheckTree, or strict, went over
	data  []byte
}

// slotBits is for about as many objects as fit in scanCacheBytes.
const slotBits = 14

func newSlotted[K comparable](limit int) slotted[K] {
	return slotted[K]{slots: make([]slot[K], 1<<slotBits), limit: limit}
}

func (r *slotted[K]) slot(at uint64) *slot[K] { return &r.slots[at>>(64-slotBits)] }

// find gives what is kept under a key, whose bits at choose the slot.
func (r *slotted[K]) find(at uint64, key K) (Type, []byte, bool) {
	if s := r.slot(at); s.t != 0 && s.key == key {
		return s.t, s.data, true
	}
	return 0, nil, false
}

func (r *slotted[K]) put(at uint64, key K, t Type, data []byte) {
	if r.size > r.limit { // large ones came
		clear(r.slots)
		r.size = 0
	}
	s := r.slot(at)
	r.size += len(data) - len(s.data)
	*s = slot[K]{key: key, t: t, data: data}
}

func (h Hash) bits() uint64 { return binary.BigEndian.Uint64(h[8:]) }

// bits spreads the places of one pack, whose entries stand some bytes to some thousand apart.
func (a Place) bits() uint64 { return (uint64(a.off) + a.number()<<40) * 0x9e3779b97f4a7c15 }
