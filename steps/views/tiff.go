package views

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"os"
	"slices"

	"bagpipe/steps/raster"
)

// drawTIFF draws the main picture of a TIFF.
func drawTIFF(f *os.File) (image.Image, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	t, err := raster.Open(f, info.Size())
	if err != nil {
		return nil, err
	}
	p := t.Best(Browse)
	palette, err := t.Colours(p)
	if err != nil {
		return nil, err
	}
	if name := map[int]string{6: "YCbCr", 8: "CIELab", 9: "ICCLab", 10: "ITULab"}[p.Photometric]; name != "" && p.Bands >= 3 && !decoded(p) {
		return nil, fmt.Errorf("TIFF: colours of %s, compressed by %s, are not read", name, p.CompressionName())
	}
	bands := shown(p)
	w, h := fit(p.Width, p.Height, Browse)
	g, err := t.Sample(p, w, h, bands)
	if err != nil {
		return nil, err
	}
	if main := t.Pages[0]; p.Nodata == nil {
		p.Nodata = main.Nodata
	}
	return colour(p, g, palette), nil
}

// shown gives the bands that become red, green and blue, or grey, and transparency last.
func shown(p *raster.Page) []int {
	colours := p.Bands
	if p.Alpha && p.Bands > 1 {
		colours--
	}
	var bands []int
	switch {
	case colours < 3:
		bands = []int{0}
	case inks(p):
		return []int{0, 1, 2, 3}
	case p.Photometric == 2 || decoded(p) || colours == 3:
		bands = []int{0, 1, 2}
	default: // satellites count from blue
		bands = []int{2, 1, 0}
	}
	if colours < p.Bands {
		bands = append(bands, p.Bands-1)
	}
	return bands
}

// decoded reports whether blocks are pictures of their own, whose decoder gives red, green and blue.
func decoded(p *raster.Page) bool { return p.Compression == 7 || p.Compression == 50001 }

// inks reports whether a page's values are cyan, magenta, yellow and black.
func inks(p *raster.Page) bool { return p.Photometric == 5 && p.Bands >= 4 && !decoded(p) }

// colour makes a picture of sampled values.
func colour(p *raster.Page, g *raster.Grid, palette [][3]uint8) image.Image {
	n := len(g.Bands)
	channels := n
	if n == 2 || n == 4 && !inks(p) {
		channels--
	}
	to := make([]func(float32) uint8, channels)
	for i := range to {
		low, high := span(p, g, i)
		to[i] = func(v float32) uint8 {
			return uint8(math.Round(math.Min(math.Max(float64(v)-low, 0)/(high-low), 1) * 255))
		}
	}
	opaque := opaqueAt(p, g)
	out := image.NewNRGBA(image.Rect(0, 0, g.Width, g.Height))
	for i := range g.Width * g.Height {
		v := g.Values[i*n : i*n+n]
		if nothing(p, v[:channels]) {
			continue // transparent
		}
		c := color.NRGBA{A: 255}
		if channels < n {
			c.A = uint8(math.Min(math.Max(float64(v[n-1]), 0), opaque) * 255 / opaque)
		}
		switch {
		case palette != nil:
			if k := int(v[0]); k >= 0 && k < len(palette) {
				c.R, c.G, c.B = palette[k][0], palette[k][1], palette[k][2]
			}
		case channels == 1:
			grey := to[0](v[0])
			if p.Photometric == 0 {
				grey = 255 - grey
			}
			c.R, c.G, c.B = grey, grey, grey
		case channels == 4:
			c.R, c.G, c.B = color.CMYKToRGB(to[0](v[0]), to[1](v[1]), to[2](v[2]), to[3](v[3]))
		default:
			c.R, c.G, c.B = to[0](v[0]), to[1](v[1]), to[2](v[2])
		}
		out.SetNRGBA(i%g.Width, i/g.Width, c)
	}
	return out
}

// opaqueAt is the value of transparency that hides what is below: the type's greatest, or
// 255 where no value is greater, as some programs write into 16 bits.
func opaqueAt(p *raster.Page, g *raster.Grid) float64 {
	if p.Bits <= 8 || p.Compression == 50001 {
		return 255
	}
	most := float32(0)
	for i := len(g.Bands) - 1; i < len(g.Values); i += len(g.Bands) {
		most = max(most, g.Values[i])
	}
	switch {
	case p.Sample == 3:
		return math.Max(float64(most), 1e-30)
	case most <= 255:
		return 255
	}
	return float64(uint64(1)<<min(p.Bits, 32) - 1)
}

// nothing reports whether a pixel has no data: in no channel, or in one no number, of which no colour can be made.
func nothing(p *raster.Page, v []float32) bool {
	if slices.ContainsFunc(v, func(one float32) bool { return one != one }) {
		return true
	}
	return !slices.ContainsFunc(v, func(one float32) bool { return !isNodata(p, one) })
}

// isNodata compares as exactly as sampled values are.
func isNodata(p *raster.Page, v float32) bool {
	return p.IsNodata(float64(v)) || p.Nodata != nil && v == float32(*p.Nodata)
}

// span gives the values that become black and white in a channel: of up to 8 bits the
// type's, of more the 2nd and the 98th percentile.
func span(p *raster.Page, g *raster.Grid, channel int) (low, high float64) {
	if p.Bits <= 8 && p.Sample == 1 || inks(p) && p.Bits <= 32 && p.Sample == 1 {
		return 0, float64(uint64(1)<<p.Bits - 1)
	}
	if decoded(p) {
		return 0, 255
	}
	var values []float32
	for i := channel; i < len(g.Values); i += len(g.Bands) {
		if v := g.Values[i]; v == v && !math.IsInf(float64(v), 0) && !isNodata(p, v) {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return 0, 1
	}
	slices.Sort(values)
	low, high = float64(values[len(values)*2/100]), float64(values[(len(values)-1)*98/100])
	if high <= low {
		low, high = float64(values[0]), float64(values[len(values)-1])
	}
	if high <= low {
		low, high = low-1, low+1
	}
	return low, high
}

// maxPixels is how large a picture may be that is decoded as a whole.
const maxPixels = 120_000_000

// refuse says that a picture is too large, or has no size.
func refuse(c image.Config) error {
	if c.Width <= 0 || c.Height <= 0 || int64(c.Width)*int64(c.Height) > maxPixels {
		return fmt.Errorf("picture: at byte 0: %d × %d pixels; at most %d are decoded", c.Width, c.Height, maxPixels)
	}
	return nil
}
