package describe

import (
	"encoding/json"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What is said of real TIFFs is what gdalinfo says: size, type, corners and, in WGS 84, where they
// lie, to 1e-7 degrees.
func TestAgainstGDAL(t *testing.T) {
	if _, err := exec.LookPath("gdalinfo"); err != nil {
		t.Skip("gdalinfo is not installed; testdata/tools.sh installs it where it can")
	}
	var files []string
	for _, pattern := range []string{"geotiff/*.tif*", "worldfile/*.tif", "gis/*/content/*.tif"} {
		found, err := filepath.Glob(filepath.Join(fixtures, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Skip("the fixtures are not here")
	}
	types := map[string]string{"uint8": "Byte", "int8": "Byte", "uint1": "Byte", "uint2": "Byte", "uint4": "Byte", "float32": "Float32", "float64": "Float64"}
	compared := 0
	for _, file := range files {
		out, err := exec.Command("gdalinfo", "-json", file).Output()
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var g struct {
			Size         [2]int
			GeoTransform []float64
			Corners      map[string][2]float64                `json:"cornerCoordinates"`
			Extent       struct{ Coordinates [][][2]float64 } `json:"wgs84Extent"`
			Bands        []struct{ Type string }              `json:"bands"`
			Stac         struct {
				EPSG int `json:"proj:epsg"`
			} `json:"stac"`
		}
		if err := json.Unmarshal(out, &g); err != nil {
			t.Fatal(err)
		}
		f := read(t, file)
		said := f.Entity["type"].(string)
		if want := types[said]; want == "" {
			types[said] = strings.ToUpper(said[:2]) + said[2:]
		}
		if f.Entity["width"] != int64(g.Size[0]) || f.Entity["height"] != int64(g.Size[1]) || f.Entity["bands"] != len(g.Bands) || !strings.EqualFold(types[said], g.Bands[0].Type) {
			t.Errorf("%s: %v, and gdalinfo says %v, %d bands of %s", file, f.Entity, g.Size, len(g.Bands), g.Bands[0].Type)
		}
		if f.Space == nil || len(g.GeoTransform) == 0 {
			continue
		}
		near(t, file+": native", f.Space.Native.Bounds, boundsOf(g.Corners["upperLeft"], g.Corners["lowerLeft"], g.Corners["lowerRight"], g.Corners["upperRight"]), 1e-3)
		if f.Space.WGS84 == nil || len(g.Extent.Coordinates) == 0 || approximate(f.Warnings) {
			continue
		}
		// gdalinfo gives the corners, we the outline, whose edges are bent: the corners lie on it.
		for _, corner := range g.Extent.Coordinates[0] {
			if !within(f.Space.WGS84.Bounds, corner, 1e-7) {
				t.Errorf("%s: gdalinfo's corner %v is outside of %v", file, corner, f.Space.WGS84.Bounds)
			}
		}
		near(t, file, f.Space.WGS84.Bounds, boundsOf(g.Extent.Coordinates[0]...), 2e-5)
		compared++
	}
	if compared < 5 {
		t.Errorf("only %d positions were compared", compared)
	}
}

func approximate(warnings []string) bool {
	return strings.Contains(strings.Join(warnings, " "), "some metres")
}

func boundsOf(points ...[2]float64) []float64 {
	b := []float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, p := range points {
		b = []float64{math.Min(b[0], p[0]), math.Min(b[1], p[1]), math.Max(b[2], p[0]), math.Max(b[3], p[1])}
	}
	return b
}

func within(b []float64, p [2]float64, slack float64) bool {
	return p[0] >= b[0]-slack && p[0] <= b[2]+slack && p[1] >= b[1]-slack && p[1] <= b[3]+slack
}

func near(t *testing.T, what string, got, want []float64, off float64) {
	t.Helper()
	for i := range want {
		if math.Abs(got[i]-want[i]) > off {
			t.Errorf("%s: %v, and gdalinfo says %v", what, got, want)
			return
		}
	}
}
