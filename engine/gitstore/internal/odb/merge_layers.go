package odb

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"io"
	"slices"
)

// merger writes one layer of several.
type merger struct {
	keep, from []*layer
	list       []place    // every commit of from, in the order of names
	to         [][]uint32 // the new position of each
}

// order sorts the commits, one first byte after the other.
func (m *merger) order() error {
	base, total := m.from[0].base, 0
	for _, l := range m.from {
		m.to = append(m.to, make([]uint32, l.n))
		total += int(l.n)
	}
	m.list = make([]place, 0, total)
	for first := range 256 {
		begin := len(m.list)
		for k, l := range m.from {
			lo, hi := l.span(byte(first))
			for i := lo; i < hi; i++ {
				m.list = append(m.list, place{uint32(k), i})
			}
		}
		slices.SortFunc(m.list[begin:], func(a, b place) int { return bytes.Compare(m.name(a), m.name(b)) })
	}
	for n, r := range m.list {
		if n > 0 && bytes.Equal(m.name(r), m.name(m.list[n-1])) {
			return ErrUnfit // two layers have it
		}
		m.to[r.pack][r.at] = base + uint32(n)
	}
	return nil
}

func (m *merger) name(r place) []byte { return m.from[r.pack].names[20*int(r.at):][:20] }

func (m *merger) info(r place) []byte { return m.from[r.pack].infos[graphInfo*int(r.at):][:graphInfo] }

func (m *merger) date(r place) []byte { return m.from[r.pack].dates[4*int(r.at):][:4] }

func (m *merger) filter(r place) []byte {
	f := m.from[r.pack].filter(r.at)
	if len(f) == 0 {
		return allPaths
	}
	return f
}

// parent gives the new position of one.
func (m *merger) parent(pos uint32) (uint32, error) {
	if pos == noParent || pos < m.from[0].base {
		return pos, nil
	}
	for k, l := range m.from {
		if pos-l.base < l.n {
			return m.to[k][pos-l.base], nil
		}
	}
	return 0, ErrUnfit // an octopus merge, or damaged
}

// graphFile is a layer being written; Flush tells of its errors.
type graphFile struct{ *bufio.Writer }

func (f graphFile) put(b []byte)    { f.Write(b) } //nolint:errcheck // as above
func (f graphFile) number(n uint32) { f.put(binary.BigEndian.AppendUint32(f.AvailableBuffer(), n)) }
func (f graphFile) place(n int)     { f.put(binary.BigEndian.AppendUint64(f.AvailableBuffer(), uint64(n))) }
func (f graphFile) row(id string, n int) {
	f.put([]byte(id))
	f.place(n)
}

// write writes the file; see gitformat-commit-graph.
func (m *merger) write(to io.Writer) (name Hash, err error) {
	sum := sha1.New()
	f := graphFile{bufio.NewWriterSize(io.MultiWriter(to, sum), 1<<18)}
	blooms := 0
	for _, r := range m.list {
		blooms += len(m.filter(r))
	}
	if blooms > maxOffset {
		return name, ErrUnfit
	}
	m.writeHead(f, blooms)
	if err := m.writeCommits(f); err != nil {
		return name, err
	}
	m.writeFilters(f)
	for _, l := range m.keep {
		base := l.name()
		f.put(base[:])
	}
	if err := f.Flush(); err != nil {
		return name, err
	}
	name = Hash(sum.Sum(nil))
	_, err = to.Write(name[:])
	return name, err
}

// writeHead writes the header and the table of the chunks.
func (m *merger) writeHead(f graphFile, blooms int) {
	n := len(m.list)
	chunks := []struct {
		id   string
		size int
	}{{"OIDF", 1024}, {"OIDL", 20 * n}, {"CDAT", graphInfo * n}, {"GDA2", 4 * n},
		{"BIDX", 4 * n}, {"BDAT", bloomHeader + blooms}, {"BASE", 20 * len(m.keep)}}
	if len(m.keep) == 0 {
		chunks = chunks[:len(chunks)-1]
	}
	f.put([]byte{'C', 'G', 'P', 'H', 1, 1, byte(len(chunks)), byte(len(m.keep))})
	off := 8 + 12*(len(chunks)+1)
	for _, c := range chunks {
		f.row(c.id, off)
		off += c.size
	}
	f.row("\x00\x00\x00\x00", off)
}

func (m *merger) writeCommits(f graphFile) error {
	n := 0
	for first := range 256 {
		for n < len(m.list) && int(m.name(m.list[n])[0]) == first {
			n++
		}
		f.number(uint32(n))
	}
	for _, r := range m.list {
		f.put(m.name(r))
	}
	for _, r := range m.list {
		info := m.info(r)
		f.put(info[:20])
		for _, at := range []int{20, 24} {
			pos, err := m.parent(binary.BigEndian.Uint32(info[at:]))
			if err != nil {
				return err
			}
			f.number(pos)
		}
		f.put(info[28:])
	}
	for _, r := range m.list {
		f.put(m.date(r))
	}
	return nil
}

func (m *merger) writeFilters(f graphFile) {
	end := 0
	for _, r := range m.list {
		end += len(m.filter(r))
		f.number(uint32(end))
	}
	for _, n := range []uint32{bloomVersion, filterHashes, filterBits} {
		f.number(n)
	}
	for _, r := range m.list {
		f.put(m.filter(r))
	}
}
