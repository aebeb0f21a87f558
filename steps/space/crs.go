package space

import (
	"fmt"
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
	return orb.Point{lon, lat}
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
