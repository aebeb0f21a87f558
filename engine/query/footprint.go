package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/paulmach/orb"
	"github.com/paulmach/orb/encoding/wkt"
	"github.com/tidwall/gjson"
)

// Footprint is where the item lies, in WGS 84 and cut at 180°: its boundary, or the box of its
// bounds. nil: nobody knows. A boundary that is no geometry on Earth is passed over.
func Footprint(manifest []byte) orb.Geometry {
	for _, at := range []string{"metadata.space.boundary", "metadata.space.wgs84.optimised", "metadata.space.wgs84.boundary"} {
		var g orb.Geometry
		switch v := gjson.GetBytes(manifest, at); {
		case v.IsObject():
			g, _ = ParseGeometry([]byte(v.Raw))
		case v.Type == gjson.String:
			g, _ = wkt.Unmarshal(v.Str)
		}
		if g != nil && drawn(g) {
			return g
		}
	}
	b, ok := Bounds(manifest)
	if !ok {
		return nil
	}
	var boxes orb.MultiPolygon
	for _, p := range b.Parts() {
		if p[0] == p[2] || p[1] == p[3] {
			return narrow(p)
		}
		boxes = append(boxes, orb.Bound{Min: orb.Point{p[0], p[1]}, Max: orb.Point{p[2], p[3]}}.ToPolygon())
	}
	if len(boxes) == 1 {
		return boxes[0]
	}
	return boxes
}

// narrow is a box without an area.
func narrow(b Box) orb.Geometry {
	from, to := orb.Point{b[0], b[1]}, orb.Point{b[2], b[3]}
	if from == to {
		return from
	}
	return orb.LineString{from, to}
}

// ParseGeometry reads a geometry of GeoJSON: a point, a line, polygons.
func ParseGeometry(data []byte) (orb.Geometry, error) {
	var g struct {
		Type        string          `json:"type"`
		Coordinates json.RawMessage `json:"coordinates"`
	}
	if err := json.Unmarshal(data, &g); err != nil {
		return nil, err
	}
	if bytes.Contains(g.Coordinates, []byte("null")) { // which would be taken for 0
		return nil, errNoNumber
	}
	switch g.Type {
	case "Point":
		return decoded(g.Coordinates, vertex)
	case "LineString":
		return decoded(g.Coordinates, line)
	case "Polygon":
		return decoded(g.Coordinates, polygon)
	case "MultiPolygon":
		return decoded(g.Coordinates, polygons)
	}
	return nil, fmt.Errorf("a geometry of type %q", g.Type)
}

func decoded[C any, G orb.Geometry](coordinates []byte, of func(C) (G, error)) (orb.Geometry, error) {
	var c C
	if err := json.Unmarshal(coordinates, &c); err != nil {
		return nil, err
	}
	g, err := of(c)
	if err != nil {
		return nil, err
	}
	return g, nil
}

var errNoNumber = errors.New("a vertex has no longitude and latitude")

// vertex leaves out a height.
func vertex(numbers []float64) (orb.Point, error) {
	if len(numbers) < 2 {
		return orb.Point{}, errNoNumber
	}
	return orb.Point{numbers[0], numbers[1]}, nil
}

func line(points [][]float64) (orb.LineString, error) { return each(points, vertex) }

func ring(points [][]float64) (orb.Ring, error) { return each(points, vertex) }

func polygon(rings [][][]float64) (orb.Polygon, error) { return each(rings, ring) }

func polygons(all [][][][]float64) (orb.MultiPolygon, error) { return each(all, polygon) }

func each[From, To any](all []From, one func(From) (To, error)) (out []To, err error) {
	out = make([]To, len(all))
	for i := range all {
		if out[i], err = one(all[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// GeoJSON words a geometry.
func GeoJSON(g orb.Geometry) ([]byte, error) {
	return json.Marshal(struct {
		Type        string       `json:"type"`
		Coordinates orb.Geometry `json:"coordinates"`
	}{g.GeoJSONType(), g})
}

// drawn reports whether a geometry is one that GeoJSON words as a footprint: on Earth, its
// rings closed.
func drawn(g orb.Geometry) bool {
	switch g := g.(type) {
	case orb.Point:
		return onEarth(g)
	case orb.LineString:
		return len(g) > 1 && onEarth(g...)
	case orb.Polygon:
		return closed(g)
	case orb.MultiPolygon:
		for _, p := range g {
			if !closed(p) {
				return false
			}
		}
		return len(g) > 0
	}
	return false
}

func closed(p orb.Polygon) bool {
	for _, r := range p {
		if len(r) < 4 || r[0] != r[len(r)-1] || !onEarth(r...) {
			return false
		}
	}
	return len(p) > 0
}

func onEarth(points ...orb.Point) bool {
	for _, p := range points {
		if math.IsNaN(p[0]) || math.IsNaN(p[1]) || !upTo(p[0], 180) || !upTo(p[1], 90) {
			return false
		}
	}
	return true
}

// Drawn is ParseGeometry of a geometry that is a footprint.
func Drawn(data []byte) (orb.Geometry, error) {
	g, err := ParseGeometry(data)
	if err == nil && !drawn(g) {
		err = errors.New("is not on Earth, or not closed")
	}
	return g, err
}
