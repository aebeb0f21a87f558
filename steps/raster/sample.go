package raster

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// Grid is a picture sampled down: Values of band b at column x and row y are at
// (y·Width + x)·len(Bands) + b.
type Grid struct {
	Width, Height int
	Bands         []int
	Values        []float32
}

// Best gives the page that a picture of that many pixels on its longer side is made of with
// the least work: the smallest that is not smaller, of the main picture and its overviews.
func (f *File) Best(pixels int64) *Page {
	best := f.Pages[0]
	for _, p := range f.Pages[1:] {
		if p.Reduced && !p.Mask && p.Bands == best.Bands && max(p.Width, p.Height) >= pixels && p.Width < best.Width {
			best = p
		}
	}
	return best
}

// maxBlock is how many bytes of a block may be held that is decoded as a whole, and how
// long a row may be.
const maxBlock = 64 << 20

// sampler fills a grid from a page's blocks.
type sampler struct {
	f               *File
	p               *Page
	g               *Grid
	offsets, counts []int64
	columns, rows   []int64 // of the page, by those of the grid
	across, down    int64   // blocks
	row             []byte  // of the block that is read: tiles may be far wider than the page, and many
}

// Sample reads a page at width × height points, the nearest pixel of each, of some bands.
// Only blocks that hold one of them are decoded, one row at a time.
func (f *File) Sample(p *Page, width, height int, bands []int) (*Grid, error) {
	s := &sampler{f: f, p: p, g: &Grid{Width: width, Height: height, Bands: bands, Values: make([]float32, width*height*len(bands))}}
	if err := s.list(); err != nil {
		return nil, err
	}
	s.columns, s.rows = nearest(width, p.Width), nearest(height, p.Height)
	for by := range s.down {
		top, _ := slices.BinarySearch(s.rows, by*p.BlockHeight)
		end, _ := slices.BinarySearch(s.rows, (by+1)*p.BlockHeight)
		for bx := int64(0); top < end && bx < s.across; bx++ {
			if err := s.block(bx, by, top, end); err != nil {
				return nil, err
			}
		}
	}
	return s.g, nil
}

// list reads where the page's blocks are.
func (s *sampler) list() (err error) {
	f, p := s.f, s.p
	if p.BlockWidth == 0 || p.BlockHeight == 0 {
		return &Error{p.at, "blocks of no size"}
	}
	s.across, s.down = (p.Width+p.BlockWidth-1)/p.BlockWidth, (p.Height+p.BlockHeight-1)/p.BlockHeight
	if s.offsets, err = f.integers(p.offsets); err != nil {
		return err
	}
	if s.counts, err = f.integers(p.counts); err != nil {
		return err
	}
	if s.across*s.down > maxValues {
		return &Error{p.at, fmt.Sprintf("a picture of %d × %d blocks", s.across, s.down)}
	}
	if n := s.across * s.down * s.planes(); int64(len(s.offsets)) < n || int64(len(s.counts)) < n {
		return &Error{p.at, fmt.Sprintf("%d blocks of %d are listed", min(len(s.offsets), len(s.counts)), n)}
	}
	if !slices.ContainsFunc(s.counts, func(n int64) bool { return n != 0 }) {
		return &Error{p.at, fmt.Sprintf("none of its %d blocks holds a byte", len(s.counts))}
	}
	return nil
}

// mostFrom is how many bytes one byte of a block becomes at most, by its compression; of others nothing is known. Deflate:
// 258 bytes of two codes of a bit; LZW: 4,096 of a code of 9; Zstandard: 128 KiB of four bytes; JPEG: 64 values of a bit, and their
// colours at half the size.
var mostFrom = map[int]int64{1: 1, 5: 4096, 7: 4096, 8: 1040, 32946: 1040, 32773: 64, 50000: 1 << 15}

// subsampled is how many times fewer values may be written where two of three colours are coarser.
const subsampled = 4

