package odb

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"bagpipe/layout/disk"
)

// Digests notes which entries of packs have the bytes that their names say. Any number of Scans
// may share one.
type Digests struct {
	seed  maphash.Seed
	packs sync.Map // *pack to *noted
	last  atomic.Pointer[noted]
}

// noted are the entries of one pack.
type noted struct {
	p    *pack
	bits []atomic.Uint32 // one for each perEntry bytes
	sum  atomic.Uint64   // of what mark gives of each
}

// perEntry is less than the shortest entry of a pack: a byte of header, and a stream of eight.
const perEntry = 8

// NewDigests knows of no entry.
func NewDigests() *Digests { return &Digests{seed: maphash.MakeSeed()} }

func (d *Digests) of(p *pack) *noted {
	if n := d.last.Load(); n != nil && n.p == p {
		return n
	}
	found, ok := d.packs.Load(p)
	if !ok {
		size := int64(0)
		_ = p.withPack(func(f *os.File) error {
			info, err := f.Stat()
			if err == nil {
				size = info.Size()
			}
			return err
		})
		found, _ = d.packs.LoadOrStore(p, &noted{p: p, bits: make([]atomic.Uint32, size/perEntry/32+1)})
	}
	n := found.(*noted)
	d.last.Store(n)
	return n
}

func (d *Digests) seen(at Place) bool {
	if at.p == nil {
		return false
	}
	bits, n := d.of(at.p).bits, at.off/perEntry
	return n/32 < int64(len(bits)) && bits[n/32].Load()&(1<<(n%32)) != 0
}

// note takes note of an entry and of the name that its bytes have.
func (d *Digests) note(at Place, h Hash) {
	if at.p == nil {
		return
	}
	of, n := d.of(at.p), at.off/perEntry
	if n/32 < int64(len(of.bits)) && of.bits[n/32].Or(1<<(n%32))&(1<<(n%32)) == 0 {
		of.sum.Add(d.mark(h, at.off))
	}
}

// mark is a number of a name and a place, which nobody can foresee.
func (d *Digests) mark(h Hash, off int64) uint64 {
	var both [len(h) + 8]byte
	copy(both[:], h[:])
	binary.LittleEndian.PutUint64(both[len(h):], uint64(off))
	return maphash.Bytes(d.seed, both[:])
}

