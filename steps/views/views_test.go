package views

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/steps/raster"
	"bagpipe/steps/space"

	"github.com/jonas-p/go-shp"
)

const fixtures = "../../../shared/fixtures"

func look(t testing.TB, path string) image.Image {
	t.Helper()
	if _, err := os.Stat(path); os.IsNotExist(err) {
		t.Skip("the fixtures are not here")
	}
	a, err := Draw(Request{Path: path, Name: filepath.Base(path)})
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return nil
	}
	if thumb, err := jpeg.DecodeConfig(bytes.NewReader(a.Thumb)); err != nil || max(thumb.Width, thumb.Height) > Thumb {
		t.Errorf("%s: thumb %+v, %v", path, thumb, err)
	}
	browse, err := jpeg.Decode(bytes.NewReader(a.Browse))
	if err != nil || max(browse.Bounds().Dx(), browse.Bounds().Dy()) > Browse {
		t.Errorf("%s: browse %v, %v", path, browse.Bounds(), err)
	}
	return browse
}

// Every real file is drawn, in its proportions, and shows something.
func TestDrawFixtures(t *testing.T) {
	for file, size := range map[string]image.Point{
		"geotiff/RGBA.uint16.tif":                       {634, 411}, // 16 bits, deflate
		"geotiff/green.tif":                             {64, 64},   // tiles
		"geotiff/be_cog.tiff":                           {64, 64},   // big-endian, JPEG
		"geotiff/rgba8_tiled.tiff":                      {64, 64},   // BigTIFF, WebP
		"geotiff/rgba8_cog_big.tiff":                    {64, 64},   // Zstandard
		"geotiff/geo-5b.tif":                            {10, 10},
		"geotiff/seq-3c-16b-bigtiff-1b40ca6e.tiff":      {16, 16},
		"worldfile/toronto.tif":                         {125, 112},
		"gis/nj441df9572/content/MCE_AF2G_2010.tif":     {1024, 511}, // 2 bits, LZW
		"gis/cc044gt0726/content/sanluisobispo1996.shp": {1024, 611},
		"images/gps.jpg":                                {920, 570},
		"images/has-lens-info.jpg":                      {},
	} {
		picture := look(t, filepath.Join(fixtures, file))
		if picture == nil {
			continue
		}
		b := picture.Bounds()
		if size != (image.Point{}) && (abs(b.Dx()-size.X) > 1 || abs(b.Dy()-size.Y) > 1) {
			t.Errorf("%s: %v, want %v", file, b, size)
		}
		seen := map[color.Color]bool{}
		for y := b.Min.Y; y < b.Max.Y; y += 3 {
			for x := b.Min.X; x < b.Max.X; x += 3 {
				seen[picture.At(x, y)] = true
			}
		}
		if len(seen) < 2 && !strings.Contains(file, "green") && !strings.Contains(file, "5b") {
			t.Errorf("%s: all of one colour", file)
		}
	}
}

// tiff makes a TIFF of one band, in strips of one row.
func tiff(width, height, bits int, nodata string, value func(x, y int) uint16) []byte {
	var b bytes.Buffer
	writeTIFF(&b, width, height, bits, nodata, value)
	return b.Bytes()
}