// extent refuses a block that lies outside the file, or cannot hold its rows. One of no bytes holds no data.
func (s *sampler) extent(index int64) (at, n int64, err error) {
	at, n = s.offsets[index], s.counts[index]
	if n != 0 && (at < 0 || n < 0 || at > s.f.size || n > s.f.size-at) {
		return at, n, &Error{at, fmt.Sprintf("a block of %d bytes is said to be here, in a file of %d", n, s.f.size)}
	}
	p, of, rows := s.p, int64(s.p.Bands), s.p.BlockHeight
	if p.Planar {
		of = 1
	}
	if by := index % (s.across * s.down) / s.across; !p.Tiled {
		rows = min(rows, p.Height-by*p.BlockHeight)
	}
	most := n * mostFrom[p.Compression]
	if p.Photometric == 6 {
		most *= subsampled
	}
	if rowBytes := s.rowBytes(of); most > 0 && most/rowBytes < rows {
		err = &Error{at, fmt.Sprintf("a block of %d bytes, %s, cannot hold %d rows of %d", n, compressed(p), rows, rowBytes)}
	}
	return at, n, err
}

func compressed(p *Page) string {
	if p.Compression == 1 {
		return "not compressed"
	}
	return "compressed by " + p.CompressionName()
}

// rowBytes is the length of a row of a block that holds so many bands.
func (s *sampler) rowBytes(of int64) int64 { return (s.p.BlockWidth*of*int64(s.p.Bits) + 7) / 8 }

// Whole refuses a file whose pictures lack blocks, as one does that was cut off, or have blocks that cannot hold them. Of some
// blocks the first row is decompressed.
func (f *File) Whole() error {
	for i, p := range f.Pages {
		if p.Mask || i > 0 && p.Compression == 6 { // the old JPEG may stand outside blocks
			continue
		}
		s := &sampler{f: f, p: p}
		if err := s.list(); err != nil {
			return err
		}
		written := int64(0)
		for i := range s.across * s.down * s.planes() {
			if _, _, err := s.extent(i); err != nil {
				return err
			}
			if s.counts[i] != 0 {
				written++
			}
		}
		if err := s.try(written); err != nil {
			return err
		}
	}
	return nil
}

// mostTried is how many blocks of a page are tried.
const mostTried = 5

// try decompresses the first row of some of the written blocks, where their compression is read as a stream.
func (s *sampler) try(written int64) error {
	if !slices.Contains([]int{5, 8, 32946, 32773, 50000}, s.p.Compression) {
		return nil
	}
	if _, err := s.valueOf(); err != nil {
		return nil
	}
	s.g = &Grid{Width: 1, Height: 1, Bands: []int{0}, Values: make([]float32, 1)}
	seen, next := int64(0), int64(0)
	of := s.p.Bands
	if s.p.Planar {
		of = 1
	}
	for i := range s.across * s.down * s.planes() {
		if s.counts[i] == 0 {
			continue
		}
		if seen++; (seen-1)*(mostTried-1) < next*max(written-1, 1) {
			continue
		}
		next++
		if s.p.Compression == 5 && s.isOldLZW(s.offsets[i]) {
			continue
		}
		s.columns, s.rows = []int64{0}, []int64{0}
		if err := s.decode(i, area{right: 1, end: 1}, []int{0}, 0, of); err != nil {
			return err
		}
	}
	return nil
}

// isOldLZW reports whether a block is compressed as before TIFF 6.0, its bits from the right.
func (s *sampler) isOldLZW(at int64) bool {
	b, err := s.f.read(at, 2)
	return err == nil && b[0] == 0 && b[1]&1 == 1
}

func (s *sampler) planes() int64 {
	if s.p.Planar {
		return int64(s.p.Bands)
	}
	return 1
}

// nearest gives the source of each of n points.
func nearest(n int, of int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = min(int64((float64(i)+0.5)*float64(of)/float64(n)), of-1)
	}
	return out
}

