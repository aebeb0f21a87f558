package odb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// Graph reads Git's commit-graph (gitformat-commit-graph): trees, parents and
// times of commits without reading the commits, and for each a Bloom filter of
// the paths it changed. It is a cache that git writes: what is malformed or
// missing gives no graph, never an error in a history. Its files are mapped; they
// are never changed in place. It may be read by many goroutines.
type Graph struct {
	layers []*layer // the oldest first; positions go on from one to the next
}

// layer is one file of a chain.
type layer struct {
	data   []byte
	base   uint32 // commits in the layers before
	n      uint32
	fanout []byte
	names  []byte
	infos  []byte // 36 bytes a commit
	edges  []byte // parents beyond the second
	ends   []byte // where each filter ends
	blooms []byte // the filters
	hashes uint32 // per path
	bits   uint32 // per path
	dates  []byte // 4 bytes a commit: how much later its corrected date is; nil: none, or some too large
}

const (
	graphInfo    = 36
	noParent     = 0x70000000
	moreParents  = 0x80000000
	bloomHeader  = 12
	bloomVersion = 1
)

var errNoGraph = errors.New("no commit-graph")

// OpenGraph maps the commit-graph of an objects folder. A Graph without commits
// is given when there is none.
func OpenGraph(objects string) *Graph {
	info := filepath.Join(objects, "info")
	g := &Graph{}
	if l, err := openLayer(filepath.Join(info, "commit-graph"), 0); err == nil {
		g.layers = []*layer{l}
		return g
	}
	chain, err := os.ReadFile(filepath.Join(info, "commit-graphs", "commit-graph-chain"))
	if err != nil {
		return g
	}
	base := uint32(0)
	for name := range strings.FieldsSeq(string(chain)) {
		l, err := openLayer(filepath.Join(info, "commit-graphs", "graph-"+filepath.Base(name)+".graph"), base)
		if err != nil {
			g.Close()
			return &Graph{}
		}
		g.layers = append(g.layers, l)
		base += l.n
	}
	return g
}

// Close unmaps the files.
func (g *Graph) Close() {
	for _, l := range g.layers {
		unix.Munmap(l.data) //nolint:errcheck // mapped by us
	}
	g.layers = nil
}

// Names gives the names of the layers, the oldest first.
func (g *Graph) Names() (names []Hash) {
	for _, l := range g.layers {
		names = append(names, l.name())
	}
	return names
}

// Sound reports whether every layer has its checksum.
func (g *Graph) Sound() bool {
	return !slices.ContainsFunc(g.layers, func(l *layer) bool { return !l.sound() })
}

func (l *layer) sound() bool { return hasChecksum(l.data, l.data) }

// Len is the number of commits.
func (g *Graph) Len() int {
	if len(g.layers) == 0 {
		return 0
	}
	last := g.layers[len(g.layers)-1]
	return int(last.base + last.n)
}

func openLayer(name string, base uint32) (*layer, error) {
	f, err := disk.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	info, err := f.Stat()
	if err != nil || info.Size() < 8+12+20 {
		return nil, errNoGraph
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", name, err)
	}
	l := &layer{data: data, base: base}
	if !l.parse() {
		return nil, errors.Join(errNoGraph, unix.Munmap(data))
	}
	return l, nil
}

// parse finds the chunks and checks their lengths, so that the rest may index
// without checking.
func (l *layer) parse() bool {
	if string(l.data[:4]) != "CGPH" || l.data[4] != 1 || l.data[5] != 1 {
		return false
	}
	chunks := int(l.data[6])
	if 8+12*(chunks+1) > len(l.data) {
		return false
	}
	found := map[string][]byte{}
	for i := range chunks {
		row := l.data[8+12*i:]
		from, to := binary.BigEndian.Uint64(row[4:]), binary.BigEndian.Uint64(row[16:])
		if from > to || to > uint64(len(l.data)) {
			return false
		}
		found[string(row[:4])] = l.data[from:to]
	}
	l.fanout, l.names, l.infos, l.edges = found["OIDF"], found["OIDL"], found["CDAT"], found["EDGE"]
	if len(l.fanout) != 1024 {
		return false
	}
	l.n = binary.BigEndian.Uint32(l.fanout[1020:])
	if len(l.names) < 20*int(l.n) || len(l.infos) < graphInfo*int(l.n) {
		return false
	}
	ends, blooms := found["BIDX"], found["BDAT"]
	if len(ends) >= 4*int(l.n) && len(blooms) >= bloomHeader && binary.BigEndian.Uint32(blooms) == bloomVersion {
		l.ends, l.hashes, l.bits, l.blooms = ends, binary.BigEndian.Uint32(blooms[4:]), binary.BigEndian.Uint32(blooms[8:]), blooms[bloomHeader:]
	}
	if dates := found["GDA2"]; len(dates) >= 4*int(l.n) && found["GDO2"] == nil {
		l.dates = dates
	}
	return true
}

