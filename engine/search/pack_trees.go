package search

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// The rules are: the R*Tree module of SQLite keeps a tree NAME in three tables
// (https://www.sqlite.org/rtree.html, "Shadow Tables"): NAME_node the nodes, 1 the root, all of
// one size; NAME_rowid the leaf of each row; NAME_parent the parent of each node. A node is the
// depth of the tree (the root's alone), the number of cells, and these: a row or a child, and of
// each axis the least and the greatest coordinate, all big-endian. A new index has its trees packed,
// as a row at a time takes twenty times as long.

// cell is a row of an R*Tree, or a node and the box around it: of each axis the least and the
// greatest, outward.
type cell struct {
	id int64
	at [4]float32
}

// outward makes a cell; coordinates come as those of the table's columns.
func outward(id int64, at ...float64) (c cell) {
	c.id = id
	for i, v := range at {
		f := float32(v)
		switch {
		case i%2 == 0 && float64(f) > v:
			f = math.Nextafter32(f, float32(math.Inf(-1)))
		case i%2 == 1 && float64(f) < v:
			f = math.Nextafter32(f, float32(math.Inf(1)))
		}
		c.at[i] = f
	}
	return c
}

func (c cell) middle(axis int) float32 { return c.at[2*axis] + c.at[2*axis+1] }

// cellsOfNode is how many cells a packed node has: of the 51 that SQLite gives it some are left for
// later rows.
const cellsOfNode = 42

// packTree fills the empty R*Tree of a new index.
func (w *writer) packTree(ctx context.Context, name string, axes int, cells []cell) error {
	if len(cells) == 0 {
		return nil
	}
	var size int
	if err := w.tx.QueryRowContext(ctx, "SELECT length(data) FROM "+name+"_node WHERE nodeno=1").Scan(&size); err != nil {
		return err
	}
	if size < 4+cellsOfNode*(8+8*axes) {
		return fmt.Errorf("nodes of %d bytes in R*Tree %s", size, name)
	}
	tile(cells, axes)
	next := int64(2)
	for depth := 0; ; depth++ {
		isRoot := len(cells) <= cellsOfNode
		var above []cell
		var within []place
		for some := range slices.Chunk(cells, cellsOfNode) {
			no := next
			if next++; isRoot {
				no = 1
			}
			if err := w.exec(ctx, "INSERT OR REPLACE INTO "+name+"_node VALUES(?,?)", no, nodeOf(depth, axes, some, size)); err != nil {
				return err
			}
			above = append(above, around(no, some))
			for _, c := range some {
				within = append(within, place{c.id, no})
			}
		}
		if err := w.putWithin(ctx, name, depth, within); err != nil || isRoot {
			return err
		}
		cells = above
	}
}

// place says in which node a row, or a child, is.
type place struct{ id, node int64 }

func (w *writer) putWithin(ctx context.Context, name string, depth int, within []place) error {
	table := name + "_parent"
	if depth == 0 {
		table = name + "_rowid"
	}
	slices.SortFunc(within, func(a, b place) int { return cmp.Compare(a.id, b.id) })
	for _, p := range within {
		if err := w.exec(ctx, "INSERT INTO "+table+" VALUES(?,?)", p.id, p.node); err != nil {
			return err
		}
	}
	return nil
}

// tile puts cells in an order in which neighbours lie near: in strips by the first axis, in these
// by the second.
func tile(cells []cell, axes int) {
	by := func(axis int) func(a, b cell) int {
		return func(a, b cell) int {
			return cmp.Or(cmp.Compare(a.middle(axis), b.middle(axis)), cmp.Compare(a.id, b.id))
		}
	}
	slices.SortFunc(cells, by(0))
	if axes == 1 {
		return
	}
	strips := math.Ceil(math.Sqrt(float64(len(cells)) / cellsOfNode))
	for strip := range slices.Chunk(cells, cellsOfNode*int(strips)) {
		slices.SortFunc(strip, by(1))
	}
}

func around(id int64, cells []cell) cell {
	box := cell{id, cells[0].at}
	for _, c := range cells[1:] {
		for i := 0; i < len(box.at); i += 2 {
			box.at[i], box.at[i+1] = min(box.at[i], c.at[i]), max(box.at[i+1], c.at[i+1])
		}
	}
	return box
}

func nodeOf(depth, axes int, cells []cell, size int) []byte {
	b := make([]byte, 0, size)
	b = binary.BigEndian.AppendUint16(b, uint16(depth))
	b = binary.BigEndian.AppendUint16(b, uint16(len(cells)))
	for _, c := range cells {
		b = binary.BigEndian.AppendUint64(b, uint64(c.id))
		for _, f := range c.at[:2*axes] {
			b = binary.BigEndian.AppendUint32(b, math.Float32bits(f))
		}
	}
	return b[:size]
}
