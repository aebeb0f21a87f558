package odb

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
)

func (db *DB) read(h Hash) (Type, []byte, error) {
	p, off, ok, err := db.locate(h)
	if err != nil {
		return 0, nil, err
	}
	if ok {
		t, data, err := db.resolve(p, off)
		if errors.Is(err, fs.ErrNotExist) {
			db.last.CompareAndSwap(p, nil)
		}
		return t, data, err
	}
	t, data, err := readLoose(db.loosePath(h))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, fmt.Errorf("%s: %w", h, ErrMissing)
	}
	return t, data, err
}

// locate asks the pack of the last hit first, then the table of small packs, then
// all: the largest, which holds most of what was not used lately, then those
// written just before and after the last hit's, and so on away from it: what
// belongs together was written together.
func (db *DB) locate(h Hash) (*pack, int64, bool, error) {
	last := db.last.Load()
	if last != nil {
		if off, ok, err := last.find(h); err == nil && ok {
			db.touch(last)
			return last, off, true, nil
		}
	}
	if p, off, ok := db.findSmall(h); ok {
		db.last.Store(p)
		db.touch(p)
		return p, off, true, nil
	}
	db.mu.RLock()
	packs := db.packs
	db.mu.RUnlock()
	for p := range nearest(packs, last) {
		off, ok, err := p.find(h)
		if errors.Is(err, fs.ErrNotExist) {
			continue // packed again by others; who misses the object looks at the folder anew
		}
		if err != nil {
			return nil, 0, false, err
		}
		if ok {
			db.last.Store(p)
			db.touch(p)
			return p, off, true, nil
		}
	}
	return nil, 0, false, nil
}

// nearest gives the first of the packs, then the others by how far they are from
// near, which is left out; without near the last ones first.
func nearest(packs []*pack, near *pack) iter.Seq[*pack] {
	return func(yield func(*pack) bool) {
		if len(packs) == 0 || packs[0] != near && !yield(packs[0]) {
			return
		}
		before, after := len(packs)-1, len(packs)
		if near != nil {
			at := min(int(near.at.Load()), len(packs)-1) // of a newer list, it may be
			before, after = at-1, at+1
			if at > 0 && packs[at] != near && !yield(packs[at]) {
				return
			}
		}
		for before > 0 || after < len(packs) {
			if before > 0 {
				if !yield(packs[before]) {
					return
				}
				before--
			}
			if after < len(packs) {
				if after > 0 && !yield(packs[after]) {
					return
				}
				after++
			}
		}
	}
}

// touch notes the use of a pack, and closes the files of the least recently
// used half when too many are open.
func (db *DB) touch(p *pack) {
	if p.use.Swap(db.clock.Add(1)) != 0 {
		return
	}
	if db.opened.Add(1) <= db.most {
		return
	}
	db.mu.RLock()
	packs := db.packs
	db.mu.RUnlock()
	oldest := db.clock.Load() - uint64(db.most)/2
	closed := int64(0)
	for _, q := range packs {
		if u := q.use.Load(); q != p && u != 0 && u < oldest && q.use.CompareAndSwap(u, 0) {
			q.close() //nolint:errcheck // opened for reading
			closed++
		}
	}
	db.opened.Add(-closed)
}

// entry reads an entry as it stands in its pack: from memory while packs are mapped.
func (db *DB) entry(p *pack, at int64) (raw, error) {
	if b := db.many.Load(); b != nil {
		if r, ok := b.entry(p, at); ok {
			return r, nil
		}
	}
	return p.read(at)
}

// resolve reads an entry and applies the deltas it is made of.
func (db *DB) resolve(p *pack, off int64) (Type, []byte, error) {
	var deltas [][]byte
	var offs []int64
	var t Type
	var data []byte
	for at := off; ; {
		var ok bool
		if t, data, ok = db.bases.find(baseKey{p.id, at}); ok {
			break
		}
		r, err := db.entry(p, at)
		if err != nil {
			return 0, nil, err
		}
		if r.t != typeOfsDelta && r.t != typeRefDelta {
			t, data = r.t, r.data
			if len(deltas) > 0 {
				db.bases.put(baseKey{p.id, at}, t, data)
			}
			break
		}
		deltas, offs = append(deltas, r.data), append(offs, at)
		if r.t == typeRefDelta {
			if t, data, err = db.read(r.baseRef); err != nil {
				return 0, nil, err
			}
			break
		}
		at = r.base
	}
	for i := len(deltas) - 1; i >= 0; i-- {
		var err error
		if data, err = applyDelta(data, deltas[i]); err != nil {
			return 0, nil, fmt.Errorf("read %s.pack at %d: %w", p.path, offs[i], err)
		}
		if t != TypeBlob { // neighbours of trees share their bases; blobs here have none
			db.bases.put(baseKey{p.id, offs[i]}, t, data)
		}
	}
	return t, data, nil
}
