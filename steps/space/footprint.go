package space

import (
	"fmt"
	"math"
	"slices"

	"github.com/paulmach/orb"
	"github.com/paulmach/orb/encoding/wkt"
)

// Space is metadata.space.
type Space struct {
	Source string  `json:"source"`
	CRS    *Record `json:"crs,omitempty"`
	Native *Extent `json:"native,omitempty"`
	WGS84  *Extent `json:"wgs84,omitempty"`
}

// Record is a reference system as written down.
type Record struct {
	Code string `json:"code,omitempty"`
	Name string `json:"name,omitempty"`
	WKT  string `json:"wkt,omitempty"`
	Zone string `json:"zone,omitempty"`
}

// Extent is a footprint in one reference system.
type Extent struct {
	Bounds    []float64 `json:"bounds"`
	Centre    []float64 `json:"centre"`
	Boundary  string    `json:"boundary"`
	Optimised string    `json:"optimised,omitempty"`
}

// maxVertices is how many a boundary that is written down may have.
const maxVertices = 200

// beyond is where coordinates of any system and unit have ended.
const beyond = 1e15

// Outline gives the footprint of a ring in its native system, and what is to be warned of.
// A ring of one or two points is a point or a line. Of a ring that is nowhere the reference system alone is given; nil: neither is known.
func Outline(ring orb.Ring, c CRS, source string) (*Space, []string) {
	s := &Space{Source: source, CRS: c.record()}
	var warnings []string
	if i := slices.IndexFunc(ring, func(p orb.Point) bool { return !Placed(p) }); i >= 0 {
		warnings = append(warnings, fmt.Sprintf("a coordinate of %v, %v is of no place; the footprint is left out", ring[i][0], ring[i][1]))
		ring = nil
	}
	if len(ring) == 0 {
		if s.CRS == nil {
			s = nil
		}
		return s, warnings
	}
	if s.Native = extent(ring, 1e6); c.geographic {
		s.Native = extent(ring, degree)
	}
	if !c.Known() {
		return s, []string{fmt.Sprintf("no way from %s to WGS 84 is known; the native values stand alone", c)}
	}
	if c.Approx != "" {
		warnings = append(warnings, c.Approx)
	}
	if c.geographic {
		if text := swapped(ring.Bound()); text != "" {
			return s, append(warnings, text)
		}
	}
	if b := ring.Bound(); !c.holds(b) {
		return s, append(warnings, fmt.Sprintf("coordinates from %v to %v are outside %s; no position in WGS 84", b.Min, b.Max, c))
	}
	lonLat := orb.Ring{}
	for _, p := range dense(ring, c) {
		q := c.ToWGS84(p)
		if !Placed(q) || math.Abs(q[1]) > 90+1e-6 {
			return s, append(warnings, fmt.Sprintf("a point at %v is outside %s; no position in WGS 84", p, c))
		}
		lonLat = append(lonLat, orb.Point{q[0], min(max(q[1], -90), 90)})
	}
	if !c.exact {
		lonLat = unroll(lonLat)
	}
	w, more := globe(lonLat)
	s.WGS84 = w
	return s, append(warnings, more...)
}

// Box is the ring around bounds.
func Box(west, south, east, north float64) orb.Ring {
	return orb.Ring{{west, south}, {east, south}, {east, north}, {west, north}, {west, south}}
}

// Placed reports whether both coordinates are numbers that may be those of a place.
func Placed(p orb.Point) bool { return math.Abs(p[0]) <= beyond && math.Abs(p[1]) <= beyond }

// record is the system as written down; nil: none is known.
func (c CRS) record() *Record {
	if c.Code == 0 && c.Name == "" {
		return nil
	}
	r := &Record{Name: c.Name, WKT: c.WKT, Zone: c.Zone}
	if c.Code != 0 {
		r.Code = fmt.Sprintf("EPSG:%d", c.Code)
	}
	return r
}

// swapped says that latitude and longitude stand in each other's place, or that they are
// no degrees at all.
func swapped(b orb.Bound) string {
	lat := math.Max(math.Abs(b.Min[1]), math.Abs(b.Max[1]))
	lon := math.Max(math.Abs(b.Min[0]), math.Abs(b.Max[0]))
	switch {
	case lat <= 90+1e-6 && lon <= 360:
		return ""
	case lat <= 180 && lon <= 90:
		return fmt.Sprintf("a latitude of %v: latitude and longitude look swapped; no position in WGS 84", round(lat, 1e6))
	}
	return fmt.Sprintf("coordinates up to %v, %v are no degrees; no position in WGS 84", round(lon, 1e6), round(lat, 1e6))
}

func round(v, per float64) float64 { return math.Round(v*per)/per + 0 } // + 0 makes -0 0

// extent describes a ring; per is the inverse of what coordinates are rounded to.
func extent(ring orb.Ring, per float64) *Extent {
	b := ring.Bound()
	return &Extent{
		Bounds:   []float64{round(b.Min[0], per), round(b.Min[1], per), round(b.Max[0], per), round(b.Max[1], per)},
		Centre:   []float64{round(b.Center()[0], per), round(b.Center()[1], per)},
		Boundary: spell(shape(simple(ring, maxVertices)), int(per)),
	}
}

// shape is the geometry that a ring stands for.
func shape(ring orb.Ring) orb.Geometry {
	b := ring.Bound()
	switch {
	case b.Min == b.Max:
		return b.Min
	case len(ring) < 4:
		return orb.LineString(ring)
	}
	return orb.Polygon{ring}
}

func spell(g orb.Geometry, per int) string { return wkt.MarshalString(orb.Round(orb.Clone(g), per)) }

// dense adds points to the edges of a projected ring, as straight edges are bent on the
// globe. A ring of many points needs none.
func dense(ring orb.Ring, c CRS) orb.Ring {
	if c.geographic || len(ring) < 4 || len(ring) > maxVertices {
		return ring
	}
	const parts = 16
	out := orb.Ring{}
	for i := 0; i+1 < len(ring); i++ {
		for k := range parts {
			f := float64(k) / parts
			out = append(out, orb.Point{ring[i][0] + f*(ring[i+1][0]-ring[i][0]), ring[i][1] + f*(ring[i+1][1]-ring[i][1])})
		}
	}
	return append(out, ring[len(ring)-1])
}
