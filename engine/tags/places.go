package tags

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"bagpipe/engine/query"
	"bagpipe/layout"

	"github.com/paulmach/orb"
	"github.com/paulmach/orb/planar"
	"github.com/paulmach/orb/simplify"
)

// Places is places/NAME.geojson.
type Places struct {
	Name string
	all  []place
}

type place struct {
	name  string
	bound orb.Bound
	parts orb.MultiPolygon
}

// Of places a file holds at most maxPlacesBytes, as it is read whenever a setting changes, and maxVertices, as each item's footprint
// is held against them.
const (
	maxPlacesBytes = 8 << 20
	maxVertices    = 200_000
)

// A footprint is simplified to so many vertices, as describe does, and of so many parts, the largest, it is held against places.
const (
	footprintVertices = 200
	footprintParts    = 50
)

// ParsePlaces reads places/NAME.geojson; its errors are *layout.FileError.
func ParsePlaces(file string, data []byte) (*Places, error) {
	wrong := func(format string, args ...any) error {
		return &layout.FileError{File: file, Text: fmt.Sprintf(format, args...)}
	}
	name := strings.TrimSuffix(file[strings.LastIndexByte(file, '/')+1:], ".geojson")
	if _, err := layout.ParseName(name); err != nil {
		return nil, wrong("%v", err)
	}
	if len(data) > maxPlacesBytes {
		return nil, wrong("is larger than %d bytes; simplify the boundaries", maxPlacesBytes)
	}
	var doc struct {
		Type     string `json:"type"`
		Features []struct {
			Properties map[string]any  `json:"properties"`
			Geometry   json.RawMessage `json:"geometry"`
		} `json:"features"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, wrong("is no GeoJSON: %v", err)
	}
	if doc.Type != "FeatureCollection" || len(doc.Features) == 0 {
		return nil, wrong("expected a FeatureCollection with features")
	}
	p := &Places{Name: name}
	vertices := 0
	for i, f := range doc.Features {
		tag, _ := f.Properties["name"].(string)
		if tag = strings.TrimSpace(tag); tag == "" || len(tag) > maxTag || len(query.Words(tag)) == 0 {
			return nil, wrong("features[%d].properties.name: expected the place's name", i)
		}
		g, err := query.Drawn(f.Geometry)
		if err != nil {
			return nil, wrong("features[%d] (%s): geometry: %v", i, tag, err)
		}
		one := place{name: tag, bound: g.Bound()}
		switch g := g.(type) {
		case orb.Polygon:
			one.parts = orb.MultiPolygon{g}
		case orb.MultiPolygon:
			one.parts = g
		default:
			return nil, wrong("features[%d] (%s): geometry: expected a Polygon or MultiPolygon, not a %s", i, tag, g.GeoJSONType())
		}
		for _, part := range one.parts {
			vertices += corners(part)
		}
		if vertices > maxVertices {
			return nil, wrong("features[%d] (%s): geometry: with it the file has more than %d vertices; simplify the boundaries, or spread the places over several files", i, tag, maxVertices)
		}
		p.all = append(p.all, one)
	}
	return p, nil
}

func corners(p orb.Polygon) (n int) {
	for _, r := range p {
		n += len(r)
	}
	return n
}

// simple is a footprint that takes little time to hold against a place.
func simple(g orb.Geometry) orb.Geometry {
	if l, is := g.(orb.LineString); is && len(l) > footprintVertices {
		return simplify.VisvalingamKeep(footprintVertices).LineString(l.Clone())
	}
	parts, _ := g.(orb.MultiPolygon)
	if p, is := g.(orb.Polygon); is {
		parts = orb.MultiPolygon{p}
	}
	all := 0
	for _, p := range parts {
		all += corners(p)
	}
	if all <= footprintVertices {
		return g
	}
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b orb.Polygon) int { return cmp.Compare(planar.Area(b), planar.Area(a)) })
	parts = parts[:min(len(parts), footprintParts)]
	for i, p := range parts {
		var rings orb.Polygon
		for _, r := range p[:min(len(p), footprintParts)] {
			rings = append(rings, simplify.VisvalingamKeep(max(5, footprintVertices*len(r)/all)).Ring(r.Clone()))
		}
		parts[i] = rings
	}
	return parts
}

// in adds the places that a part of the footprint lies in.
func (p *Places) in(ctx context.Context, footprint orb.Geometry, to map[string]bool) error {
	bound := footprint.Bound()
	for _, one := range p.all {
		if !to[one.name] && one.bound.Intersects(bound) && one.holds(ctx, footprint) {
			to[one.name] = true
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (p place) holds(ctx context.Context, footprint orb.Geometry) bool {
	for _, part := range p.parts {
		switch g := footprint.(type) {
		case orb.Point:
			if planar.PolygonContains(part, g) {
				return true
			}
		case orb.LineString:
			if goesThrough(ctx, g, part) {
				return true
			}
		case orb.Polygon:
			if overlap(ctx, g, part) {
				return true
			}
		case orb.MultiPolygon:
			for _, one := range g {
				if overlap(ctx, one, part) {
					return true
				}
			}
		}
	}
	return false
}

func goesThrough(ctx context.Context, line orb.LineString, in orb.Polygon) bool {
	for _, p := range line {
		if ctx.Err() != nil {
			return false
		}
		if planar.PolygonContains(in, p) {
			return true
		}
	}
	return cross(ctx, orb.Polygon{orb.Ring(line)}, in)
}

// overlap reports whether two polygons have an area in common; nothing of that once ctx is done.
func overlap(ctx context.Context, a, b orb.Polygon) bool {
	if !a.Bound().Intersects(b.Bound()) {
		return false
	}
	return cross(ctx, a, b) || reaches(ctx, a, b) || reaches(ctx, b, a)
}

// cross reports whether an edge of one goes through an edge of the other.
func cross(ctx context.Context, a, b orb.Polygon) bool {
	box := b.Bound()
	for _, r := range a {
		for i := 0; i+1 < len(r) && ctx.Err() == nil; i++ {
			edge := (orb.MultiPoint{r[i], r[i+1]}).Bound()
			if !edge.Intersects(box) {
				continue
			}
			for _, s := range b {
				for k := 0; k+1 < len(s); k++ {
					if beside(edge, s[k], s[k+1]) {
						continue
					}
					if turn(r[i], r[i+1], s[k])*turn(r[i], r[i+1], s[k+1]) < 0 && turn(s[k], s[k+1], r[i])*turn(s[k], s[k+1], r[i+1]) < 0 {
						return true
					}
				}
			}
		}
	}
	return false
}

// beside reports whether an edge lies wholly on one side of a box.
func beside(box orb.Bound, from, to orb.Point) bool {
	return max(from[0], to[0]) < box.Min[0] || min(from[0], to[0]) > box.Max[0] || max(from[1], to[1]) < box.Min[1] || min(from[1], to[1]) > box.Max[1]
}

func turn(a, b, c orb.Point) float64 { return (b[0]-a[0])*(c[1]-a[1]) - (b[1]-a[1])*(c[0]-a[0]) }

// reaches reports whether a point of a lies within b, and not on its edge: a corner, the
// middle of an edge, or a point inside a.
func reaches(ctx context.Context, a, b orb.Polygon) bool {
	box := b.Bound()
	for _, r := range a {
		for i := 0; i+1 < len(r) && ctx.Err() == nil; i++ {
			if beside(box, r[i], r[i+1]) {
				continue
			}
			middle := orb.Point{(r[i][0] + r[i+1][0]) / 2, (r[i][1] + r[i+1][1]) / 2}
			if within(r[i], b) || within(middle, b) {
				return true
			}
		}
	}
	p, ok := inside(a)
	return ok && within(p, b)
}

func within(p orb.Point, in orb.Polygon) bool {
	if !planar.PolygonContains(in, p) {
		return false
	}
	for _, r := range in {
		for i := 0; i+1 < len(r); i++ {
			if turn(r[i], r[i+1], p) == 0 && (orb.MultiPoint{r[i], r[i+1]}).Bound().Contains(p) {
				return false
			}
		}
	}
	return true
}

// inside is a point within a polygon, on a line across it that no corner lies on.
func inside(p orb.Polygon) (orb.Point, bool) {
	b := p.Bound()
	y := b.Min[1] + (b.Max[1]-b.Min[1])*0.4837
	var at []float64
	for _, r := range p {
		for i := 0; i+1 < len(r); i++ {
			from, to := r[i], r[i+1]
			if (from[1] > y) != (to[1] > y) {
				at = append(at, from[0]+(y-from[1])*(to[0]-from[0])/(to[1]-from[1]))
			}
		}
	}
	return widest(at, y)
}
