package odb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// GraphEntry is a commit that a new layer of the commit-graph is to hold.
type GraphEntry struct {
	Hash, Tree Hash
	Parent     Hash // zero: none
	When       int64
	Filter     []byte // see NewFilter
}

// ErrUnfit says that a commit-graph is not of the kind that AppendLayer goes on with:
// git writes all kinds.
var ErrUnfit = errors.New("the commit-graph is of another kind")

const (
	filterHashes = 7   // of a path, as git has it
	filterBits   = 10  // for a path
	filterPaths  = 512 // that a filter is made for
	maxLevel     = 1<<30 - 1
	maxOffset    = 1<<31 - 1
	maxLayer     = 4 << 20 // commits in a merged layer; merging takes some 16 bytes for each
	layerTimes   = 8       // see mergeFrom
	maxLayers    = 64      // from which on half of them become one: git looks in one after the other, and counts to 255
)

// allPaths is the filter that any path may be in.
var allPaths = []byte{0xff}

// NewFilter makes the Bloom filter of the files that a commit changed, and of the
// folders they stand in.
func NewFilter(files []string) []byte {
	paths := make([]string, 0, 8)
	for _, p := range files {
		for p != "" {
			if slices.Contains(paths, p) {
				break // and so are the folders above
			}
			if len(paths) == filterPaths {
				return allPaths
			}
			paths = append(paths, p)
			p = p[:max(0, strings.LastIndexByte(p, '/'))]
		}
	}
	if len(paths) == 0 {
		return []byte{0}
	}
	filter := make([]byte, (len(paths)*filterBits+7)/8)
	for _, p := range paths {
		k, ok := NewPathKey(p)
		if !ok {
			return allPaths
		}
		for n := range uint32(filterHashes) {
			bit := (k.h0 + n*k.h1) % uint32(8*len(filter))
			filter[bit/8] |= 1 << (bit % 8)
		}
	}
	return filter
}

// AppendLayer writes a layer with the given commits, each after its parent, which
// stands in the graph otherwise; and gives the chain of layers by their names that is
// to be. Layers at the end of the chain are merged into the new one when there are
// enough of them. ErrUnfit: nothing of use was written.
func (g *Graph) AppendLayer(to io.Writer, commits []GraphEntry) (chain []Hash, err error) {
	if !g.fit() {
		return nil, ErrUnfit
	}
	fresh, err := g.newLayer(commits)
	if err != nil {
		return nil, err
	}
	keep := g.mergeFrom(len(commits))
	if keep > 255 {
		return nil, ErrUnfit
	}
	for _, l := range g.layers[keep:] {
		if !l.sound() {
			return nil, ErrUnfit // its damage would get a checksum that is right
		}
	}
	m := &merger{keep: g.layers[:keep], from: append(slices.Clone(g.layers[keep:]), fresh)}
	if err := m.order(); err != nil {
		return nil, err
	}
	name, err := m.write(to)
	return append(g.Names()[:keep], name), err
}

// fit reports whether all layers have the chunks and settings that AppendLayer writes.
func (g *Graph) fit() bool {
	return !slices.ContainsFunc(g.layers, func(l *layer) bool {
		return l.ends == nil || l.hashes != filterHashes || l.bits != filterBits || l.dates == nil || len(l.edges) > 0
	})
}

// mergeFrom gives the first of the layers that become one with n new commits: as many
// as come to eight times the largest, so that a commit is copied once for each power of
// eight. Small ones below a large one stay; when there are very many, these go, too.
func (g *Graph) mergeFrom(n int) (keep int) {
	sum, largest := n, n
	keep = len(g.layers)
	for i := keep - 1; i >= 0; i-- {
		size := int(g.layers[i].n)
		sum, largest = sum+size, max(largest, size)
		if sum > maxLayer {
			break
		}
		if sum >= layerTimes*largest || len(g.layers) >= maxLayers && i >= maxLayers/2 {
			keep = i
		}
	}
	return keep
}

// name is the checksum at the file's end.
func (l *layer) name() Hash { return Hash(l.data[len(l.data)-20:]) }

// ages gives a commit's level, one more than that of its parents, and its date made
// later than theirs.
func (l *layer) ages(i uint32) (level uint32, date int64) {
	word := binary.BigEndian.Uint64(l.infos[graphInfo*int(i)+28:])
	return uint32(word >> 34), int64(word&(1<<34-1)) + int64(binary.BigEndian.Uint32(l.dates[4*int(i):]))
}

// newLayer makes a layer in memory, which follows those of g.
func (g *Graph) newLayer(commits []GraphEntry) (*layer, error) {
	n := len(commits)
	l := &layer{base: uint32(g.Len()), n: uint32(n), fanout: make([]byte, 1024),
		names: make([]byte, 0, 20*n), infos: make([]byte, graphInfo*n), dates: make([]byte, 4*n), ends: make([]byte, 0, 4*n)}
	sorted := make([]uint32, n) // commits in the order of names
	for i := range sorted {
		sorted[i] = uint32(i)
	}
	slices.SortFunc(sorted, func(a, b uint32) int { return bytes.Compare(commits[a].Hash[:], commits[b].Hash[:]) })
	at := make([]uint32, n) // where each stands among them
	for k, i := range sorted {
		at[i] = uint32(k)
		l.names = append(l.names, commits[i].Hash[:]...)
		l.blooms = append(l.blooms, commits[i].Filter...)
		l.ends = binary.BigEndian.AppendUint32(l.ends, uint32(len(l.blooms)))
	}
	for k, i := 0, 0; k < 256; k++ {
		for i < n && int(l.names[20*i]) == k {
			i++
		}
		binary.BigEndian.PutUint32(l.fanout[4*k:], uint32(i))
	}
	for i := range commits {
		c := &commits[i]
		pos, level, date, err := g.above(l, commits, at, i)
		if err != nil {
			return nil, err
		}
		level, date = min(level+1, maxLevel), max(date+1, c.When)
		if c.When < 0 || c.When >= 1<<34 || date-c.When > maxOffset {
			return nil, ErrUnfit
		}
		row := l.infos[graphInfo*int(at[i]):]
		copy(row, c.Tree[:])
		binary.BigEndian.PutUint32(row[20:], pos)
		binary.BigEndian.PutUint32(row[24:], noParent)
		binary.BigEndian.PutUint64(row[28:], uint64(level)<<34|uint64(c.When))
		binary.BigEndian.PutUint32(l.dates[4*int(at[i]):], uint32(date-c.When))
	}
	return l, nil
}

// above gives the position of the i-th commit's parent, and its ages. at says where the
// commits before it stand in the new layer.
func (g *Graph) above(l *layer, commits []GraphEntry, at []uint32, i int) (pos, level uint32, date int64, err error) {
	c := &commits[i]
	switch {
	case c.Parent.IsZero():
		return noParent, 0, 0, nil
	case i > 0 && commits[i-1].Hash == c.Parent:
		level, date = l.ages(at[i-1])
		return l.base + at[i-1], level, date, nil
	}
	pos, ok := g.Find(c.Parent)
	if !ok {
		return 0, 0, 0, fmt.Errorf("the commit-graph has no %s, the parent of %s", c.Parent, c.Hash)
	}
	level, date = g.Ages(pos)
	return pos, level, date, nil
}
