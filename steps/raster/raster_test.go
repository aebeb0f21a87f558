package raster

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const fixtures = "../../../shared/fixtures/geotiff"

func open(t testing.TB, path string) *File {
	t.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		t.Skip("the fixtures are not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	x, err := Open(f, info.Size())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return x
}

// The values stand in the fixtures' README, as listgeo and tiffinfo read them.
func TestGeoTIFFs(t *testing.T) {
	for _, c := range []struct {
		file                string
		width, height       int64
		bands, bits, code   int
		west, north, e, s   float64
		compression         string
		big, tiled, rotated bool
	}{
		{"byte.tif", 20, 20, 1, 8, 26711, 440720, 3751320, 441920, 3750120, "none", false, false, false},
		{"RGBA.uint16.tif", 634, 411, 4, 16, 32612, 733268.983, 4078301.244, 734143.892, 4077734.334, "deflate", false, false, false},
		{"green.tif", 64, 64, 3, 8, 4326, 0, 0, 32, -32, "none", false, true, false},
		{"utmsmall_topright_32611.tif", 50, 50, 1, 8, 32611, 443721.263, 3751514.134, 446721.272, 3748514.125, "none", false, false, false},
		{"utmsmall_bottomright_3857.tif", 50, 50, 1, 8, 3857, -13092121.707, 4012112.592, -13088503.043, 4008493.929, "none", false, false, false},
		{"geo-5b.tif", 10, 10, 5, 16, 21897, 440720, 100000, 441320, 99400, "none", false, false, false},
		{"model_transformation.tif", 10, 10, 64, 8, 32613, 418080, 4423680, 418180, 4423780, "none", false, false, true},
		{"rgba8_strip.tiff", 64, 64, 4, 8, 3857, 0, 0, 64, -64, "WebP", false, false, false},
		{"rgba8_tiled.tiff", 64, 64, 4, 8, 3857, 0, 0, 64, -64, "WebP", true, true, false},
		{"rgba8_cog_big.tiff", 64, 64, 4, 8, 3857, 0, 0, 64, -64, "Zstandard", true, true, false},
	} {
		p := open(t, filepath.Join(fixtures, c.file))
		m := p.Pages[0]
		if m.Width != c.width || m.Height != c.height || m.Bands != c.bands || m.Bits != c.bits || p.Big != c.big || m.Tiled != c.tiled {
			t.Errorf("%s: %d × %d, %d × %d bits, big %v, tiled %v", c.file, m.Width, m.Height, m.Bands, m.Bits, p.Big, m.Tiled)
		}
		if m.Geo == nil || m.Geo.Affine == nil || m.Geo.Code != c.code {
			t.Errorf("%s: %+v", c.file, m.Geo)
			continue
		}
		k := Corners(*m.Geo.Affine, m.Width, m.Height)
		for i, d := range []float64{k[0][0] - c.west, k[0][1] - c.north, k[2][0] - c.e, k[2][1] - c.s} {
			if math.Abs(d) > 0.001 {
				t.Errorf("%s: corner %d is %v off", c.file, i, d)
			}
		}
	}
}

func TestTIFFsWithoutPosition(t *testing.T) {
	for file, big := range map[string]bool{"be_cog.tiff": false, "seq-3c-16b-bigtiff-1b40ca6e.tiff": true} {
		f := open(t, filepath.Join(fixtures, file))
		if f.Big != big || f.Pages[0].Geo != nil && f.Pages[0].Geo.Affine != nil {
			t.Errorf("%s: %+v", file, f.Pages[0])
		}
	}
}

// small makes a TIFF with one directory at byte 8 of these fields, each a LONG, followed
// by next.
func small(next uint32, fields ...uint32) []byte {
	var b bytes.Buffer
	le := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) }
	b.WriteString("II*\x00")
	le(uint32(8))
	le(uint16(len(fields) / 2))
	for i := 0; i < len(fields); i += 2 {
		le(uint16(fields[i]))
		le(uint16(4))
		le(uint32(1))
		le(fields[i+1])
	}
	le(next)
	return b.Bytes()
}

