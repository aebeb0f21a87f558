package odb

import "encoding/binary"

// smallTable finds objects in the many small packs that groups leave, without
// asking one pack after the other. It is a hint: an object it does not know is looked for
// in every pack. DB.mu guards it.
type smallTable struct {
	at map[uint64]smallAt // nil until it is needed
}

// smallAt is a place in a small pack's index.
type smallAt struct {
	p *pack
	i int32
}

const (
	smallFrom = 16      // small packs from which the table pays
	smallMax  = 1 << 20 // objects in it: about 40 MB
)

func smallKey(h []byte) uint64 { return binary.LittleEndian.Uint64(h) }

// add takes a pack in; without force only once the table is in use.
func (t *smallTable) add(p *pack, force bool) {
	if p.index == nil || t.at == nil && !force || len(t.at)+p.n > smallMax {
		return
	}
	for i := range p.n {
		t.at[smallKey(p.index[indexHead+20*i:])] = smallAt{p, int32(i)}
	}
}

func (t *smallTable) drop(p *pack) {
	if p.index == nil || t.at == nil {
		return
	}
	for i := range p.n {
		if key := smallKey(p.index[indexHead+20*i:]); t.at[key].p == p {
			delete(t.at, key)
		}
	}
}

func (t *smallTable) build(packs []*pack) {
	t.at = map[uint64]smallAt{}
	for _, p := range packs {
		t.add(p, true)
	}
}

// find gives the pack that holds the object, and where.
func (t *smallTable) find(h Hash) (*pack, int64, bool) {
	at, ok := t.at[smallKey(h[:])]
	if !ok || Hash(at.p.index[indexHead+20*int(at.i):]) != h {
		return nil, 0, false
	}
	return at.p, at.p.offset(at.p.index, int(at.i)), true
}

// findSmall asks the table, which it makes when there are many packs.
func (db *DB) findSmall(h Hash) (*pack, int64, bool) {
	db.mu.RLock()
	built, many := db.small.at != nil, len(db.packs) >= smallFrom
	if built {
		defer db.mu.RUnlock()
		return db.small.find(h)
	}
	db.mu.RUnlock()
	if !many {
		return nil, 0, false
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.small.at == nil {
		db.small.build(db.packs)
	}
	return db.small.find(h)
}
