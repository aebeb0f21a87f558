package space

import (
	"fmt"
	"math"
	"os/exec"
	"strings"
	"testing"

	"github.com/paulmach/orb"
)

// areas are where the systems of wroge/wgs84 are used: what does not lie in one of the others.
var areas = map[int][4]float64{ // longitude and latitude, from and to
	3857: {-170, -80, 170, 80}, 900913: {-170, -80, 170, 80}, 3310: {-124, 33, -115, 42}, 3309: {-124, 33, -115, 42}, 3035: {-5, 40, 25, 65},
	27700: {-6, 50, 1, 58}, 2154: {-4, 42, 8, 51}, 31466: {6, 50, 8, 54}, 31467: {8, 48, 10, 54}, 31468: {10.5, 48, 13, 54}, 31469: {13, 51, 15, 54}, 3416: {10, 46.5, 17, 49}, 31287: {10, 46.5, 17, 49},
	4326: {-170, -80, 170, 80}, 4258: {-5, 40, 25, 65}, 4269: {-124, 33, -80, 48}, 4490: {75, 20, 130, 50}, 4267: {-124, 33, -80, 48},
}

func areaOf(code int) ([4]float64, bool) {
	if a, ok := areas[code]; ok {
		return a, true
	}
	m, ok := modelOf(code)
	if !ok || m.method != transverse {
		return [4]float64{}, false
	}
	south, north := 1.0, 80.0
	if strings.HasSuffix(m.zone, "S") {
		south, north = -79, -1
	}
	if m.datum.name == "North_American_Datum_1927" { // its shift is that of a continent
		south, north = 30, 49
	}
	return [4]float64{m.lon0 - 3, south, m.lon0 + 3, north}, true
}

// Positions are those of PROJ, to 1e-7 degrees, over the whole of each system; where they are not,
// a warning says that they are some metres off.
func TestPositionsArePROJs(t *testing.T) {
	if _, err := exec.LookPath("cs2cs"); err != nil {
		t.Skip("cs2cs is not installed; testdata/tools.sh installs it where it can")
	}
	codes := []int{32601, 32633, 32650, 32660, 32701, 32733, 32756, 26910, 26919, 25828, 25833, 26711, 4491, 4498, 4502, 4507, 4513, 4527, 4534, 4549}
	for code := range areas {
		codes = append(codes, code)
	}
	for _, code := range codes {
		c := FromEPSG(code)
		area, ok := areaOf(code)
		if !ok || !c.Known() {
			continue
		}
		const n = 6
		var asked strings.Builder
		var points []orb.Point
		for i := range n {
			for k := range n {
				p := orb.Point{area[0] + (area[2]-area[0])*float64(i)/(n-1), area[1] + (area[3]-area[1])*float64(k)/(n-1)}
				points = append(points, p)
				fmt.Fprintf(&asked, "%.12f %.12f\n", p[1], p[0]) // EPSG:4326 has the latitude first
			}
		}
		cmd := exec.Command("cs2cs", "-f", "%.10f", "EPSG:4326", "+to", fmt.Sprintf("EPSG:%d", code))
		cmd.Stdin = strings.NewReader(asked.String())
		out, err := cmd.Output()
		if err != nil {
			t.Logf("EPSG:%d: PROJ does not know it: %v", code, err)
			continue
		}
		worst, at := 0.0, orb.Point{}
		for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
			var x, y float64
			if _, err := fmt.Sscan(line, &x, &y); err != nil || math.IsInf(x, 0) {
				t.Fatalf("EPSG:%d: %q", code, line)
			}
			off := math.Inf(1)
			for _, q := range []orb.Point{{x, y}, {y, x}} { // PROJ has the axes in the registry's order
				if p := c.ToWGS84(q); Placed(p) {
					off = math.Min(off, math.Max(math.Abs(math.Remainder(p[0]-points[i][0], 360)), math.Abs(p[1]-points[i][1])))
				}
			}
			if off > worst {
				worst, at = off, points[i]
			}
		}
		if t.Logf("EPSG:%d: %.2e degrees off at most", code, worst); worst > 1e-7 && (c.Approx == "" || worst > 1e-3) {
			t.Errorf("EPSG:%d (%s): %v degrees off at %v", code, c.Name, worst, at)
		}
	}
}

// What a WKT spells by a method and its numbers is where PROJ has it, wherever the centre is, and in the centre itself.
func TestMethodsArePROJs(t *testing.T) {
	if _, err := exec.LookPath("cs2cs"); err != nil {
		t.Skip("cs2cs is not installed; testdata/tools.sh installs it where it can")
	}
	for _, m := range []struct {
		method, proj           string
		lon0, lat0, lat1, lat2 float64
	}{
		{azimuthal, "laea", 0, 90, 0, 0}, {azimuthal, "laea", 0, -90, 0, 0}, {azimuthal, "laea", 20, -30, 0, 0}, {azimuthal, "laea", 20, 0, 0, 0}, {azimuthal, "laea", -100, 45, 0, 0},
		{albers, "aea", -96, 23, 29.5, 45.5}, {albers, "aea", -60, -32, -5, -42}, {albers, "aea", 10, 30, 40, 40},
		{conformal, "lcc", 3, 46.5, 44, 49}, {conformal, "lcc", 135, -32, -28, -36}, {transverse, "tmerc", 9, -30, 0, 0},
	} {
		c, err := ParseWKT(model{name: "trial", datum: datums[0], method: m.method, lon0: m.lon0, lat0: m.lat0, lat1: m.lat1, lat2: m.lat2, scale: 1, unit: 1}.wkt(0))
		if err != nil || !c.Known() {
			t.Fatalf("%+v: %v", m, err)
		}
		var asked strings.Builder
		var points []orb.Point
		for _, d := range []orb.Point{{0, 0}, {5, 3}, {-10, -8}, {0, 1}, {20, -15}, {1e-7, 1e-7}} {
			lat := m.lat0 + d[1]
			if math.Abs(lat) > 90 {
				lat = math.Copysign(180, lat) - lat
			}
			points = append(points, orb.Point{m.lon0 + d[0], lat})
			fmt.Fprintf(&asked, "%.12f %.12f\n", m.lon0+d[0], lat)
		}
		cmd := exec.Command("cs2cs", "-f", "%.9f", "+proj=longlat", "+datum=WGS84", "+to", "+proj="+m.proj, "+datum=WGS84",
			fmt.Sprintf("+lon_0=%v", m.lon0), fmt.Sprintf("+lat_0=%v", m.lat0), fmt.Sprintf("+lat_1=%v", m.lat1), fmt.Sprintf("+lat_2=%v", m.lat2))
		cmd.Stdin = strings.NewReader(asked.String())
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
			var x, y float64
			if _, err := fmt.Sscan(line, &x, &y); err != nil {
				t.Fatalf("%+v: %q", m, line)
			}
			got, want := c.ToWGS84(orb.Point{x, y}), points[i]
			off := math.Max(math.Abs(math.Remainder(got[0]-want[0], 360))*math.Cos(want[1]*math.Pi/180), math.Abs(got[1]-want[1]))
			if !(off < 1e-7) {
				t.Errorf("%s around %v %v: %v is %v, want %v", m.proj, m.lon0, m.lat0, orb.Point{x, y}, got, want)
			}
		}
	}
}
