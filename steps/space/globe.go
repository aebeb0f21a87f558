package space

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/paulmach/orb"
	"github.com/paulmach/orb/clip"
	"github.com/paulmach/orb/planar"
	"github.com/paulmach/orb/simplify"
)

const degree = 1e8 // coordinates in degrees are rounded to 1e-8, a millimetre

// globe describes a ring of continuous longitudes, which may leave -180 to 180, and latitudes.
func globe(ring orb.Ring) (*Extent, []string) {
	b := ring.Bound()
	if b.Max[0]-b.Min[0] > 360+1e-6 {
		return nil, []string{fmt.Sprintf("a footprint of %v degrees of longitude goes round the earth more than once; no position in WGS 84", round(b.Max[0]-b.Min[0], 1e3))}
	}
	shift := 0.0 // so that the western edge is at -180 or east of it
	for b.Min[0]+shift < -180-1e-9 {
		shift += 360
	}
	for b.Min[0]+shift >= 180 {
		shift -= 360
	}
	ring = slices.Clone(ring)
	for i := range ring {
		ring[i][0] += shift
	}
	e := extent(ring, degree)
	e.Optimised = spell(cut(shape(cuttable(ring))), degree)
	e.Bounds[2], e.Centre[0] = west(e.Bounds[2]), west(e.Centre[0])
	if b.Max[0]-b.Min[0] > 360-1e-6 {
		e.Bounds[0], e.Bounds[2] = -180, 180
	}
	var warnings []string
	if e.Bounds[0] > e.Bounds[2] {
		warnings = append(warnings, "the footprint crosses the antimeridian: its west is greater than its east")
	}
	if b.Min[1] <= -90 || b.Max[1] >= 90 {
		warnings = append(warnings, "the footprint holds a pole")
	}
	return e, warnings
}

// NativeOnGlobe gives a footprint in degrees, whose ring was led across the antimeridian or a pole, native values from -180
// to 180, as its file has them.
func (s *Space) NativeOnGlobe(ring orb.Ring) {
	if s == nil || s.WGS84 == nil {
		return
	}
	if e, _ := globe(ring); e != nil {
		s.Native = &Extent{Bounds: e.Bounds, Centre: e.Centre, Boundary: e.Optimised}
	}
}

// west brings a longitude into -180 to 180.
func west(lon float64) float64 {
	if lon > 180 {
		return round(lon-360, degree)
	}
	return lon
}

// unroll makes longitudes continuous along the ring. A ring that does not come back to its
// longitude goes round a pole, and is led over it.
func unroll(ring orb.Ring) orb.Ring {
	out := slices.Clone(ring)
	if len(ring) < 4 {
		return out
	}
	for i := 1; i < len(out); i++ {
		for d := out[i][0] - out[i-1][0]; d > 180+1e-9; d = out[i][0] - out[i-1][0] {
			out[i][0] -= 360
		}
		for d := out[i][0] - out[i-1][0]; d < -180-1e-9; d = out[i][0] - out[i-1][0] {
			out[i][0] += 360
		}
	}
	last := out[len(out)-1]
	if math.Abs(last[0]-out[0][0]) < 180 {
		return out
	}
	lat := 90.0
	if out.Bound().Center()[1] < 0 {
		lat = -90
	}
	return append(out, orb.Point{last[0], lat}, orb.Point{out[0][0], lat}, out[0])
}

// Around leads a ring of corners along the short way: where neighbours differ by more than 180 degrees it
// crosses the antimeridian. One that goes round a pole is led over it. An edge around the whole earth stays.
func Around(ring orb.Ring) orb.Ring {
	for i := 1; i < len(ring); i++ {
		if math.Abs(ring[i][0]-ring[i-1][0]) > 360-1e-9 {
			return ring
		}
	}
	return unroll(ring)
}

// Sides tells whether boxes in degrees, which are added one by one, lie on both sides of the antimeridian, and are narrower
// across it. Where one goes half around the earth they do not.
type Sides struct {
	plain, across orb.Bound // around all; with the western ones beside the eastern ones
	some, wide    bool
}

// Add adds a box.
func (s *Sides) Add(b orb.Bound) {
	s.wide = s.wide || b.Max[0]-b.Min[0] >= 180 || b.Min[0] < -180
	if !s.some {
		s.some, s.plain, s.across = true, b, Beside(b)
	}
	s.plain, s.across = s.plain.Union(b), s.across.Union(Beside(b))
}

// Across reports whether the boxes are to be taken as Beside gives them.
func (s *Sides) Across() bool {
	width := func(b orb.Bound) float64 { return b.Max[0] - b.Min[0] }
	return s.some && !s.wide && width(s.across) < min(width(s.plain), 180)
}

