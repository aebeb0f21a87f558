package tags

import (
	"encoding/json"
	"fmt"
	"strings"

	"bagpipe/engine/query"
	"bagpipe/layout"

	"github.com/paulmach/orb"
	"github.com/paulmach/orb/planar"
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

// Of places a file holds at most maxPlacesBytes: it is read whenever a setting changes.
const maxPlacesBytes = 8 << 20

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
		p.all = append(p.all, one)
	}
	return p, nil
}

// in adds the places that a part of the footprint lies in.
func (p *Places) in(footprint orb.Geometry, to map[string]bool) {
	bound := footprint.Bound()
	for _, one := range p.all {
		if !to[one.name] && one.bound.Intersects(bound) && one.holds(footprint) {
			to[one.name] = true
		}
	}
}

func (p place) holds(footprint orb.Geometry) bool {
	for _, part := range p.parts {
		switch g := footprint.(type) {
		case orb.Point:
			if planar.PolygonContains(part, g) {
				return true
			}
		case orb.LineString:
			if goesThrough(g, part) {
				return true
			}
		case orb.Polygon:
			if overlap(g, part) {
				return true
			}
		case orb.MultiPolygon:
			for _, one := range g {
				if overlap(one, part) {
					return true
				}
			}
		}
	}
	return false
}

func goesThrough(line orb.LineString, in orb.Polygon) bool {
	for _, p := range line {
		if planar.PolygonContains(in, p) {
			return true
		}
	}
	return cross(orb.Polygon{orb.Ring(line)}, in)
}

// overlap reports whether two polygons have an area in common.
func overlap(a, b orb.Polygon) bool {
	if !a.Bound().Intersects(b.Bound()) {
		return false
	}
	return cross(a, b) || reaches(a, b) || reaches(b, a)
}

// cross reports whether an edge of one goes through an edge of the other.
func cross(a, b orb.Polygon) bool {
	box := b.Bound()
	for _, r := range a {
		for i := 0; i+1 < len(r); i++ {
			if !(orb.MultiPoint{r[i], r[i+1]}).Bound().Intersects(box) {
				continue
			}
			for _, s := range b {
				for k := 0; k+1 < len(s); k++ {
					if turn(r[i], r[i+1], s[k])*turn(r[i], r[i+1], s[k+1]) < 0 && turn(s[k], s[k+1], r[i])*turn(s[k], s[k+1], r[i+1]) < 0 {
						return true
					}
				}
			}
		}
	}
	return false
}

func turn(a, b, c orb.Point) float64 { return (b[0]-a[0])*(c[1]-a[1]) - (b[1]-a[1])*(c[0]-a[0]) }

// reaches reports whether a point of a lies within b, and not on its edge: a corner, the
// middle of an edge, or a point inside a.
func reaches(a, b orb.Polygon) bool {
	for _, r := range a {
		for i := 0; i+1 < len(r); i++ {
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