func writeTIFF(b io.Writer, width, height, bits int, nodata string, value func(x, y int) uint16) {
	le := func(v any) { _ = binary.Write(b, binary.LittleEndian, v) }
	rowBytes := width * bits / 8
	_, _ = io.WriteString(b, "II*\x00")
	le(uint32(8 + rowBytes*height))
	row := make([]byte, rowBytes)
	for y := range height {
		for x := range width {
			if bits == 16 {
				binary.LittleEndian.PutUint16(row[2*x:], value(x, y))
			} else {
				row[x] = uint8(value(x, y))
			}
		}
		_, _ = b.Write(row)
	}
	type entry struct {
		tag, kind uint16
		values    []uint32
	}
	offsets, counts := make([]uint32, height), make([]uint32, height)
	for y := range height {
		offsets[y], counts[y] = uint32(8+y*rowBytes), uint32(rowBytes)
	}
	entries := []entry{{256, 4, []uint32{uint32(width)}}, {257, 4, []uint32{uint32(height)}}, {258, 4, []uint32{uint32(bits)}}, {259, 4, []uint32{1}},
		{262, 4, []uint32{1}}, {273, 4, offsets}, {277, 4, []uint32{1}}, {278, 4, []uint32{1}}, {279, 4, counts}}
	at := uint32(8 + rowBytes*height + 2 + 12*(len(entries)+1) + 4)
	le(uint16(len(entries) + 1))
	var tail []uint32
	for _, e := range entries {
		le(e.tag)
		le(e.kind)
		le(uint32(len(e.values)))
		if len(e.values) == 1 {
			le(e.values[0])
			continue
		}
		le(at + uint32(4*len(tail)))
		tail = append(tail, e.values...)
	}
	text := append([]byte(nodata), 0, 0, 0, 0)[:4]
	le(uint16(42113))
	le(uint16(2))
	le(uint32(4))
	_, _ = b.Write(text)
	le(uint32(0))
	le(tail)
}

func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// 16 bits are stretched over all greys; where there is no data is white.
func TestStretchAndNodata(t *testing.T) {
	path := write(t, "a.tif", tiff(200, 100, 16, "0", func(x, y int) uint16 {
		if x < 50 {
			return 0 // no data
		}
		return uint16(1000 + x)
	}))
	p := look(t, path)
	grey := func(x int) int { r, _, _, _ := p.At(x, 50).RGBA(); return int(r >> 8) }
	if grey(20) < 250 || grey(58) > 20 || grey(195) < 235 || math.Abs(float64(grey(125)-127)) > 10 {
		t.Errorf("greys %d %d %d %d", grey(20), grey(58), grey(125), grey(195))
	}
}

// A pixel that is no number in one of its bands is white, whatever the others say.
func TestNodataInOneBand(t *testing.T) {
	nan := float32(math.NaN())
	p := &raster.Page{Pixels: raster.Pixels{Bands: 3, Bits: 32, Sample: 3}}
	picture := colour(p, &raster.Grid{Width: 3, Height: 1, Bands: []int{0, 1, 2}, Values: []float32{1, 2, nan, nan, nan, nan, 1, 2, 3}}, nil)
	for x, opaque := range []bool{false, false, true} {
		if _, _, _, a := picture.At(x, 0).RGBA(); (a != 0) != opaque {
			t.Errorf("pixel %d has an opacity of %d", x, a)
		}
	}
}

// A moving picture is drawn as its first.
func TestGIF(t *testing.T) {
	var b bytes.Buffer
	frames := &gif.GIF{}
	for _, c := range []color.Color{color.White, color.Black} {
		frames.Image, frames.Delay = append(frames.Image, image.NewPaletted(image.Rect(0, 0, 40, 20), color.Palette{c})), append(frames.Delay, 1)
	}
	if err := gif.EncodeAll(&b, frames); err != nil {
		t.Fatal(err)
	}
	if p := look(t, write(t, "a.gif", b.Bytes())); p == nil || p.Bounds() != image.Rect(0, 0, 40, 20) {
		t.Errorf("%v", p)
	} else if r, _, _, _ := p.At(5, 5).RGBA(); r>>8 < 250 {
		t.Errorf("grey %d", r>>8)
	}
}

