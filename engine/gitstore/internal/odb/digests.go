package odb

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
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
	packs sync.Map // *pack to []atomic.Uint32: a bit for each perEntry bytes
	last  atomic.Pointer[digested]
}

type digested struct {
	p    *pack
	bits []atomic.Uint32
}

// perEntry is less than the shortest entry of a pack: a byte of header, and a stream of eight.
const perEntry = 8

// NewDigests knows of no entry.
func NewDigests() *Digests { return &Digests{} }

func (d *Digests) of(at Place) []atomic.Uint32 {
	if l := d.last.Load(); l != nil && l.p == at.p {
		return l.bits
	}
	found, ok := d.packs.Load(at.p)
	if !ok {
		size := int64(0)
		_ = at.p.withPack(func(f *os.File) error {
			info, err := f.Stat()
			if err == nil {
				size = info.Size()
			}
			return err
		})
		found, _ = d.packs.LoadOrStore(at.p, make([]atomic.Uint32, size/perEntry/32+1))
	}
	bits := found.([]atomic.Uint32)
	d.last.Store(&digested{at.p, bits})
	return bits
}

func (d *Digests) seen(at Place) bool {
	if at.p == nil {
		return false
	}
	bits, n := d.of(at), at.off/perEntry
	return n/32 < int64(len(bits)) && bits[n/32].Load()&(1<<(n%32)) != 0
}

func (d *Digests) note(at Place) {
	if at.p == nil {
		return
	}
	if bits, n := d.of(at), at.off/perEntry; n/32 < int64(len(bits)) {
		bits[n/32].Or(1 << (n % 32))
	}
}

// Rest looks at the objects of the repository that were not noted, those of each pack in its
// order, some side by side. ErrDigest, or what cannot be read, is the error of the first.
func (b *Bulk) Rest(d *Digests, stop func() error) error {
	b.db.mu.RLock()
	packs := b.db.packs
	b.db.mu.RUnlock()
	var looking errgroup.Group
	looking.SetLimit(2)
	for _, p := range packs {
		index, done, err := p.wholeIndex()
		if err != nil {
			return errors.Join(err, looking.Wait())
		}
		left, err := b.left(d, p, index)
		if err = errors.Join(err, done()); err != nil {
			return errors.Join(err, looking.Wait())
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
	return b.loose(stop)
}

// restAtOnce is how many objects one goroutine looks at.
const restAtOnce = 1 << 16

// named is an entry of a pack.
type named struct {
	off  int64
	name Hash
}

// left lists the entries of a pack that were not noted, in their order. Two names of one place
// are one too many.
func (b *Bulk) left(d *Digests, p *pack, index []byte) (left []named, err error) {
	met := make([]uint32, len(d.of(Place{p, 0})))
	for i := range p.n {
		off := p.offset(index, i)
		n := off / perEntry
		if n < 0 || n/32 >= int64(len(met)) || met[n/32]&(1<<(n%32)) != 0 {
			return nil, fmt.Errorf("%s: %w", Hash(index[indexHead+20*i:][:20]), ErrDigest)
		}
		met[n/32] |= 1 << (n % 32)
		if !d.seen(Place{p, off}) {
			left = append(left, named{off, Hash(index[indexHead+20*i:][:20])})
		}
	}
	slices.SortFunc(left, func(a, b named) int { return cmp.Compare(a.off, b.off) })
	return left, nil
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
	s.digests.note(at)
	return nil
}

// strict refuses a tree as git fsck --strict would: names out of order, twice or of no file, and
// modes that git does not write.
func strict(t Type, data []byte) error {
	if t != TypeTree {
		return nil
	}
	var last Entry
	at := 0
	for e := range Entries(data) {
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