// block samples the block in column bx and row by, whose points are in rows top to end of
// the grid.
func (s *sampler) block(bx, by int64, top, end int) error {
	p := s.p
	left, _ := slices.BinarySearch(s.columns, bx*p.BlockWidth)
	right, _ := slices.BinarySearch(s.columns, (bx+1)*p.BlockWidth)
	if left == right {
		return nil
	}
	a := area{left, right, top, end, bx * p.BlockWidth, by * p.BlockHeight}
	index := by*s.across + bx
	if !p.Planar {
		return s.decode(index, a, s.g.Bands, 0, p.Bands)
	}
	for i, band := range s.g.Bands {
		if err := s.decode(index+int64(band)*s.across*s.down, a, []int{0}, i, 1); err != nil {
			return err
		}
	}
	return nil
}

// area is the part of the grid, columns left to right and rows top to end, that a block
// whose first pixel is at x, y fills.
type area struct {
	left, right, top, end int
	x, y                  int64
}

// decode fills an area from one block, which holds `of` bands, of which those in bands go
// to the grid from its band first on.
func (s *sampler) decode(index int64, a area, bands []int, first, of int) error {
	at, n, err := s.extent(index)
	if err != nil {
		return err
	}
	if n == 0 { // a block that is not written holds no data
		s.fill(a, first, len(bands))
		return nil
	}
	r := io.NewSectionReader(s.f.r, at, n)
	if whole := wholeDecoders[s.p.Compression]; whole != nil {
		picture, err := whole(s, r)
		if err != nil {
			return &Error{at, err.Error()}
		}
		return s.paint(picture, a, bands, first)
	}
	rowBytes := s.rowBytes(int64(of))
	if rowBytes > maxBlock {
		return &Error{at, fmt.Sprintf("a row of %d bytes", rowBytes)}
	}
	stream, err := s.stream(r)
	if err != nil {
		return &Error{at, err.Error()}
	}
	if closer, ok := stream.(io.Closer); ok {
		defer closer.Close()
	}
	if err := s.readRows(stream, rowBytes, a, bands, first, of); err != nil {
		return &Error{at, err.Error()}
	}
	return nil
}

// readRows reads a block's rows up to the last that is asked for.
func (s *sampler) readRows(stream io.Reader, rowBytes int64, a area, bands []int, first, of int) error {
	value, err := s.valueOf()
	if err != nil {
		return err
	}
	if int64(len(s.row)) != rowBytes {
		s.row = make([]byte, rowBytes)
	}
	row := s.row
	next := int64(0) // the row that the stream is at
	for y := a.top; y < a.end; y++ {
		wanted := s.rows[y] - a.y
		if wanted >= next {
			err := skip(stream, (wanted-next)*rowBytes)
			if err == nil {
				_, err = io.ReadFull(stream, row)
			}
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				return fmt.Errorf("the block ends within its first %d rows of %d bytes", wanted+1, rowBytes)
			}
			if err != nil {
				return err
			}
			next = wanted + 1
			s.undo(row, of)
		}
		for x := a.left; x < a.right; x++ {
			at := (y*s.g.Width + x) * len(s.g.Bands)
			pixel := (s.columns[x] - a.x) * int64(of)
			for i, band := range bands {
				s.g.Values[at+first+i] = value(row, pixel+int64(band))
			}
		}
	}
	return nil
}

// skip passes over bytes; a file as it is on disk is not read for that.
func skip(r io.Reader, n int64) error {
	if n == 0 {
		return nil
	}
	if s, ok := r.(io.Seeker); ok {
		_, err := s.Seek(n, io.SeekCurrent)
		return err
	}
	_, err := io.CopyN(io.Discard, r, n)
	return err
}

// fill marks an area as without data.
func (s *sampler) fill(a area, first, n int) {
	v := float32(math.NaN())
	if s.p.Nodata != nil {
		v = float32(*s.p.Nodata)
	}
	for y := a.top; y < a.end; y++ {
		for x := a.left; x < a.right; x++ {
			at := (y*s.g.Width+x)*len(s.g.Bands) + first
			for i := range n {
				s.g.Values[at+i] = v
			}
		}
	}
}