// A picture far larger than memory may be is sampled; one whose blocks lie is refused.
func TestLargeAndLying(t *testing.T) {
	data := tiff(64, 64, 8, "", func(x, y int) uint16 { return uint16(x + y) })
	grown := bytes.Clone(data)
	at := bytes.Index(grown, []byte{0, 1, 4, 0, 1, 0, 0, 0})
	binary.LittleEndian.PutUint32(grown[at+8:], 1<<31-1)
	if _, err := Draw(Request{Path: write(t, "a.tif", grown), Name: "a.tif"}); err == nil || !strings.Contains(err.Error(), "at byte") {
		t.Errorf("a row of 2^31 pixels: %v", err)
	}
	var small bytes.Buffer
	if err := png.Encode(&small, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	bomb := bytes.Clone(small.Bytes())
	binary.BigEndian.PutUint32(bomb[16:], 100000)
	binary.BigEndian.PutUint32(bomb[20:], 100000)
	if _, err := Draw(Request{Path: write(t, "a.png", bomb), Name: "a.png"}); err == nil {
		t.Error("10,000 megapixels were decoded")
	}
	for _, c := range []struct{ data, says string }{{"none", "picture: at byte 0: "}, {string(small.Bytes()[:40]), "picture: before byte "}} {
		if _, err := Draw(Request{Path: write(t, "a.png", []byte(c.data)), Name: "a.png"}); err == nil || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.data, err, c.says)
		}
	}
	if _, err := Draw(Request{Path: write(t, "a.tif", data[:300]), Name: "a.tif"}); err == nil {
		t.Error("half a TIFF was drawn")
	}
}

// A TIFF by another name is drawn as a TIFF, and refused with its byte, not decoded by what else registers itself for TIFFs.
func TestTIFFByAnotherName(t *testing.T) {
	if p := look(t, write(t, "a.jpg", tiff(200, 100, 8, "", func(x, y int) uint16 { return uint16(x) }))); p == nil || p.Bounds() != image.Rect(0, 0, 200, 100) {
		t.Errorf("%v", p)
	}
	far := "II*\x00\x86\x00\x00\xe0" + strings.Repeat("\xff", 300) // its directory is beyond 3 GiB
	if _, err := Draw(Request{Path: write(t, "a.png", []byte(far)), Name: "a.png"}); err == nil || !strings.Contains(err.Error(), "TIFF: at byte 3758096518") {
		t.Errorf("%v", err)
	}
}

func TestTurned(t *testing.T) {
	from := image.NewRGBA(image.Rect(0, 0, 3, 2))
	from.SetRGBA(0, 0, color.RGBA{255, 0, 0, 255})
	for orientation, at := range map[int]image.Point{1: {0, 0}, 2: {2, 0}, 3: {2, 1}, 4: {0, 1}, 5: {0, 0}, 6: {1, 0}, 7: {1, 2}, 8: {0, 2}} {
		if r, _, _, _ := turned(from, orientation).At(at.X, at.Y).RGBA(); r == 0 {
			t.Errorf("orientation %d: the corner is not at %v", orientation, at)
		}
	}
}

