package gitstore

import (
	"strings"

	"bagpipe/engine/gitstore/internal/odb"
)

// descent compares one path in many pairs of trees. It goes down both at once and
// stops where they are the same, which is soon: of neighbouring commits most
// change another part of the fan-out. What a tree had under the path's name is
// remembered for the next pair, as one commit's parent is the next one's commit.
type descent struct {
	s     *Store
	names []string
	known [][2]looked // by depth
}

// looked is what a tree has under one name.
type looked struct {
	tree Hash
	at   place
}

// place is what stands under a path: there false is nothing.
type place struct {
	hash  Hash
	mode  odb.Mode
	there bool
}

func newDescent(s *Store, path string) *descent {
	names := strings.Split(path, "/")
	return &descent{s: s, names: names, known: make([][2]looked, len(names))}
}

// differs tells whether the path is not the same in two trees; a zero tree is
// empty.
func (d *descent) differs(a, b Hash) (bool, error) {
	x, y := root(a), root(b)
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

func root(tree Hash) place { return place{tree, odb.ModeDir, !tree.IsZero()} }

// look gives what stands one name further down. side tells which of the pair is
// forgotten for it.
func (d *descent) look(depth, side int, from place) (place, error) {
	if !from.there || !from.mode.IsDir() {
		return place{}, nil
	}
	known := &d.known[depth]
	for _, l := range known {
		if l.tree == from.hash {
			return l.at, nil
		}
	}
	tree, err := d.s.readTree(from.hash)
	if err != nil {
		return place{}, err
	}
	e, found, _ := odb.FindEntry(tree, d.names[depth], false)
	at := place{e.Hash, e.Mode, found}
	known[side] = looked{from.hash, at}
	return at, nil
}
