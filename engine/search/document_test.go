package search

import (
	"fmt"
	"testing"

	"bagpipe/layout"
)

// TestManifestWithoutItsMetadata: a manifest of which the head alone is decoded says of what is searched the same as one
// that is decoded whole.
func TestManifestWithoutItsMetadata(t *testing.T) {
	m := layout.Manifest{Item: layout.ItemIDOf(7), Version: 1, Collection: "maps", Label: "a \"b\" <é>", Lane: "normal", Metadata: map[string]any{"a": 1},
		Recognised: layout.Recognised{Type: "map"}, Source: layout.Source{Name: `a<b>"c\é.tif`}}
	for _, place := range []*layout.Place{nil, {Catalog: "scans", Path: "x/\"y\"/z"}} {
		m.Source.Place = place
		data, err := m.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := layout.ManifestHead(data); !ok {
			t.Fatal("the head is not read by itself")
		}
		said := func(m layout.Manifest, err error) string {
			path := "none"
			if m.Source.Place != nil {
				path = m.Source.Place.Path
			}
			return fmt.Sprintf("%s %s %q %s %q %s %v", m.Item, m.Collection, m.Label, m.Type, m.Source.Name, path, err)
		}
		if is, whole := said(manifestOf(data)), said(layout.DecodeManifest(data)); is != whole {
			t.Errorf("%s, not %s", is, whole)
		}
	}
}
