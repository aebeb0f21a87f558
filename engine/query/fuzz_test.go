package query

import (
	"testing"

	"github.com/goccy/go-yaml"
)

// FuzzParse: a saved search is refused, or asks the same once it is saved again.
func FuzzParse(f *testing.F) {
	f.Add([]byte("schema: 1\nname: floods\ntext: flood plain\nbbox: [116, 39, 117, 41]\nfrom: 2013\nuntil: 2014-06\ntags: [flood, place:Beijing]\nwhere: type = orthophoto\ncollection: maps\n"))
	f.Add([]byte("schema: 1\nname: floods\ntext: '\"洪 水\" é'\nbbox: [177, -20, -178, 1.5]\n"))
	f.Add([]byte("schema: 1\nname: floods\nbbox: [.nan, 0, .inf, 91]\nfrom: -1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("searches/floods.yaml", data)
		if err != nil {
			return
		}
		again, err := yaml.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := Parse("searches/floods.yaml", again); err != nil || read.String() != s.String() {
			t.Errorf("%s, saved as %q, is %v (%v)", s, again, read, err)
		}
	})
}

// FuzzFootprint: of whatever stands in a manifest a footprint is on Earth, or nothing.
func FuzzFootprint(f *testing.F) {
	f.Add([]byte(`{"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}`))
	f.Add([]byte(`{"type": "Point", "coordinates": [1e308, -1e308]}`))
	f.Add([]byte(`"MULTIPOLYGON(((179 0,180 0,180 0.5,179 0)))"`))
	f.Add([]byte(`{"bounds": [170, -10, -170, 10]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, manifest := range []string{`{"metadata": {"space": {"boundary": ` + string(data) + `}}}`, `{"metadata": {"space": {"wgs84": ` + string(data) + `}}}`} {
			if g := Footprint([]byte(manifest)); g != nil {
				if b := g.Bound(); !(b.Min[0] >= -180 && b.Max[0] <= 180 && b.Min[1] >= -90 && b.Max[1] <= 90) {
					t.Errorf("%s lies at %v", manifest, b)
				}
			}
		}
	})
}