// Rest looks at the objects of the repository that were not noted, those of each pack in its
// order, some side by side. ErrDigest, or what cannot be read, is the error of the first.
func (b *Bulk) Rest(d *Digests, stop func() error) error {
	b.db.mu.RLock()
	packs := b.db.packs
	b.db.mu.RUnlock()
	var odd error
	var looking errgroup.Group
	looking.SetLimit(2)
	for _, p := range packs {
		index, done, err := p.wholeIndex()
		if err != nil {
			return errors.Join(err, looking.Wait())
		}
		left, fits, err := b.left(d, p, index)
		if err = errors.Join(err, done()); err != nil {
			return errors.Join(err, looking.Wait())
		}
		if !fits { // where each of its names is good, it lacks one that was read
			odd = fmt.Errorf("%s.idx lacks an object of its pack: %w", filepath.Base(p.path), ErrDigest)
		}
		for len(left) > 0 {
			some := left[:min(len(left), restAtOnce)]
			left = left[len(some):]
			looking.Go(func() error {
				s := b.Scan(d)
				for _, at := range some {
					if err := stop(); err != nil {
						return err
					}
					if err := s.look(p, at); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	if err := looking.Wait(); err != nil {
		return err
	}
	if odd != nil {
		return odd
	}
	return b.loose(stop)
}

// restAtOnce is how many objects one goroutine looks at.
const restAtOnce = 1 << 16

// named is an entry of a pack.
type named struct {
	off  int64
	name Hash
}

// left lists the entries of a pack that were not noted, in their order; all of them where the index does not fit:
// it has not the names that were noted, each at its place. Names out of order, where no search finds them, are one fault, and two
// of one place another.
func (b *Bulk) left(d *Digests, p *pack, index []byte) (left []named, fits bool, err error) {
	of := d.of(p)
	met := make([]uint32, len(of.bits))
	sum := uint64(0)
	var last Hash
	for i := range p.n {
		e := p.named(index, i)
		n := e.off / perEntry
		first := e.name[0]
		if n < 0 || n/32 >= int64(len(met)) || met[n/32]&(1<<(n%32)) != 0 ||
			bytes.Compare(e.name[:], last[:]) < 0 || i >= int(p.fanout[first]) || first > 0 && i < int(p.fanout[first-1]) {
			return nil, false, fmt.Errorf("%s: %w", e.name, ErrDigest)
		}
		met[n/32] |= 1 << (n % 32)
		last = e.name
		if d.seen(Place{p, e.off}) {
			sum += d.mark(e.name, e.off)
		} else {
			left = append(left, e)
		}
	}
	if fits = sum == of.sum.Load(); !fits {
		left = left[:0]
		for i := range p.n {
			left = append(left, p.named(index, i))
		}
	}
	slices.SortFunc(left, func(a, b named) int { return cmp.Compare(a.off, b.off) })
	return left, fits, nil
}

func (p *pack) named(index []byte, i int) named {
	return named{p.offset(index, i), Hash(index[indexHead+20*i:][:20])}
}

// look reads one entry, and holds it against its name.
func (s *Scan) look(p *pack, n named) error {
	h, at := n.name, Place{p, n.off}
	t, data, ok := s.at(at)
	if !ok {
		var err error
		if t, data, err = s.r.b.db.resolve(p, n.off); err != nil {
			return fmt.Errorf("%s: %w", h, err)
		}
	}
	if s.hash.name(t, data) != h {
		return fmt.Errorf("%s: %w", h, ErrDigest)
	}
	if err := strict(t, data); err != nil {
		return fmt.Errorf("%s: %w", h, err)
	}
	s.digests.note(at, h)
	return nil
}

// strict refuses a tree as git fsck --strict would: names out of order, twice or of no file, and
// modes that git does not write.
func strict(t Type, data []byte) error {
	if t != TypeTree {
		return nil
	}
	at := shortFolders(data)
	var last Entry
	if at > 0 {
		last, _ = entryAt(data, at-shortEntry)
	}
	for at < len(data) {
		e, ok := entryAt(data, at)
		if !ok {
			break
		}
		at += e.Len
		switch e.Mode {
		case ModeFile, ModeDir, "100755", "120000", "160000":
		default:
			return fmt.Errorf("%w: tree: mode %.10s", errCorrupt, e.Mode)
		}
		if noName(e.Name) || e.Hash.IsZero() {
			return fmt.Errorf("%w: tree: an entry %.40q", errCorrupt, e.Name)
		}
		if last.Name != nil && CompareNames(last.Name, last.Mode.IsDir(), e.Name, e.Mode.IsDir()) >= 0 {
			return fmt.Errorf("%w: tree: %.40q is out of order", errCorrupt, e.Name)
		}
		last = e
	}
	return wholeTree(data, at)
}

// shortEntry is the length of the entry of a folder whose name has one letter, as those above the items'.
const shortEntry = len("40000 0\x00") + len(Hash{})

// shortFolders gives where the folders end that a tree begins with whose names are a letter or a digit, in order.
func shortFolders(data []byte) (at int) {
	for last := byte(0); len(data)-at >= shortEntry; at += shortEntry {
		e := data[at : at+shortEntry]
		name := e[6]
		if string(e[:6]) != "40000 " || e[7] != 0 || name <= last || name < '0' || name > 'z' || binary.BigEndian.Uint64(e[8:]) == 0 {
			return at
		}
		last = name
	}
	return at
}

// noName reports whether no file may be called so.
func noName(name []byte) bool {
	switch len(name) {
	case 0:
		return true
	case 1, 2:
		return len(bytes.Trim(name, ".")) == 0 || bytes.IndexByte(name, '/') >= 0
	}
	return len(name) == len(".git") && bytes.EqualFold(name, []byte(".git")) || bytes.IndexByte(name, '/') >= 0
}

// wholeIndex gives the bytes of a pack's index until done is called.
func (p *pack) wholeIndex() (index []byte, done func() error, err error) {
	if p.index != nil {
		return p.index, func() error { return nil }, nil
	}
	f, err := disk.Open(p.path + ".idx")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	own := &pack{path: p.path, n: p.n}
	if err := own.mapIndex(f); err != nil {
		return nil, nil, err
	}
	return own.mapped, own.close, nil
}

// loose looks at the objects that stand in files of their own.
func (b *Bulk) loose(stop func() error) error {
	folders, err := os.ReadDir(b.db.dir)
	if err != nil {
		return err
	}
	hash := newHasher()
	for _, folder := range folders {
		if len(folder.Name()) != 2 {
			continue
		}
		files, err := os.ReadDir(filepath.Join(b.db.dir, folder.Name()))
		if err != nil {
			return err
		}
		for _, f := range files {
			h, err := ParseHash(folder.Name() + f.Name())
			if err != nil {
				continue // a file that is being written
			}
			if err := stop(); err != nil {
				return err
			}
			t, data, err := readLoose(b.db.loosePath(h))
			if errors.Is(err, fs.ErrNotExist) {
				continue // packed meanwhile
			}
			if err != nil {
				return fmt.Errorf("%s: %w", h, err)
			}
			if hash.name(t, data) != h {
				return fmt.Errorf("%s: %w", h, ErrDigest)
			}
		}
	}
	return nil
}

// IsCorrupt reports whether an error says that an object cannot be read as it stands.
func IsCorrupt(err error) bool { return errors.Is(err, errCorrupt) }
