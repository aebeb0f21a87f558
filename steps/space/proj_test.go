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
				if p := c.ToWGS84(q); Finite(p) {
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
