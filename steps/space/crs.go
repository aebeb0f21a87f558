package space

import (
	"fmt"
	"math"
	"slices"

	"github.com/paulmach/orb"
	"github.com/wroge/wgs84"
)

// CRS is a reference system. The zero CRS is unknown.
type CRS struct {
	Code   int    // of EPSG; 0: none
	Name   string // "" where the code alone is known
	WKT    string
	Zone   string // of UTM and of Gauss-Krüger: 33N
	Approx string // why positions in WGS 84 are some metres off

	unit       float64 // metres, of a projected one
	edge       float64 // of the web's Mercator: how far the globe goes to each side; 0: of another
	geographic bool
	exact      bool                            // degrees are those of WGS 84
	system     wgs84.CoordinateReferenceSystem // nil: no way to WGS 84 is known
}

// Geographic reports whether coordinates are degrees.
func (c CRS) Geographic() bool { return c.geographic }

// Known reports whether there is a way to WGS 84.
func (c CRS) Known() bool { return c.system != nil }

// String names the system for people.
func (c CRS) String() string {
	switch {
	case c.Code != 0:
		return fmt.Sprintf("EPSG:%d", c.Code)
	case c.Name != "":
		return c.Name
	}
	return "an unknown reference system"
}

// ToWGS84 gives longitude and latitude. A point outside the system gives no number.
func (c CRS) ToWGS84(p orb.Point) orb.Point {
	if c.exact {
		return p
	}
	unit := c.unit
	if c.geographic {
		unit = 1
	}
	lon, lat, _ := wgs84.Transform(c.system, wgs84.LonLat())(p[0]*unit, p[1]*unit, 0)
	if !c.geographic && c.edge == 0 && !c.leadsTo(lon, lat, orb.Point{p[0] * unit, p[1] * unit}) {
		return orb.Point{math.NaN(), math.NaN()}
	}
	return orb.Point{lon, lat}
}

// leadsTo reports whether a position is projected onto a point, in metres. Far outside a projection its series give
// positions all the same, which are those of other points.
func (c CRS) leadsTo(lon, lat float64, p orb.Point) bool {
	const near = 1000 // some of the series are metres off
	back := wgs84.Transform(wgs84.LonLat(), c.system)
	for _, turn := range []float64{0, -360, 360} {
		if e, n, _ := back(lon+turn, lat, 0); math.Abs(e-p[0]) < near && math.Abs(n-p[1]) < near {
			return true
		}
	}
	return false
}

// holds reports whether bounds lie on the projected globe. Those that cross the antimeridian do, whichever side they are on.
// ToWGS84 would give a longitude to any other, as the web's Mercator has no end.
func (c CRS) holds(b orb.Bound) bool {
	edge := c.edge * (1 + 1e-6) // 20 metres: pixels hang over
	return edge == 0 || b.Min[0] <= edge && b.Max[0] >= -edge && b.Max[0]-b.Min[0] <= 2*edge && b.Min[1] >= -edge && b.Max[1] <= edge
}

// FromEPSG gives the system of a code. Of a code that is not known here it holds the code
// alone.
func FromEPSG(code int) CRS {
	if m, ok := modelOf(code); ok {
		return m.crs(code)
	}
	c := CRS{Code: code, unit: 1}
	if system, err := wgs84.EPSG().SafeCode(code); err == nil {
		_, c.geographic = system.(wgs84.GeographicReferenceSystem)
		c.system = system
	}
	if slices.Contains(shifted, code) {
		c.Approx = fmt.Sprintf("EPSG:%d %s", code, within)
	}
	return c
}

// shifted are systems of wroge/wgs84 on older datums, whose way to WGS 84 is one for a whole country.
var shifted = []int{4277, 27700, 4314, 31466, 31467, 31468, 31469, 31257, 31258, 31259, 31284, 31285, 31286, 31287}