// WestEast gives the edges of the boxes across the antimeridian; the eastern one is beyond 180.
func (s *Sides) WestEast() (west, east float64) { return s.across.Min[0], s.across.Max[0] }

// Beside brings a box of the western half of the earth east of the eastern one.
func Beside(b orb.Bound) orb.Bound {
	if b.Max[0] <= 0 {
		b.Min[0], b.Max[0] = b.Min[0]+360, b.Max[0]+360
	}
	return b
}

// cuttable is simple of a ring that is cut where it crosses the antimeridian: each of two parts has the two corners there
// more, and ends where it began. One that crosses it more than twice would be cut into parts that touch themselves, and its
// convex hull is taken.
func cuttable(ring orb.Ring) orb.Ring {
	if ring.Bound().Max[0] <= 180 {
		return simple(ring, maxVertices)
	}
	out := simple(ring, maxVertices-5)
	if crossings(out) > 2 {
		out = simple(Hull(out), maxVertices-5)
	}
	return out
}

// crossings is how often a ring goes from one side of the antimeridian to the other.
func crossings(ring orb.Ring) (n int) {
	for i := 1; i < len(ring); i++ {
		if (ring[i-1][0] > 180) != (ring[i][0] > 180) {
			n++
		}
	}
	return n
}

// cut divides what crosses the antimeridian.
func cut(g orb.Geometry) orb.Geometry {
	p, ok := g.(orb.Polygon)
	if !ok || g.Bound().Max[0] <= 180 {
		return g
	}
	var parts orb.MultiPolygon
	for _, side := range []float64{0, 360} {
		box := orb.Bound{Min: orb.Point{side - 180, -90}, Max: orb.Point{side + 180, 90}}
		part := clip.Polygon(box, orb.Clone(p).(orb.Polygon))
		for at, r := range part {
			for i := range r {
				r[i] = orb.Point{round(r[i][0]-side, degree), round(r[i][1], degree)}
			}
			part[at] = slices.Compact(r) // a corner on the antimeridian came twice
		}
		if len(part) > 0 && math.Abs(planar.Area(part)) > 0 {
			parts = append(parts, part)
		}
	}
	return parts
}

// simple gives a ring of at most so many vertices that does not cross itself: simplified, or
// where that does not do, its convex hull.
func simple(ring orb.Ring, most int) orb.Ring {
	if len(ring) < 4 {
		return ring
	}
	b := ring.Bound()
	size := math.Max(b.Max[0]-b.Min[0], b.Max[1]-b.Min[1])
	// 1e-5 of the size is a pixel of 100,000: it takes away what edges were divided by.
	for tolerance := size * 1e-5; tolerance < size/16; tolerance *= 4 {
		r := simplify.DouglasPeucker(tolerance).Ring(slices.Clone(ring))
		if len(r) >= 4 && len(r) <= most && !crosses(r) {
			return r
		}
	}
	hull := Hull(ring)
	for tolerance := size * 1e-7; len(hull) > most; tolerance *= 4 {
		hull = simplify.DouglasPeucker(tolerance).Ring(hull)
	}
	return hull
}

// crosses reports whether two edges of a ring meet elsewhere than at their ends.
func crosses(r orb.Ring) bool {
	n := len(r) - 1
	for i := range n {
		for j := i + 2; j < n; j++ {
			if (i != 0 || j != n-1) && meet(r[i], r[i+1], r[j], r[j+1]) {
				return true
			}
		}
	}
	return false
}

// turn is positive where a, b, c turn left.
func turn(a, b, c orb.Point) float64 { return (b[0]-a[0])*(c[1]-a[1]) - (b[1]-a[1])*(c[0]-a[0]) }

func meet(a, b, c, d orb.Point) bool {
	return turn(a, b, c)*turn(a, b, d) < 0 && turn(c, d, a)*turn(c, d, b) < 0
}

// Hull is the convex hull of points, as a ring; of fewer than three points in different
// places, the points.
func Hull(points []orb.Point) orb.Ring {
	all := slices.Clone(points)
	slices.SortFunc(all, func(a, b orb.Point) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	all = slices.Compact(all)
	if len(all) < 3 {
		return all
	}
	half := func(order []orb.Point) (h []orb.Point) {
		for _, p := range order {
			for len(h) >= 2 && turn(h[len(h)-2], h[len(h)-1], p) <= 0 {
				h = h[:len(h)-1]
			}
			h = append(h, p)
		}
		return h
	}
	lower := half(all)
	slices.Reverse(all)
	ring := orb.Ring(append(lower, half(all)[1:]...))
	if len(ring) < 4 { // all on one line
		return ring[:2]
	}
	return ring
}
