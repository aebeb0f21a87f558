package stac

import (
	"encoding/json"
	"time"

	"bagpipe/layout"
)

// catalog is a STAC catalog or, with an extent, a collection.
type catalog struct {
	Type        string  `json:"type"`
	Version     string  `json:"stac_version"`
	ID          string  `json:"id"`
	Title       string  `json:"title,omitempty"`
	Description string  `json:"description"`
	License     string  `json:"license,omitempty"`
	Extent      *extent `json:"extent,omitempty"`
	Links       []Link  `json:"links"`
}

type extent struct {
	Spatial struct {
		BBox [][]float64 `json:"bbox"`
	} `json:"spatial"`
	Temporal struct {
		Interval [][]any `json:"interval"`
	} `json:"temporal"`
}

// Catalog words a catalog.
func Catalog(id, description string, links []Link) ([]byte, error) {
	return layout.EncodeJSON(catalog{Type: "Catalog", Version: Version, ID: id, Description: description, Links: links})
}

// Collection words a collection, of items within box and from and until; the zero from: nobody knows of some. Which licences items
// are under the workspace doesn't know: "other".
func Collection(id, description string, box []float64, from, until time.Time, links []Link) ([]byte, error) {
	c := catalog{Type: "Collection", Version: Version, ID: id, Title: id, Description: description, License: "other", Extent: &extent{}, Links: links}
	c.Extent.Spatial.BBox = [][]float64{box}
	c.Extent.Temporal.Interval = [][]any{{stamp(from), stamp(until)}}
	if from.IsZero() {
		c.Extent.Temporal.Interval[0][0] = nil
	}
	return layout.EncodeJSON(c)
}

// IsCatalog reports whether a document is the catalog of that identifier.
func IsCatalog(data []byte, id string) bool {
	var c catalog
	return json.Unmarshal(data, &c) == nil && c.Type == "Catalog" && c.ID == id
}
