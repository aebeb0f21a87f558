package history

import (
	"strings"

	"bagpipe/engine/gitstore/internal/odb"
)

// descent compares one path in many pairs of trees. It goes down both trees at once and
// stops where they are the same, which is soon: of neighbouring commits most change
// another part of the fan-out. The entries found in two trees of each depth are remembered
// for the next pair, as one commit's parent is the next one's commit.
type descent struct {
	db    *odb.DB
	names []string
	known [][2]looked // by depth
}

// looked is the entry that a tree has of one name.
type looked struct {
	tree odb.Hash
	at   place
}

// place is the object that stands under a path; the zero place: there is none.
type place struct {
	hash odb.Hash
	mode odb.Mode
}

func newDescent(db *odb.DB, path string) *descent {
	names := strings.Split(path, "/")
	return &descent{db: db, names: names, known: make([][2]looked, len(names))}
}

// differs reports whether the path is not the same in two trees; a zero tree is empty.
func (d *descent) differs(a, b odb.Hash) (bool, error) {
	x, y := place{a, odb.ModeDir}, place{b, odb.ModeDir}
	for depth := range d.names {
		if x == y {
			return false, nil
		}
		var err error
		if x, err = d.look(depth, 0, x); err != nil {
			return false, err
		}
		if y, err = d.look(depth, 1, y); err != nil {
			return false, err
		}
	}
	return x != y, nil
}

// look gives the place one name further down. side tells which of the remembered pair is
// replaced.
func (d *descent) look(depth, side int, from place) (place, error) {
	if from.hash.IsZero() || !from.mode.IsDir() {
		return place{}, nil
	}
	known := &d.known[depth]
	for _, l := range known {
		if l.tree == from.hash {
			return l.at, nil
		}
	}
	tree, err := d.db.ReadTree(from.hash)
	if err != nil {
		return place{}, err
	}
	e, _, _ := odb.FindEntry(tree, d.names[depth], false)
	at := place{e.Hash, e.Mode}
	known[side] = looked{from.hash, at}
	return at, nil
}
