package describe

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bagpipe/steps/space"
)

// geoTIFF is a TIFF of 10 × 10 pixels of 100 units, whose upper left corner is tied to a place, with keys of four numbers each.
func geoTIFF(x, y float64, texts string, keys ...uint16) string {
	le := binary.LittleEndian
	doubles := func(all ...float64) (b []byte) {
		for _, v := range all {
			b = le.AppendUint64(b, math.Float64bits(v))
		}
		return b
	}
	shorts := func(all ...uint16) (b []byte) {
		for _, v := range all {
			b = le.AppendUint16(b, v)
		}
		return b
	}
	fields := []struct {
		tag, kind uint16
		count     int
		data      []byte
	}{
		{256, 3, 1, shorts(10)}, {257, 3, 1, shorts(10)}, {273, 3, 1, shorts(8)}, {279, 3, 1, shorts(20)}, {33550, 12, 3, doubles(100, 100, 0)}, {33922, 12, 6, doubles(0, 0, 0, x, y, 0)},
		{34735, 3, 4 + len(keys), shorts(append([]uint16{1, 1, 0, uint16(len(keys) / 4)}, keys...)...)}, {34737, 2, len(texts), []byte(texts)},
	}
	b := le.AppendUint32([]byte("II*\x00"), 8)
	b = le.AppendUint16(b, uint16(len(fields)))
	at := len(b) + 12*len(fields) + 4
	var values []byte
	for _, f := range fields {
		b = le.AppendUint32(le.AppendUint16(le.AppendUint16(b, f.tag), f.kind), uint32(f.count))
		if len(f.data) <= 4 {
			b = append(b, append(f.data, 0, 0, 0, 0)[:4]...)
			continue
		}
		b = le.AppendUint32(b, uint32(at+len(values)))
		values = append(values, f.data...)
	}
	return string(append(le.AppendUint32(b, 0), values...))
}

// Of a system that has no code the native values stand alone, whatever geographic system it is made from.
func TestSystemsOfGeoTIFFs(t *testing.T) {
	const mollweide = `ESRI PE String = PROJCS["World_Mollweide",GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]],PROJECTION["Mollweide"],UNIT["Meter",1.0]]|`
	n := uint16(len(mollweide))
	for _, c := range []struct {
		name       string
		file       string
		code, says string
	}{
		{"UTM", geoTIFF(500000, 5e6, "|", 1024, 0, 1, 1, 3072, 0, 1, 32633), "EPSG:32633", ""},
		{"degrees", geoTIFF(-180, 80, "|", 1024, 0, 1, 2, 2048, 0, 1, 4326), "EPSG:4326", "no degrees"},
		{"a writer's own model", geoTIFF(0, 50, "|", 1024, 0, 1, 32767, 2048, 0, 1, 4326), "", "no way from an unknown reference system to WGS 84 is known; the native values stand alone"},
		{"Mollweide, as GDAL writes it", geoTIFF(0, 50, mollweide, 1024, 0, 1, 32767, 2048, 0, 1, 4326, 3073, 34737, n, 0), "", "no way from World_Mollweide to WGS 84 is known; the native values stand alone"},
		{"geocentric", geoTIFF(0, 50, "|", 1024, 0, 1, 3, 2048, 0, 1, 4326), "", "no way from"},
		{"a projection without a code", geoTIFF(0, 50, "mine|", 1024, 0, 1, 1, 2048, 0, 1, 4326, 3072, 0, 1, 32767, 3073, 34737, 5, 0), "", "no way from mine to WGS 84"},
	} {
		f, err := write(t, "a.tif", c.file)
		if err != nil || f.Space == nil {
			t.Errorf("%s: %+v, %v", c.name, f, err)
			continue
		}
		code := ""
		if f.Space.CRS != nil {
			code = f.Space.CRS.Code
		}
		if all := strings.Join(f.Warnings, "; "); code != c.code || c.says == "" && all != "" || !strings.Contains(all, c.says) || (f.Space.WGS84 == nil) != (c.says != "") {
			t.Errorf("%s: %q, %+v, says %q", c.name, code, f.Space, all)
		}
	}
	if _, err := exec.LookPath("gdal_create"); err != nil {
		t.Skip("gdal_create is not installed; testdata/tools.sh installs it where it can")
	}
	path := filepath.Join(t.TempDir(), "moll.tif")
	if out, err := exec.Command("gdal_create", "-outsize", "10", "10", "-bands", "1", "-a_srs", "ESRI:54009", "-a_ullr", "0", "60", "100", "0", path).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	if f := read(t, path); f.Space == nil || f.Space.WGS84 != nil || f.Space.CRS.Code != "" || f.Space.CRS.Name != "World_Mollweide" || !slices.Equal(f.Space.Native.Bounds, []float64{0, 0, 100, 60}) {
		t.Errorf("GDAL's: %+v, %v", f.Space, f.Warnings)
	}
}

// What no file can hold is told of, though its numbers stand.
func TestPicturesThatCannotBeWhole(t *testing.T) {
	huge := "II*\x00\x08\x00\x00\x00\x04\x00" + "\x00\x01\x04\x00\x01\x00\x00\x00\xff\xff\xff\x7f" + "\x01\x01\x04\x00\x01\x00\x00\x00\xff\xff\xff\x7f" +
		"\x11\x01\x04\x00\x01\x00\x00\x00\x08\x00\x00\x00" + "\x17\x01\x04\x00\x01\x00\x00\x00\x14\x00\x00\x00" + "\x00\x00\x00\x00"
	f, err := write(t, "a.tif", huge)
	if err != nil || len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "at byte 8: a block of 20 bytes, not compressed, cannot hold 2147483647 rows") {
		t.Errorf("%+v, %v", f, err)
	}
}