func (g *Graph) layerOf(pos uint32) (*layer, uint32) {
	for i := len(g.layers) - 1; i >= 0; i-- {
		if l := g.layers[i]; pos >= l.base {
			if pos-l.base < l.n {
				return l, pos - l.base
			}
			break
		}
	}
	return nil, 0
}

// span gives which of the names begin with a byte.
func (l *layer) span(first byte) (lo, hi uint32) {
	if first > 0 {
		lo = binary.BigEndian.Uint32(l.fanout[4*int(first)-4:])
	}
	return lo, binary.BigEndian.Uint32(l.fanout[4*int(first):])
}

// Find gives a commit's position.
func (g *Graph) Find(h Hash) (uint32, bool) {
	for _, l := range g.layers {
		lo, hi := l.span(h[0])
		if lo > hi || hi > l.n {
			continue
		}
		if i, ok := searchNames(l.names[20*lo:20*hi], h); ok {
			return l.base + lo + uint32(i), true
		}
	}
	return 0, false
}

// GraphCommit is a commit's row of the graph.
type GraphCommit struct {
	Hash, Tree Hash
	When       int64
}

// Commit reads the commit at a position, and appends its parents' positions.
func (g *Graph) Commit(pos uint32, parents []uint32) (GraphCommit, []uint32, bool) {
	l, i := g.layerOf(pos)
	if l == nil {
		return GraphCommit{}, parents, false
	}
	row := l.infos[graphInfo*int(i):]
	c := GraphCommit{Hash: Hash(l.names[20*int(i):]), Tree: Hash(row)}
	c.When = int64(binary.BigEndian.Uint64(row[28:]) & (1<<34 - 1))
	first, second := binary.BigEndian.Uint32(row[20:]), binary.BigEndian.Uint32(row[24:])
	if first != noParent {
		parents = append(parents, first)
	}
	switch {
	case second == noParent:
	case second&moreParents == 0:
		parents = append(parents, second)
	default:
		for at := 4 * int(second&^moreParents); ; at += 4 {
			if at+4 > len(l.edges) {
				return c, parents, false
			}
			e := binary.BigEndian.Uint32(l.edges[at:])
			parents = append(parents, e&^moreParents)
			if e&moreParents != 0 {
				break
			}
		}
	}
	return c, parents, true
}

// PathKey asks the filters for one path.
type PathKey struct{ h0, h1 uint32 }

// NewPathKey prepares a path, a file's or a folder's, without a slash at its end.
// Git's first version of the filters hashes bytes above 127 in its own way: ok is
// false for paths that have any.
func NewPathKey(path string) (PathKey, bool) {
	for i := range len(path) {
		if path[i] >= 0x80 {
			return PathKey{}, false
		}
	}
	return PathKey{murmur3(0x293ae76f, path), murmur3(0x7e646e2c, path)}, true
}

// MayChange is false when the commit certainly did not change the path against
// its first parent.
func (g *Graph) MayChange(pos uint32, k PathKey) bool {
	filter := g.Filter(pos)
	if len(filter) == 0 {
		return true // not computed
	}
	l, _ := g.layerOf(pos)
	bitsLen := uint32(len(filter)) * 8
	for n := range l.hashes {
		bit := (k.h0 + n*k.h1) % bitsLen
		if filter[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

// Filter gives the Bloom filter of a commit; empty where there is none.
func (g *Graph) Filter(pos uint32) []byte {
	l, i := g.layerOf(pos)
	if l == nil || l.ends == nil {
		return nil
	}
	return l.filter(i)
}

func (l *layer) filter(i uint32) []byte {
	from, to := uint32(0), binary.BigEndian.Uint32(l.ends[4*int(i):])
	if i > 0 {
		from = binary.BigEndian.Uint32(l.ends[4*int(i)-4:])
	}
	if from > to || int(to) > len(l.blooms) {
		return nil
	}
	return l.blooms[from:to]
}

// Ages gives a commit's level, one more than its parents', and its date made later
// than theirs; the zero date where the graph has none.
func (g *Graph) Ages(pos uint32) (level uint32, date int64) {
	l, i := g.layerOf(pos)
	if l == nil || l.dates == nil {
		return 0, 0
	}
	return l.ages(i)
}

// murmur3 is MurmurHash3, 32 bits.
func murmur3(seed uint32, s string) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	mix := func(k uint32) uint32 {
		k *= c1
		return (k<<15 | k>>17) * c2
	}
	h := seed
	n := len(s)
	for ; len(s) >= 4; s = s[4:] {
		h ^= mix(uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24)
		h = (h<<13|h>>19)*5 + 0xe6546b64
	}
	if len(s) > 0 {
		var k uint32
		for i := len(s) - 1; i >= 0; i-- {
			k = k<<8 | uint32(s[i])
		}
		h ^= mix(k)
	}
	h ^= uint32(n)
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