// FuzzDraw draws small pictures of every kind. Large ones, and JPEGs made of what is drawn, would take most of the time.
// So does minimising, unless -fuzzminimizetime 10x bounds it.
func FuzzDraw(f *testing.F) {
	endings := []string{".tif", ".png", ".gif", ".jpg", ".webp", ".shp"}
	grey := image.NewGray(image.Rect(0, 0, 9, 7))
	for i, encode := range []func(io.Writer) error{
		func(w io.Writer) error { return png.Encode(w, grey) },
		func(w io.Writer) error { return gif.Encode(w, grey, nil) },
		func(w io.Writer) error { return jpeg.Encode(w, grey, nil) },
	} {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i+1), b.Bytes(), "")
	}
	for _, bits := range []int{8, 16} {
		plain := tiff(9, 7, bits, "0", func(x, y int) uint16 { return uint16(x * y) })
		for _, compression := range []uint32{1, 4, 5, 7, 8, 32773, 50000, 50001} {
			entry := []byte{3, 1, 4, 0, 1, 0, 0, 0}
			f.Add(byte(0), bytes.Replace(plain, append(entry, 1, 0, 0, 0), binary.LittleEndian.AppendUint32(entry, compression), 1), "")
		}
	}
	shape := append(append([]byte{0, 0, 0x27, 0x0a}, make([]byte, 96)...), 0, 0, 0, 1, 0, 0, 0, 10, 1, 0, 0, 0)
	f.Add(byte(5), append(shape, make([]byte, 16)...), space.FromEPSG(4326).WKT)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, kind byte, data []byte, prj string) {
		q := Request{Name: "a" + endings[int(kind)%len(endings)], Path: filepath.Join(dir, "fuzzed")}
		if !raster.IsTIFF(data) {
			if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil && c.Width*c.Height > 1<<14 {
				return
			}
		}
		if f, err := raster.Open(bytes.NewReader(data), int64(len(data))); err == nil {
			if p := f.Best(Browse); p.Width*p.Height > 1<<14 || p.BlockWidth*p.BlockHeight*int64(p.Bands) > 1<<20 {
				return
			}
		}
		if err := os.WriteFile(q.Path, data, 0o600); err != nil {
			t.Skip(err)
		}
		if prj != "" {
			q.Prj = filepath.Join(dir, "prj")
			if err := os.WriteFile(q.Prj, []byte(prj), 0o600); err != nil {
				t.Skip(err)
			}
		}
		if p, _, err := pictureOf(q); err == nil && p.Bounds().Empty() {
			t.Error("drawn, and nothing is there")
		}
	})
}

// Shapes on both sides of the antimeridian are drawn across it, as they would be elsewhere; others as they lie.
func TestShapesAcrossTheAntimeridian(t *testing.T) {
	prj := ""
	var warnings []string
	drawn := func(parts ...[2]float64) image.Point {
		t.Helper()
		file := filepath.Join(t.TempDir(), "a.shp")
		w, err := shp.Create(file, shp.POLYGON)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			w.Write((*shp.Polygon)(shp.NewPolyLine([][]shp.Point{{{X: p[0], Y: -19}, {X: p[0], Y: -10}, {X: p[1], Y: -10}, {X: p[1], Y: -19}, {X: p[0], Y: -19}}})))
		}
		w.Close()
		q := Request{Path: file, Name: "a.shp"}
		if prj != "" {
			q.Prj = write(t, "a.prj", []byte(prj))
		}
		var img image.Image
		img, warnings, err = drawShapes(q)
		if err != nil {
			t.Fatal(err)
		}
		return img.Bounds().Size()
	}
	if across, elsewhere := drawn([2]float64{175, 180}, [2]float64{-180, -176}), drawn([2]float64{15, 20}, [2]float64{20, 24}); across != elsewhere {
		t.Errorf("%v, not %v", across, elsewhere)
	}
	if wide := drawn([2]float64{-170, -20}, [2]float64{40, 170}); wide.Y > 100 || warnings != nil {
		t.Errorf("%v, %q", wide, warnings)
	}
	// Whether they are degrees their .prj says, and is guessed without one.
	for text, c := range map[string]struct {
		across bool
		says   string
	}{
		"":                                   {true, "no .prj: the shapes are taken for degrees, and drawn across the antimeridian"},
		"PROJCS[":                            {true, ".prj: reference system: at byte 7: expected , or ]: the shapes are taken for degrees, and drawn across the antimeridian"},
		space.FromEPSG(4326).WKT:             {true, ""},
		space.FromEPSG(32633).WKT:            {false, ""},
		`LOCAL_CS["a building",UNIT["m",1]]`: {false, ""},
		`GEOGCS["Mars",DATUM["Mars",SPHEROID["Mars",3396190,169.9]],PRIMEM["Reference",0],UNIT["degree",0.0174532925199433]]`: {true, ""},
	} {
		prj = text
		if size := drawn([2]float64{175, 180}, [2]float64{-180, -176}); (size.Y > 100) != c.across || strings.Join(warnings, "; ") != c.says {
			t.Errorf("%.30q: %v, says %q", text, size, warnings)
		}
	}
}
