package space

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paulmach/orb"
	"github.com/paulmach/orb/encoding/wkt"
	"pgregory.net/rapid"
)

var authority = regexp.MustCompile(`,AUTHORITY\["EPSG","\d+"\]`)

// Values of PROJ (cs2cs), to 1e-7 degrees.
func TestToWGS84(t *testing.T) {
	for _, c := range []struct {
		code     int
		x, y     float64
		lon, lat float64
		off      float64
	}{
		{32633, 500000, 0, 15, 0, 1e-7},
		{32631, 166021.4430805405, 0, 0, 0, 1e-7},
		{3857, 20037508, 20037508.342789244, 180, 85.0511287798066, 1e-5},
		{3035, 4321000, 3210000, 10, 52, 1e-8},      // its false origin
		{3035, 3962799.45, 2999718.85, 5, 50, 1e-7}, // EPSG, guidance note 7-2
		{32756, 334873.199, 6252266.092, 151.215, -33.857, 1e-7},
		{4326, 12.5, -7.25, 12.5, -7.25, 0},
		{27700, 651409.903, 313177.270, 1.7161, 52.6576, 2e-3},
		{99999, 1, 1, math.NaN(), math.NaN(), 0},
	} {
		s := FromEPSG(c.code)
		if !s.Known() {
			if !math.IsNaN(c.lon) {
				t.Errorf("%d is not known", c.code)
			}
			continue
		}
		if p := s.ToWGS84(orb.Point{c.x, c.y}); math.Abs(p[0]-c.lon) > c.off || math.Abs(p[1]-c.lat) > c.off {
			t.Errorf("%d: %v, want %v %v", c.code, p, c.lon, c.lat)
		}
	}
}

// A point far outside its projection has no position, though the series give one.
func TestFarOutsideAProjection(t *testing.T) {
	for _, code := range []int{32633, 27700, 31467, 3310, 3035} {
		c := FromEPSG(code)
		for _, p := range []orb.Point{{500000, 1e45}, {500000, 1e12}, {500000, 1e8}, {500000, -1e14}, {1e8, 4990000}, {1e12, 4990000}, {-1e45, 4990000}, {500000, 1e307}, {-1e308, -1e308}} {
			if q := c.ToWGS84(p); Placed(q) {
				t.Errorf("%s: %v is at %v", c, p, q)
			}
		}
	}
	for _, far := range []float64{1e16, 1e308, -1e308} { // written down rounded, it would be no number
		if s, warnings := Outline(orb.Ring{{0, 0}, {1, far}}, FromEPSG(32633), "tie"); s.Native != nil || s.WGS84 != nil || s.CRS.Code != "EPSG:32633" || len(warnings) != 1 {
			t.Errorf("%v: %+v, %v", far, s, warnings)
		}
	}
	across := FromEPSG(32660) // UTM zone 60 goes on beyond 180 degrees
	if q := across.ToWGS84(orb.Point{750000, 5000000}); math.Abs(q[0]+179.83) > 0.1 {
		t.Errorf("across 180 degrees: %v", q)
	}
}

// Whatever is projected comes back, to five millimetres.
func TestInverseOfForward(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom([]int{32633, 32733, 26910, 4513, 3310, 3035, 2154, 3857}).Draw(t, "code")
		c := FromEPSG(code)
		lon0 := map[int]float64{32633: 15, 32733: 15, 26910: -123, 4513: 75, 3310: -120, 3035: 10, 2154: 3, 3857: 0}[code]
		lat := rapid.Float64Range(30, 60).Draw(t, "lat")
		if code == 32733 {
			lat = -lat
		}
		lon := lon0 + rapid.Float64Range(-3, 3).Draw(t, "lon")
		system := c.system.(interface {
			FromWGS84(x, y, z float64) (a, b, c float64)
		})
		x, y, z := geocentric(lon, lat)
		e, n, _ := system.FromWGS84(x, y, z)
		if p := c.ToWGS84(orb.Point{e, n}); math.Abs(p[0]-lon) > 5e-8 || math.Abs(p[1]-lat) > 5e-8 {
			t.Fatalf("%d: %v, want %v %v", code, p, lon, lat)
		}
	})
}

func geocentric(lon, lat float64) (x, y, z float64) {
	const a, f = 6378137.0, 1 / 298.257223563
	e2 := f * (2 - f)
	sin, cos := math.Sincos(lat * math.Pi / 180)
	n := a / math.Sqrt(1-e2*sin*sin)
	return n * cos * math.Cos(lon*math.Pi/180), n * cos * math.Sin(lon*math.Pi/180), n * (1 - e2) * sin
}

