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
	planes := int64(1)
	if p.Planar {
		planes = int64(p.Bands)
	}
	if n := s.across * s.down * planes; int64(len(s.offsets)) < n || int64(len(s.counts)) < n {
		return &Error{p.at, fmt.Sprintf("%d blocks of %d are listed", min(len(s.offsets), len(s.counts)), n)}
	}
	return nil
}

// extent refuses a block that lies outside the file. One of no bytes holds no data.
func (s *sampler) extent(index int64) (at, n int64, err error) {
	at, n = s.offsets[index], s.counts[index]
	if n != 0 && (at < 0 || n < 0 || at > s.f.size || n > s.f.size-at) {
		err = &Error{at, fmt.Sprintf("a block of %d bytes is said to be here, in a file of %d", n, s.f.size)}
	}
	return at, n, err
}

// Whole refuses a file that lacks blocks of its main picture, as one does that was cut off.
func (f *File) Whole() error {
	s := &sampler{f: f, p: f.Pages[0]}
	if err := s.list(); err != nil {
		return err
	}
	for i := range min(len(s.offsets), len(s.counts)) {
		if _, _, err := s.extent(int64(i)); err != nil {
			return err
		}
	}
	return nil
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
	rowBits := s.p.BlockWidth * int64(of) * int64(s.p.Bits)
	rowBytes := (rowBits + 7) / 8
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

// readRows reads a block's rows up to the last that is asked for. Rows that a file lacks
// at its end have no data.
func (s *sampler) readRows(stream io.Reader, rowBytes int64, a area, bands []int, first, of int) error {
	value, err := s.valueOf()
	if err != nil {
		return err
	}
	row := make([]byte, rowBytes)
	next := int64(0) // the row that the stream is at
	for y := a.top; y < a.end; y++ {
		wanted := s.rows[y] - a.y
		if wanted >= next {
			if err := skip(stream, (wanted-next)*rowBytes); err == nil {
				_, err = io.ReadFull(stream, row)
				if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
					return err
				}
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
