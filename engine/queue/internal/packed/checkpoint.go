package packed

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"

	"bagpipe/engine/state"
)

// The package comment has the format of a checkpoint.
const (
	checkpointMagic   = "bagpipe index 8\n"
	checkpointTrailer = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrCheckpoint is a checkpoint that is of no use: damaged, of another version, or
// without what it names. It is to be ignored; its answer is a scan.
var ErrCheckpoint = errors.New("the checkpoint cannot be used")

type checkpointHead struct {
	Tree   string   `json:"tree"`
	Facets []string `json:"facets"`
	Texts  []string `json:"texts"`
	Plans  []string `json:"plans"` // digests
	Items  int      `json:"items"`
}

// Snapshot is an index at one moment. It costs next to nothing to make, and what it
// holds does not change.
type Snapshot struct {
	head  checkpointHead
	pages []page
}

// NewSnapshot takes one of a table. ok is false while an item is shown that is in no tree.
func NewSnapshot(t *Table, n *Names, tree string, facets []string) (s *Snapshot, ok bool) {
	texts, plans := n.All()
	s = &Snapshot{head: checkpointHead{Tree: tree, Facets: facets, Texts: texts}, pages: t.share()}
	for _, p := range plans {
		s.head.Plans = append(s.head.Plans, p.Digest)
	}
	ok = true
	t.Each(0, Pages, func(_ uint64, b []byte) {
		s.head.Items++
		ok = ok && TraitsOf(b)&Removed == 0
	})
	return s, ok
}

// WriteTo writes the checkpoint.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	head, err := json.Marshal(s.head)
	if err != nil {
		return 0, err
	}
	out := &checkpointWriter{sum: crc32.New(castagnoli), w: bufio.NewWriterSize(w, 1<<20)}
	out.write([]byte(checkpointMagic))
	out.num64(uint64(len(head)))
	out.write(head)
	for i := range s.pages {
		out.num32(uint32(len(s.pages[i].ids)))
		out.num32(uint32(len(s.pages[i].data)))
	}
	for i := range s.pages {
		for _, id := range s.pages[i].ids {
			out.num64(id)
		}
	}
	for i := range s.pages {
		for _, end := range s.pages[i].ends {
			out.num32(end)
		}
	}
	for i := range s.pages {
		out.write(s.pages[i].data)
	}
	out.num32(out.sum.Sum32())
	if out.err == nil {
		out.err = out.w.Flush()
	}
	return out.n, out.err
}

type checkpointWriter struct {
	sum hash.Hash32
	w   *bufio.Writer
	n   int64
	err error
	buf [8]byte
}

func (o *checkpointWriter) write(b []byte) {
	if o.err != nil {
		return
	}
	o.sum.Write(b)
	n, err := o.w.Write(b)
	o.n, o.err = o.n+int64(n), err
}

func (o *checkpointWriter) num64(v uint64) { o.write(binary.LittleEndian.AppendUint64(o.buf[:0], v)) }

func (o *checkpointWriter) num32(v uint32) { o.write(binary.LittleEndian.AppendUint32(o.buf[:0], v)) }

// Restore fills an empty table, and its names, from a checkpoint, whose bytes the table
// keeps. It gives the tree that the items were derived from. After an error, table and
// names are of no use.
func Restore(data []byte, t *Table, n *Names, facets []string, plans func(digest string) *state.Definition) (tree string, err error) {
	r := checkpointReader{b: data}
	head, err := r.head()
	if err != nil {
		return "", err
	}
	if !slices.Equal(head.Facets, facets) {
		return "", fmt.Errorf("%w: it has other facets", ErrCheckpoint)
	}
	if err := n.restore(head, plans); err != nil {
		return "", err
	}
	if err := r.pages(t); err != nil {
		return "", err
	}
	return head.Tree, nil
}

func (n *Names) restore(head checkpointHead, plans func(string) *state.Definition) error {
	if len(head.Texts) == 0 || head.Texts[0] != "" {
		return fmt.Errorf("%w: its names are damaged", ErrCheckpoint)
	}
	n.texts, n.ofTxt = head.Texts, make(map[string]uint64, len(head.Texts))
	for i, t := range head.Texts {
		n.ofTxt[t] = uint64(i)
	}
	for i, digest := range head.Plans {
		p := plans(digest)
		if p == nil {
			return fmt.Errorf("%w: definition %s is missing", ErrCheckpoint, digest)
		}
		n.plans = append(n.plans, p)
		n.byDig[p] = uint64(i)
	}
	return nil
}

type checkpointReader struct{ b []byte }

func (r *checkpointReader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.b = nil
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// head checks the sum over everything, and reads the head.
func (r *checkpointReader) head() (h checkpointHead, err error) {
	bad := func(what string) error { return fmt.Errorf("%w: %s", ErrCheckpoint, what) }
	body := len(r.b) - checkpointTrailer
	if body < len(checkpointMagic)+8 || !bytes.HasPrefix(r.b, []byte(checkpointMagic)) {
		return h, bad("it is no checkpoint of this version")
	}
	if crc32.Checksum(r.b[:body], castagnoli) != binary.LittleEndian.Uint32(r.b[body:]) {
		return h, bad("its checksum is wrong")
	}
	r.b = r.b[:body]
	r.take(len(checkpointMagic))
	n := binary.LittleEndian.Uint64(r.take(8))
	if n > uint64(len(r.b)) {
		return h, bad("its head is cut off")
	}
	if err := json.Unmarshal(r.take(int(n)), &h); err != nil {
		return h, bad(err.Error())
	}
	return h, nil
}

// pages reads the items. The bytes are shared with the checkpoint's; a page that
// grows gets its own, as no list has room to grow.
func (r *checkpointReader) pages(t *Table) error {
	damaged := fmt.Errorf("%w: its items are damaged", ErrCheckpoint)
	sizes := r.take(8 * Pages)
	if sizes == nil {
		return damaged
	}
	items, bytes := 0, 0
	for i := range Pages {
		items += int(binary.LittleEndian.Uint32(sizes[8*i:]))
		bytes += int(binary.LittleEndian.Uint32(sizes[8*i+4:]))
	}
	ids, ends, data := r.take(8*items), r.take(4*items), r.take(bytes)
	if len(ids) != 8*items || len(ends) != 4*items || len(data) != bytes || len(r.b) != 0 {
		return damaged
	}
	allIDs, allEnds := make([]uint64, items), make([]uint32, items)
	for i := range allIDs {
		allIDs[i] = binary.LittleEndian.Uint64(ids[8*i:])
		allEnds[i] = binary.LittleEndian.Uint32(ends[4*i:])
	}
	for i := range Pages {
		n, size := int(binary.LittleEndian.Uint32(sizes[8*i:])), int(binary.LittleEndian.Uint32(sizes[8*i+4:]))
		p := &t.pages[i]
		p.ids, allIDs = allIDs[:n:n], allIDs[n:]
		p.ends, allEnds = allEnds[:n:n], allEnds[n:]
		p.data, data = data[:size:size], data[size:]
		p.shared = true
		if !p.sound(i) {
			return damaged
		}
	}
	return nil
}

// sound reports whether a page's items stand in order and within it.
func (p *page) sound(number int) bool {
	last := uint32(0)
	for i, id := range p.ids {
		if PageOf(id) != number || i > 0 && p.ids[i-1] >= id || p.ends[i] <= last || int(p.ends[i]) > len(p.data) {
			return false
		}
		last = p.ends[i]
	}
	return int(last) == len(p.data)
}
