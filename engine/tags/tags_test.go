package tags

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/paulmach/orb"
	"github.com/paulmach/orb/planar"
)

func book(t *testing.T) *Book {
	t.Helper()
	v, err := Parse("vocabularies/hazards.yaml", []byte("schema: 1\nname: hazards\ntags:\n  flood: [flood, flood plain, 洪水]\n  drought:\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePlaces("places/lands.geojson", []byte(`{"type": "FeatureCollection", "features": [
		{"type": "Feature", "properties": {"name": "West"}, "geometry": {"type": "Polygon", "coordinates": [[[0,0],[10,0],[10,10],[0,10],[0,0]]]}},
		{"type": "Feature", "properties": {"name": "East"}, "geometry": {"type": "Polygon", "coordinates": [[[10,0],[20,0],[20,10],[10,10],[10,0]], [[14,4],[16,4],[16,6],[14,6],[14,4]]]}},
		{"type": "Feature", "properties": {"name": "Islands"}, "geometry": {"type": "MultiPolygon", "coordinates": [[[[178,0],[180,0],[180,2],[178,2],[178,0]]], [[[-180,0],[-178,0],[-178,2],[-180,2],[-180,0]]]]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	b := NewBook()
	b.Vocabularies["hazards"], b.Places["lands"] = v, p
	return b
}

func TestTagsOfAManifest(t *testing.T) {
	b := book(t)
	bounds := func(w, s, e, n float64) string {
		return fmt.Sprintf(`{"metadata": {"space": {"wgs84": {"bounds": [%v,%v,%v,%v]}}}}`, w, s, e, n)
	}
	for manifest, want := range map[string]map[string][]string{
		`{"label": "The FLOOD-plain", "source": {"name": "Floods.zip"}}`: {"business": {"flood"}},
		`{"label": "flooded"}`: {},
		`{"label": "x", "source": {"place": {"path": "2013/Dürre/drought%20of%201540"}}}`: {"business": {"drought"}},
		`{"label": "北京洪水影像"}`:                                                             {"business": {"flood"}},
		`{"metadata": {"time": {"start": "2013-11-27", "end": "2014-01-02"}}}`:            {"time": {"2013", "2013-11", "2013-12", "2014", "2014-01"}},
		`{"metadata": {"time": {"start": "1850"}}}`:                                       {"time": {"1850"}},
		bounds(0, 0, 10, 10):     {"place": {"West"}}, // as the place; that it touches the other counts for nothing
		bounds(9, 1, 11, 2):      {"place": {"East", "West"}},
		bounds(5, 0, 15, 10):     {"place": {"East", "West"}}, // all corners on edges
		bounds(-5, -5, 25, 15):   {"place": {"East", "West"}},
		bounds(14.5, 4.5, 15, 5): {}, // in the hole
		bounds(15, 5, 15, 5):     {}, // a point in it
		bounds(3, 3, 3, 3):       {"place": {"West"}},
		bounds(179, 1, -179, 3):  {"place": {"Islands"}},
		bounds(30, 30, 40, 40):   {},
	} {
		if got, err := b.Of(t.Context(), []byte(manifest)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", manifest, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for data, want := range map[string]string{
		"schema: 2\nname: a\ntags: {x: }\n":               "expected schema: 1",
		"schema: 1\nname: b\ntags: {x: }\n":               "expected the file's name",
		"schema: 1\nname: a\nkind: time\ntags: {x: }\n":   "other than time and place",
		"schema: 1\nname: a\n":                            "expected tags",
		"schema: 1\nname: a\ntags: {x: ['--']}\n":         "expected words",
		"schema: 1\nname: a\ntags: {x: [y]}\nextra: no\n": "extra",
	} {
		if _, err := Parse("vocabularies/a.yaml", []byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", data, err, want)
		}
	}
	feature := func(properties, geometry string) string {
		return `{"type": "FeatureCollection", "features": [{"properties": ` + properties + `, "geometry": ` + geometry + `}]}`
	}
	for data, want := range map[string]string{
		`{"type": "Feature"}`: "expected a FeatureCollection",
		`[`:                   "is no GeoJSON",
		feature(`{}`, `{"type": "Point", "coordinates": [0, 0]}`):                                                                "features[0].properties.name",
		feature(`{"name": "a"}`, `{"type": "Point", "coordinates": [0, 0]}`):                                                     "expected a Polygon",
		feature(`{"name": "a"}`, `{"type": "Polygon", "coordinates": [[[0,0],[1,1],[1,0]]]}`):                                    "not closed",
		feature(`{"name": "a"}`, `{"type": "Polygon", "coordinates": [[[0,0],[400,1],[1,0],[0,0]]]}`):                            "not on Earth",
		feature(`{"name": "a"}`, `{"type": "Polygon", "coordinates": [[[0],[1,1],[1,0],[0]]]}`):                                  "features[0] (a): geometry: a vertex has no longitude and latitude",
		feature(`{"name": "a"}`, `{"type": "Polygon", "coordinates": [[[0,0],`+strings.Repeat("[1,1],", maxVertices)+`[0,0]]]}`): "features[0] (a): geometry: with it the file has more than 200000 vertices",
		feature(`{"name": "a"}`, `null`): "geometry",
	} {
		if _, err := ParsePlaces("places/a.geojson", []byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s: %v, want %s", data, err, want)
		}
	}
}

// TestOverlapOfBoxes holds overlaps of boxes, which are known, against those of polygons.
func TestOverlapOfBoxes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	box := func() orb.Bound {
		x, y := float64(r.IntN(6)), float64(r.IntN(6))
		return orb.Bound{Min: orb.Point{x, y}, Max: orb.Point{x + 1 + float64(r.IntN(4)), y + 1 + float64(r.IntN(4))}}
	}
	for range 20000 {
		a, b := box(), box()
		want := a.Min[0] < b.Max[0] && b.Min[0] < a.Max[0] && a.Min[1] < b.Max[1] && b.Min[1] < a.Max[1]
		if got := overlap(t.Context(), a.ToPolygon(), b.ToPolygon()); got != want {
			t.Fatalf("%v and %v: %v", a, b, got)
		}
	}
	for range 1000 {
		p := orb.Polygon{orb.Ring{}}
		for range 3 + r.IntN(5) {
			p[0] = append(p[0], orb.Point{r.Float64(), r.Float64()})
		}
		p[0] = append(p[0], p[0][0])
		if at, ok := inside(p); ok && !planar.PolygonContains(p, at) {
			t.Fatalf("%v is not inside %v", at, p)
		}
	}
}

// round is a ring of n edges about a point.
func round(x, y, radius float64, n int) orb.Ring {
	r := make(orb.Ring, n+1)
	for i := range n {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		r[i] = orb.Point{x + radius*cos, y + radius*sin}
	}
	r[n] = r[0]
	return r
}

// A footprint of many vertices is held against a place of many in a moment, and who waits for it can end that.
func TestManyVertices(t *testing.T) {
	ring, hole := round(0, 0, 60, maxVertices/2), round(0, 0, 50, maxVertices/2-3)
	land := place{name: "land", bound: ring.Bound(), parts: orb.MultiPolygon{{ring, hole}}}
	places := &Places{all: []place{land}}
	for footprint, want := range map[*orb.Polygon]bool{{round(0, 0, 40, 40_000)}: false, {round(0, 30, 40, 40_000)}: true, {round(55, 0, 1, 40_000)}: true} {
		got := map[string]bool{}
		if err := places.in(t.Context(), simple(*footprint), got); err != nil || got["land"] != want {
			t.Errorf("%v: %v, %v", (*footprint)[0][0], got, err)
		}
	}
	var islands orb.MultiPolygon
	for i := range 5000 {
		islands = append(islands, orb.Polygon{round(float64(i%100), float64(i/100), 0.3, 8)})
	}
	islands = append(islands, orb.Polygon{round(-100, -70, 5, 3000)})
	if few := simple(islands).(orb.MultiPolygon); len(few) != footprintParts || planar.Area(few[0]) < 70 {
		t.Errorf("%d parts, the first of %v", len(few), planar.Area(few[0]))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := places.in(ctx, orb.Polygon{round(0, 0, 40, 40_000)}, map[string]bool{}); !errors.Is(err, context.Canceled) {
		t.Error("it goes on:", err)
	}
}
