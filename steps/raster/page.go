package raster

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Page is one picture of a file: the main one, an overview, a mask or a page.
type Page struct {
	Width, Height int64
	Reduced, Mask bool
	Nodata        *float64
	Geo           *Geo
	GeoError      error             // why Geo lacks something that the file means to say
	Texts         map[string]string // description, software, dateTime …
	Pixels
	Blocks

	at int64
}

// Pixels say how a page's values are written.
type Pixels struct {
	Bands, Bits int
	Sample      int // 1 unsigned, 2 signed, 3 floating point
	Compression int
	Predictor   int
	Photometric int
	Planar      bool // each band in blocks of its own
	Alpha       bool // the last band is transparency

	tables    field // of JPEG
	colours   field
	fillOrder int64
}

// Blocks are a page's strips or tiles.
type Blocks struct {
	Tiled       bool
	BlockWidth  int64 // of a strip, the page's
	BlockHeight int64

	offsets, counts field
}

// The tags that are read.
const (
	tagSubfile, tagWidth, tagHeight, tagBits, tagCompression, tagPhotometric = 254, 256, 257, 258, 259, 262
	tagFillOrder, tagOffsets, tagBands, tagRows, tagCounts, tagPlanar        = 266, 273, 277, 278, 279, 284
	tagPredictor, tagColours, tagTileWidth, tagTileHeight                    = 317, 320, 322, 323
	tagTileOffsets, tagTileCounts, tagExtra, tagSample, tagTables            = 324, 325, 338, 339, 347
	tagNodata                                                                = 42113
)

var textTags = map[uint16]string{269: "documentName", 270: "description", 271: "make", 272: "model", 305: "software", 306: "dateTime", 315: "artist", 33432: "copyright"}

// reader reads fields of a directory and keeps the first error.
type reader struct {
	f      *File
	fields map[uint16]field
	err    error
}

func (r *reader) all(tag uint16) []int64 {
	v, err := r.f.integers(r.fields[tag])
	if r.err == nil {
		r.err = err
	}
	return v
}

// one is the first value of a field, or what it is when the field is not there.
func (r *reader) one(tag uint16, absent int64) int64 {
	if v := r.all(tag); len(v) > 0 {
		return v[0]
	}
	return absent
}

func (f *File) page(at int64) (*Page, int64, error) {
	fields, next, err := f.directory(at)
	if err != nil {
		return nil, 0, err
	}
	r := &reader{f: f, fields: fields}
	p := &Page{at: at, Width: r.one(tagWidth, 0), Height: r.one(tagHeight, 0), Texts: map[string]string{}}
	p.Pixels = Pixels{Bands: int(r.one(tagBands, 1)), Bits: int(r.one(tagBits, 1)), Sample: int(r.one(tagSample, 1)),
		Compression: int(r.one(tagCompression, 1)), Predictor: int(r.one(tagPredictor, 1)), Photometric: int(r.one(tagPhotometric, 1)),
		Planar: r.one(tagPlanar, 1) == 2, fillOrder: r.one(tagFillOrder, 1), tables: fields[tagTables], colours: fields[tagColours]}
	subfile := r.one(tagSubfile, 0)
	p.Reduced, p.Mask = subfile&1 != 0, subfile&4 != 0
	if extra := r.all(tagExtra); len(extra) > 0 {
		last := extra[len(extra)-1]
		p.Alpha = last == 1 || last == 2
	}
	p.blocks(r)
	for tag, name := range textTags {
		if v, ok := fields[tag]; ok && v.kind == 2 {
			text, err := f.text(v)
			if err == nil && text != "" {
				p.Texts[name] = text
			}
		}
	}
	if v, ok := fields[tagNodata]; ok {
		if text, err := f.text(v); err == nil {
			if n, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
				p.Nodata = &n
			}
		}
	}
	if r.err == nil {
		r.err = p.check()
	}
	if r.err == nil {
		p.Geo, p.GeoError = f.geo(fields)
	}
	return p, next, r.err
}

func (p *Page) blocks(r *reader) {
	if p.Tiled = r.fields[tagTileOffsets].count > 0; p.Tiled {
		p.BlockWidth, p.BlockHeight = r.one(tagTileWidth, 0), r.one(tagTileHeight, 0)
		p.offsets, p.counts = r.fields[tagTileOffsets], r.fields[tagTileCounts]
		return
	}
	p.BlockWidth, p.BlockHeight = p.Width, min(r.one(tagRows, p.Height), p.Height)
	p.offsets, p.counts = r.fields[tagOffsets], r.fields[tagCounts]
}

// check refuses what no picture can be. A size that cannot be decoded is not refused
// here: what it says of itself can be told.
func (p *Page) check() error {
	const most = 1 << 31
	switch {
	case p.Width <= 0 || p.Height <= 0 || p.Width >= most || p.Height >= most:
		return &Error{p.at, fmt.Sprintf("a picture of %d × %d pixels", p.Width, p.Height)}
	case p.Bands <= 0 || p.Bands > 1<<16 || p.Bits <= 0 || p.Bits > 128:
		return &Error{p.at, fmt.Sprintf("%d bands of %d bits", p.Bands, p.Bits)}
	case p.BlockWidth < 0 || p.BlockHeight < 0 || p.BlockWidth >= most || p.BlockHeight >= most:
		return &Error{p.at, fmt.Sprintf("blocks of %d × %d pixels", p.BlockWidth, p.BlockHeight)}
	}
	return nil
}

// Type names the values of a pixel: uint8, int16, float32.
func (p *Page) Type() string {
	kind, ok := map[int]string{1: "uint", 2: "int", 3: "float", 5: "complexint", 6: "complexfloat"}[p.Sample]
	if !ok {
		kind = "undefined"
	}
	return kind + strconv.Itoa(p.Bits)
}

// CompressionName names how blocks are compressed.
func (p *Page) CompressionName() string {
	name, ok := map[int]string{1: "none", 2: "CCITT RLE", 3: "CCITT group 3", 4: "CCITT group 4", 5: "LZW", 6: "old JPEG", 7: "JPEG",
		8: "deflate", 32946: "deflate", 32773: "PackBits", 34712: "JPEG 2000", 34887: "LERC", 34925: "LZMA", 50000: "Zstandard", 50001: "WebP"}[p.Compression]
	if !ok {
		name = strconv.Itoa(p.Compression)
	}
	return name
}

// IsNodata reports whether a value stands for no data.
func (p *Page) IsNodata(v float64) bool {
	return p.Nodata != nil && (v == *p.Nodata || math.IsNaN(v) && math.IsNaN(*p.Nodata))
}
