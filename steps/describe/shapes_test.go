package describe

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/steps/space"

	"github.com/jonas-p/go-shp"
)

// Shapes with heights need no measures: most writers leave them out.
func TestShapesWithoutMeasures(t *testing.T) {
	for kind, fill := range map[byte]int{11: 8, 13: 16 + 4*8, 15: 16 + 4*8, 18: 16 + 4*8} {
		body := []byte{kind, 0, 0, 0}
		if kind != 11 {
			body = append(body, make([]byte, 32)...)
			if kind != 18 {
				body = append(body, 1, 0, 0, 0)
			}
			body = append(body, 4, 0, 0, 0)
			if kind != 18 {
				body = append(body, 0, 0, 0, 0)
			}
		}
		for _, p := range [][2]float64{{10, 50}, {12, 50}, {12, 51}, {10, 50}} {
			if body = append(binary.LittleEndian.AppendUint64(body, math.Float64bits(p[0])), binary.LittleEndian.AppendUint64(nil, math.Float64bits(p[1]))...); kind == 11 {
				break
			}
		}
		body = append(body, make([]byte, fill)...)
		file := append([]byte{0, 0, 0x27, 0x0a}, make([]byte, 96)...)
		for range 2 {
			file = append(binary.BigEndian.AppendUint32(append(file, 0, 0, 0, 1), uint32(len(body)/2)), body...)
		}
		f, err := write(t, "a.shp", string(file))
		if err != nil || f.Entity["records"] != 2 || f.Space == nil || f.Space.Native.Bounds[0] != 10 || kind != 11 && f.Space.Native.Bounds[2] != 12 {
			t.Errorf("of type %d: %+v, %v", kind, f, err)
		}
	}
}

// Coordinates that are no numbers are left out, and told with the byte of the record where they are.
func TestShapesThatAreNowhere(t *testing.T) {
	nan := math.NaN()
	prj := filepath.Join(t.TempDir(), "a.prj")
	if err := os.WriteFile(prj, []byte(space.FromEPSG(4326).WKT), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		points [][2]float64
		says   string
		east   float64
	}{
		{[][2]float64{{1, 1}, {2, 2}}, "", 2},
		{[][2]float64{{1, 1}, {nan, 2}, {3, 3}}, "shapefile: at byte 128: coordinates are no numbers, or of no place; they are left out", 3},
		{[][2]float64{{1, 1}, {2, 2}, {1e308, 2}}, "shapefile: at byte 156: coordinates are no numbers, or of no place; they are left out", 2},
		{[][2]float64{{nan, nan}, {math.Inf(1), 0}}, "shapefile: at byte 100, the first of 2 such places: coordinates are no numbers, or of no place; they are left out", nan},
	} {
		dir := t.TempDir()
		w, err := shp.Create(filepath.Join(dir, "a.shp"), shp.POINT)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range c.points {
			w.Write(&shp.Point{X: p[0], Y: p[1]})
		}
		w.Close()
		f, err := Read(Request{Name: "a.shp", Path: filepath.Join(dir, "a.shp")})
		if err != nil || f.Entity["records"] != len(c.points) {
			t.Fatalf("%v: %+v, %v", c.points, f, err)
		}
		if all := strings.Join(f.Warnings, "\n"); c.says == "" && strings.Contains(all, "no numbers") || !strings.Contains(all, c.says) {
			t.Errorf("%v: warns of %q, want %q", c.points, all, c.says)
		}
		if with, err := Read(Request{Name: "a.shp", Path: filepath.Join(dir, "a.shp"), Beside: map[string]string{".prj": prj}}); err != nil || with.Space == nil || with.Space.CRS.Code != "EPSG:4326" {
			t.Errorf("%v, with a .prj: %+v, %v", c.points, with, err)
		}
		if math.IsNaN(c.east) != (f.Space == nil) || f.Space != nil && f.Space.Native.Bounds[2] != c.east {
			t.Errorf("%v: %+v", c.points, f.Space)
		}
	}
}