func TestBrokenTIFFs(t *testing.T) {
	long := small(0, tagWidth, 10, tagHeight, 10)
	long[8+2+4] = 0xff // the count of the first field
	long[8+2+7] = 0x7f
	for _, c := range []struct {
		name, says string
		data       []byte
	}{
		{"empty", "no TIFF", nil},
		{"loop", "at byte 8: the directories loop", small(8, tagWidth, 10, tagHeight, 10)},
		{"two thousand million pixels", "a picture of 2147483648 × 10", small(0, tagWidth, 1<<31, tagHeight, 10)},
		{"none", "a picture of 0 × 0", small(0)},
		{"bands", "4294967295 bands", small(0, tagWidth, 1, tagHeight, 1, tagBands, 0xffffffff)},
		{"beyond the end", "in a file of", []byte("II*\x00\xff\xff\xff\x00")},
		{"no directory", "no directory", []byte("II*\x00\x00\x00\x00\x00")},
		{"count", "a field of 2130706687 values", long},
	} {
		if _, err := Open(bytes.NewReader(c.data), int64(len(c.data))); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}

// Blocks that are there, and cannot hold their pixels, are refused by whoever looks whether the file is whole, and by whoever draws it.
func TestBlocksThatHoldNothing(t *testing.T) {
	var cut bytes.Buffer
	z := zlib.NewWriter(&cut)
	_, _ = z.Write(make([]byte, 60))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	head := func(width, height, compression, at, n uint32) []byte {
		return small(0, tagWidth, width, tagHeight, height, tagBits, 8, tagCompression, compression, tagOffsets, at, tagRows, height, tagCounts, n)
	}
	at := uint32(len(head(1, 1, 1, 0, 0)))
	for _, c := range []struct {
		name, says                    string
		width, height, compression, n uint32
		data                          []byte
	}{
		{"four gigabytes in a hundred", "a block of 100 bytes, not compressed, cannot hold 65536 rows of 65536", 65536, 65536, 1, 100, make([]byte, 100)},
		{"compressed", "a block of 100 bytes, compressed by deflate, cannot hold 2 rows of 2147483647", 1<<31 - 1, 2, 8, 100, make([]byte, 100)},
		{"run lengths", "compressed by PackBits, cannot hold 200 rows of 100", 100, 200, 32773, 100, make([]byte, 100)},
		{"nothing", "at byte 8: none of its 1 blocks holds a byte", 10, 10, 1, 0, nil},
		{"not deflated", "invalid header", 100, 100, 8, 100, make([]byte, 100)},
		{"cut", "the block ends within its first 1 rows of 100 bytes", 100, 1, 8, uint32(cut.Len()), cut.Bytes()},
		{"beyond the end", "a block of 100 bytes is said to be here", 100, 1, 1, 100, make([]byte, 99)},
	} {
		data := append(head(c.width, c.height, c.compression, at, c.n), c.data...)
		f, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		_, drawn := f.Sample(f.Pages[0], 10, 1, []int{0})
		for _, err := range []error{f.Whole(), drawn} {
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "at byte ") {
				t.Errorf("%s: %v, want %q", c.name, err, c.says)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(small(0, tagWidth, 10, tagHeight, 10, tagOffsets, 8, tagCounts, 10))
	f.Add(small(8, tagWidth, 10, tagHeight, 10))
	names, _ := filepath.Glob(fixtures + "/*.tif*")
	for _, n := range names {
		if data, err := os.ReadFile(n); err == nil && len(data) < 10000 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := Open(bytes.NewReader(data), int64(len(data)))
		if err == nil && len(x.Pages) == 0 {
			t.Error("no page and no error")
		}
		if err == nil {
			_ = x.Whole() // it ends
		}
	})
}
