package raster

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"io"

	"golang.org/x/image/webp"
)

// wholeDecoders are for blocks that are pictures of their own.
var wholeDecoders = map[int]func(*sampler, *io.SectionReader) (image.Image, error){7: decodeJPEG, 50001: decodeWebP}

// wholeBlock reads a block of a bounded size.
func wholeBlock(r *io.SectionReader) ([]byte, error) {
	if r.Size() > maxBlock {
		return nil, fmt.Errorf("a block of %d bytes", r.Size())
	}
	return io.ReadAll(r)
}

// mayHold refuses a block that says it is far larger than the page's blocks are.
func (s *sampler) mayHold(c image.Config, err error) error {
	if err != nil {
		return err
	}
	if int64(c.Width) > max(s.p.BlockWidth, s.p.Width) || int64(c.Height) > max(s.p.BlockHeight, 1) || int64(c.Width)*int64(c.Height) > maxBlock {
		return fmt.Errorf("a block of %d × %d pixels where %d × %d belong", c.Width, c.Height, s.p.BlockWidth, s.p.BlockHeight)
	}
	return nil
}

func decodeJPEG(s *sampler, r *io.SectionReader) (image.Image, error) {
	data, err := wholeBlock(r)
	if err != nil {
		return nil, err
	}
	if s.p.tables.count > 4 && len(data) > 2 { // tables without their end, data without its start
		tables, err := s.f.bytes(s.p.tables)
		if err != nil {
			return nil, err
		}
		data = append(tables[:len(tables)-2:len(tables)-2], data[2:]...)
	}
	if err := s.mayHold(jpeg.DecodeConfig(bytes.NewReader(data))); err != nil {
		return nil, err
	}
	return jpeg.Decode(bytes.NewReader(data))
}

func decodeWebP(s *sampler, r *io.SectionReader) (image.Image, error) {
	data, err := wholeBlock(r)
	if err != nil {
		return nil, err
	}
	if err := s.mayHold(webp.DecodeConfig(bytes.NewReader(data))); err != nil {
		return nil, err
	}
	picture, err := webp.Decode(bytes.NewReader(data))
	return FromVideo(picture), err
}

// FromVideo stretches the planes of a WebP picture that is not lossless to the whole range: they have that of video, 16 to
// 235, and the decoder takes them for a JPEG's.
func FromVideo(picture image.Image) image.Image {
	of, _ := picture.(*image.YCbCr)
	if alpha, ok := picture.(*image.NYCbCrA); ok {
		of = &alpha.YCbCr
	}
	if of == nil {
		return picture
	}
	stretch(of.Y, 16, 219, 0)
	stretch(of.Cb, 128, 224, 128)
	stretch(of.Cr, 128, 224, 128)
	return picture
}

// stretch brings values around one, of a width, to those around another, of 255.
func stretch(plane []byte, from, width, to int) {
	var whole [256]byte
	for v := range whole {
		whole[v] = byte(min(max((v-from)*255/width+to, 0), 255))
	}
	for i, v := range plane {
		plane[i] = whole[v]
	}
}

// paint fills an area from a decoded picture.
func (s *sampler) paint(picture image.Image, a area, bands []int, first int) error {
	b := picture.Bounds()
	if w, h := s.columns[a.right-1]-a.x, s.rows[a.end-1]-a.y; w >= int64(b.Dx()) || h >= int64(b.Dy()) {
		return fmt.Errorf("a block of %d × %d pixels lacks the pixel at %d, %d", b.Dx(), b.Dy(), w, h)
	}
	raw, _ := picture.(*image.YCbCr)
	if s.p.Photometric != 2 || s.p.Compression != 7 {
		raw = nil // the decoder's colours are right
	}
	for y := a.top; y < a.end; y++ {
		for x := a.left; x < a.right; x++ {
			px, py := b.Min.X+int(s.columns[x]-a.x), b.Min.Y+int(s.rows[y]-a.y)
			var c [4]float32
			if raw != nil { // the three planes are red, green and blue
				v := raw.YCbCrAt(px, py)
				c = [4]float32{float32(v.Y), float32(v.Cb), float32(v.Cr), 255}
			} else {
				r, g, b, alpha := picture.At(px, py).RGBA()
				c = [4]float32{float32(r >> 8), float32(g >> 8), float32(b >> 8), float32(alpha >> 8)}
			}
			at := (y*s.g.Width+x)*len(s.g.Bands) + first
			for i, band := range bands {
				s.g.Values[at+i] = c[min(band, 3)]
			}
		}
	}
	return nil
}

// Colours gives the colours of a page whose values are indexes, 256 steps a channel.
func (f *File) Colours(p *Page) ([][3]uint8, error) {
	v, err := f.integers(p.colours)
	if err != nil || len(v) < 3 || p.Photometric != 3 {
		return nil, err
	}
	n := len(v) / 3
	out := make([][3]uint8, n)
	for i := range out {
		out[i] = [3]uint8{uint8(v[i] >> 8), uint8(v[n+i] >> 8), uint8(v[2*n+i] >> 8)}
	}
	return out, nil
}