func TestParseWKT(t *testing.T) {
	for _, code := range []int{4326, 4269, 4267, 4490, 3035, 32633, 32733, 26910, 25832, 26711, 4513, 4549, 3310} {
		want := FromEPSG(code)
		read, err := ParseWKT(want.WKT)
		if err != nil || read.Code != code {
			t.Errorf("%d: %d, %v", code, read.Code, err)
		}
		// Without any code the numbers tell it, of those that many write.
		bare := authority.ReplaceAllString(want.WKT, "")
		got, err := ParseWKT(bare)
		if err != nil || got.Known() != want.Known() || got.Code != code && code != 4513 && code != 4549 {
			t.Errorf("%d: without codes: %d, %v\n%s", code, got.Code, err, bare)
		}
	}
	esri := `PROJCS["NAD_1983_UTM_Zone_10N",GEOGCS["GCS_North_American_1983",DATUM["D_North_American_1983",SPHEROID["GRS_1980",6378137.0,298.257222101]],PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]],PROJECTION["Transverse_Mercator"],PARAMETER["False_Easting",500000.0],PARAMETER["False_Northing",0.0],PARAMETER["Central_Meridian",-123.0],PARAMETER["Scale_Factor",0.9996],PARAMETER["Latitude_Of_Origin",0.0],UNIT["Meter",1.0]]`
	if c, err := ParseWKT(esri); err != nil || c.Code != 26910 || c.Zone != "10N" {
		t.Errorf("ESRI's: %+v, %v", c, err)
	}
	for _, bad := range []string{"", "PROJCS", `PROJCS["x`, `GEOGCS[[[`, strings.Repeat("A[", 100), `PROJCS["x",PROJECTION["Nowhere"]]`} {
		if c, err := ParseWKT(bad); err == nil && c.Known() {
			t.Errorf("%q: known", bad)
		}
	}
}

func TestOutline(t *testing.T) {
	utm, plain, web := FromEPSG(32633), FromEPSG(4326), FromEPSG(3857)
	for _, c := range []struct {
		name   string
		ring   orb.Ring
		crs    CRS
		bounds []float64 // nil: no position
		says   string
		parts  int
	}{
		{"a box", Box(10, 50, 11, 51), plain, []float64{10, 50, 11, 51}, "", 1},
		{"across the antimeridian", Box(170, -10, 190, 10), plain, []float64{170, -10, -170, 10}, "crosses the antimeridian", 2},
		{"as wide as the earth", Box(-180, -90, 180, 90), plain, []float64{-180, -90, 180, 90}, "holds a pole", 1},
		{"from 0 to 360", Box(0, -90, 360, 90), plain, []float64{-180, -90, 180, 90}, "holds a pole", 2},
		{"swapped", Box(50, 100, 51, 101), plain, nil, "look swapped", 0},
		{"metres as degrees", Box(500000, 5e6, 500100, 5.1e6), plain, nil, "no degrees", 0},
		{"no number", orb.Ring{{math.NaN(), 1}, {1, 1}}, plain, nil, "a coordinate of NaN, 1 is of no place", 0},
		{"unknown system", Box(0, 0, 1, 1), CRS{}, nil, "no way from", 0},
		{"outside the zone", Box(1e12, 1e12, 2e12, 2e12), utm, nil, "no position in WGS 84", 0},
		{"on the web's map", Box(-20037508.342789244, -20037508.342789244, 20037508.342789244, 20037508.342789244), web, []float64{-180, -85.05112878, 180, 85.05112878}, "", 1},
		{"across the web's map", Box(19926188.85199597, 0, 20148827.833582517, 1e5), web, []float64{179, 0, -179, 0.89827848}, "crosses the antimeridian", 2},
		{"beside the web's map", Box(3e7, 0, 3.1e7, 1e5), web, nil, "are outside EPSG:3857; no position in WGS 84", 0},
		{"above the web's map", orb.Ring{{0, 2.1e7}}, web, nil, "are outside EPSG:3857; no position in WGS 84", 0},
		{"twice around the web's map", Box(-2.1e7, 0, 2.1e7, 1e5), web, nil, "are outside EPSG:3857; no position in WGS 84", 0},
		{"a point", orb.Ring{{12, 34}}, plain, []float64{12, 34, 12, 34}, "", 0},
	} {
		s, warnings := Outline(c.ring, c.crs, "trial")
		text := strings.Join(warnings, "; ")
		if c.says == "" && text != "" || !strings.Contains(text, c.says) {
			t.Errorf("%s: says %q, want %q", c.name, text, c.says)
		}
		if c.bounds == nil {
			if s != nil && s.WGS84 != nil {
				t.Errorf("%s: has a position: %+v", c.name, s.WGS84)
			}
			continue
		}
		for i, v := range c.bounds {
			if math.Abs(s.WGS84.Bounds[i]-v) > 1e-9 {
				t.Errorf("%s: bounds %v, want %v", c.name, s.WGS84.Bounds, c.bounds)
				break
			}
		}
		if c.parts > 0 {
			checkOptimised(t, s.WGS84.Optimised, c.parts)
		}
	}
}