// What is wrong with where a picture lies takes away nothing else, and what stands beside it is tried.
func TestPicturesThatLieNowhere(t *testing.T) {
	for x, says := range map[float64]string{math.NaN(): "TIFF: at byte 134: a position that is no number: ", math.Inf(-1): "TIFF: at byte 134: a position that is no number: ",
		1e308: "a coordinate of 1e+308, 5e+06 is of no place; the footprint is left out"} {
		f, err := write(t, "a.tif", geoTIFF(x, 5e6, "|", 1024, 0, 1, 1, 3072, 0, 1, 32633))
		if err != nil || f.Entity["format"] != "GeoTIFF" || f.Space == nil || f.Space.Native != nil || len(f.Warnings) != 1 || !strings.HasPrefix(f.Warnings[0], says) {
			t.Errorf("at %v: %+v, %v", x, f, err)
		} else if crs := f.Space.CRS; crs == nil || crs.Code != "EPSG:32633" || crs.Zone != "33N" || crs.WKT == "" {
			t.Errorf("at %v: %+v", x, crs)
		}
		o := Combine([]File{{"a.tif", 2, f}, {"b.tif", 1, &Facts{Kind: Raster, Space: &space.Space{Source: "b.tif", Native: &space.Extent{Bounds: []float64{1, 2, 3, 4}}}}}})
		if o.Space == nil || o.Space.Source != "b.tif" {
			t.Errorf("beside one with a place: %+v", o.Space)
		}
	}
	if f, err := write(t, "a.tif", strings.Replace(geoTIFF(500000, 5e6, "|", 1024, 0, 1, 1, 3072, 0, 1, 32633), "\x0e\x83", "\x0d\x83", 1)); err != nil || f.Space == nil || f.Space.Native != nil ||
		!strings.Contains(strings.Join(f.Warnings, "; "), "6 numbers of tie points, 0 of a scale and 0 of a matrix, which place no pixel") {
		t.Errorf("without a scale: %+v, %v", f, err)
	}
	nowhere := geoTIFF(math.NaN(), 5e6, "|", 1024, 0, 1, 1, 3072, 0, 1, 32633)
	const says = "TIFF: at byte 134: a position that is no number"
	f, err := write(t, "a.tif", nowhere)
	if err != nil || f.Entity["width"] != int64(10) || f.Space == nil || len(f.Warnings) != 1 || !strings.HasPrefix(f.Warnings[0], says) {
		t.Errorf("%+v, %v", f, err)
	}
	f, err = write(t, "a.tif", nowhere, "a.tfw", "100\n0\n0\n-100\n500050\n4999950\n")
	if err != nil || f.Space == nil || f.Space.CRS.Code != "EPSG:32633" || f.Space.WGS84 == nil || !slices.Equal(f.Space.Native.Bounds, []float64{500000, 4999000, 501000, 5000000}) {
		t.Errorf("with a world file: %+v, %v", f, err)
	}
	for world, says := range map[string]string{"100\n0\n0\nnorth\n5\n5\n": `world file .tfw: at byte 8: "north" is no number`, "100 0": "world file .tfw: at byte 5: 2 numbers of 6"} {
		plain := "II*\x00\x08\x00\x00\x00\x04\x00" + "\x00\x01\x04\x00\x01\x00\x00\x00\x0a\x00\x00\x00" + "\x01\x01\x04\x00\x01\x00\x00\x00\x0a\x00\x00\x00" +
			"\x11\x01\x04\x00\x01\x00\x00\x00\x08\x00\x00\x00" + "\x17\x01\x04\x00\x01\x00\x00\x00\x14\x00\x00\x00" + "\x00\x00\x00\x00"
		f, err := write(t, "a.tif", plain, "a.tfw", world)
		if err != nil || f.Entity["height"] != int64(10) || f.Space != nil || strings.Join(f.Warnings, "; ") != says {
			t.Errorf("%q: %+v, %v", world, f, err)
		}
		if f, err := write(t, "a.jpg", string(captioned(t)), "a.jgw", world); err != nil || f.Business["city"] != "Hamburg" || len(f.Warnings) != 1 {
			t.Errorf("a picture with %q: %+v, %v", world, f, err)
		}
	}
}

// A nodata of infinity, which JSON cannot say, takes nothing else away.
func TestNodataOfInfinity(t *testing.T) {
	for text, want := range map[string]any{"inf": nil, "-inf": nil, "nan": nil, "-9": -9.0} {
		f, err := write(t, "a.tif", "II*\x00\x08\x00\x00\x00\x05\x00"+"\x00\x01\x04\x00\x01\x00\x00\x00\x0a\x00\x00\x00"+"\x01\x01\x04\x00\x01\x00\x00\x00\x0a\x00\x00\x00"+
			"\x11\x01\x04\x00\x01\x00\x00\x00\x08\x00\x00\x00"+"\x17\x01\x04\x00\x01\x00\x00\x00\x14\x00\x00\x00"+"\x81\xa4\x02\x00\x04\x00\x00\x00"+(text + "\x00\x00")[:4]+"\x00\x00\x00\x00")
		if err != nil || f.Entity["nodata"] != want {
			t.Errorf("%s: %+v, %v", text, f, err)
		}
		if _, err := json.Marshal(f); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
