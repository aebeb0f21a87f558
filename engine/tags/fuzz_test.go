package tags

import "testing"

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
		b.Of([]byte(`{"metadata": {"space": {"wgs84": {"bounds": [116, 39, 116.5, 39.5]}}}}`))
	})
}