func checkOptimised(t interface{ Errorf(string, ...any) }, text string, parts int) {
	g, err := wkt.Unmarshal(text)
	if err != nil {
		t.Errorf("%s: %v", text, err)
		return
	}
	all, ok := g.(orb.MultiPolygon)
	if p, one := g.(orb.Polygon); one {
		all, ok = orb.MultiPolygon{p}, true
	}
	if !ok || parts > 0 && len(all) != parts {
		t.Errorf("%s: %d parts, want %d", text, len(all), parts)
	}
	vertices := 0
	for _, p := range all {
		for _, r := range p {
			vertices += len(r)
			if !r.Closed() || crosses(r) {
				t.Errorf("%s: not valid", text)
			}
		}
		if b := p.Bound(); b.Min[0] < -180 || b.Max[0] > 180 || b.Min[1] < -90 || b.Max[1] > 90 {
			t.Errorf("%s: not on the globe", text)
		}
	}
	if vertices > maxVertices {
		t.Errorf("%d vertices", vertices)
	}
}

// A polar grid that holds the pole is led over it.
func TestPole(t *testing.T) {
	ring := orb.Ring{}
	for lon := -180.0; lon <= 180; lon += 30 {
		ring = append(ring, orb.Point{lon, 80})
	}
	for i := range ring {
		ring[i][0] = math.Remainder(ring[i][0], 360) // as a transformation gives it
	}
	e, warnings := globe(unroll(ring))
	if e == nil || e.Bounds[3] != 90 || e.Bounds[0] != -180 || e.Bounds[2] != 180 || !slices.Equal(warnings, []string{"the footprint holds a pole"}) {
		t.Errorf("%+v %v", e, warnings)
	}
}

// Any ring gives a valid footprint, or a reason why not.
func TestOutlineOfAnyRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, 300).Draw(t, "n")
		ring := orb.Ring{}
		for range n {
			ring = append(ring, orb.Point{rapid.Float64Range(-180, 180).Draw(t, "x"), rapid.Float64Range(-90, 90).Draw(t, "y")})
		}
		s, warnings := Outline(Hull(ring), FromEPSG(4326), "any")
		if s == nil || s.WGS84 == nil {
			if len(warnings) == 0 {
				t.Fatal("neither a position nor a reason")
			}
			return
		}
		if strings.Contains(s.WGS84.Optimised, "POLYGON") {
			checkOptimised(t, s.WGS84.Optimised, 0)
		}
	})
}

// A footprint of many corners across the antimeridian is cut into parts of 200 vertices in all, which do not touch themselves.
func TestOutlineAcrossTheAntimeridian(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, teeth := rapid.IntRange(8, 1000).Draw(t, "n"), rapid.Float64Range(0, 1).Draw(t, "teeth")
		ring := orb.Ring{}
		for i := range n { // a star
			at := 2 * math.Pi * float64(i) / float64(n)
			r := 10 * (1 - teeth*rapid.Float64Range(0, 0.8).Draw(t, "r"))
			ring = append(ring, orb.Point{180 + r*math.Cos(at), r * math.Sin(at)})
		}
		s, warnings := Outline(append(ring, ring[0]), FromEPSG(4326), "star")
		if s == nil || s.WGS84 == nil {
			t.Fatal(warnings)
		}
		checkOptimised(t, s.WGS84.Optimised, 2)
		g, err := wkt.Unmarshal(s.WGS84.Optimised)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range g.(orb.MultiPolygon) {
			at := 0
			for _, c := range p[0][1:] {
				if math.Abs(c[0]) == 180 {
					at++
				}
			}
			if at > 3 {
				t.Errorf("%d corners of a part are on the antimeridian: %s", at, s.WGS84.Optimised)
			}
		}
	})
}

func FuzzParseWKT(f *testing.F) {
	f.Add(FromEPSG(32633).WKT)
	f.Add(`PROJCRS["x",BASEGEOGCRS["WGS 84",DATUM["World Geodetic System 1984",ELLIPSOID["WGS 84",6378137,298.257223563]]],CONVERSION["c",METHOD["Transverse Mercator"],PARAMETER["Longitude of natural origin",9]]]`)
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ParseWKT(text); err == nil && c.Known() {
			Outline(Box(400000, 5e6, 500000, 5.1e6), c, "fuzzed")
		}
	})
}
