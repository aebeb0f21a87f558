package tags

import (
	"encoding/json"
	"testing"
)

// FuzzVocabulary: what people write is read or refused, and a manifest is held against it.
func FuzzVocabulary(f *testing.F) {
	f.Add([]byte("schema: 1\nname: a\ntags:\n  flood: [flood, flood plain, 洪水]\n  drought:\n"), "a flood plain")
	f.Add([]byte("schema: 1\nname: a\nkind: river\ntags: {x: &x [y], z: *x}\n"), "y")
	f.Fuzz(func(t *testing.T, data []byte, label string) {
		v, err := Parse("vocabularies/a.yaml", data)
		if err != nil {
			return
		}
		manifest, err := json.Marshal(map[string]any{"label": label})
		if err != nil {
			t.Fatal(err)
		}
		b := NewBook()
		b.Vocabularies["a"] = v
		of, err := b.Of(t.Context(), manifest)
		if err != nil {
			t.Fatal(err)
		}
		for kind, tags := range of {
			if kind == "" || len(tags) == 0 {
				t.Errorf("%q are tags of kind %q", tags, kind)
			}
		}
	})
}

// FuzzPlaces: places that people write are read or refused, and an object is held against them.
func FuzzPlaces(f *testing.F) {
	f.Add([]byte(`{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"name": "Beijing"}, "geometry": {"type": "Polygon", "coordinates": [[[115, 38], [118, 38], [118, 41], [115, 41], [115, 38]]]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParsePlaces("places/a.geojson", data)
		if err != nil {
			return
		}
		b := NewBook()
		b.Places["a"] = p
		_, _ = b.Of(t.Context(), []byte(`{"metadata": {"space": {"wgs84": {"bounds": [116, 39, 116.5, 39.5]}}}}`))
	})
}
