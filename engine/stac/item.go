package stac

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"bagpipe/engine/query"
	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// Version is of STAC.
const Version = "1.1.0"

const (
	projection = "https://stac-extensions.github.io/projection/v2.0.0/schema.json"
	file       = "https://stac-extensions.github.io/file/v2.1.0/schema.json"
)

// The media types of links.
const (
	JSON    = "application/json"
	GeoJSON = "application/geo+json"
)

// Link is a link of a document.
type Link struct {
	Rel   string `json:"rel"`
	Href  string `json:"href"`
	Type  string `json:"type,omitempty"`
	Title string `json:"title,omitempty"`
}

// feature is a STAC item.
type feature struct {
	Type       string           `json:"type"`
	Version    string           `json:"stac_version"`
	Extensions []string         `json:"stac_extensions"`
	ID         string           `json:"id"`
	Geometry   json.RawMessage  `json:"geometry"`
	BBox       []float64        `json:"bbox,omitempty"`
	Properties map[string]any   `json:"properties"`
	Links      []Link           `json:"links"`
	Assets     map[string]asset `json:"assets"`
	Collection string           `json:"collection,omitempty"`
}

type asset struct {
	Href     string   `json:"href"`
	Title    string   `json:"title,omitempty"`
	Type     string   `json:"type,omitempty"`
	Roles    []string `json:"roles,omitempty"`
	Size     *int64   `json:"file:size,omitempty"` // of what the address leads to; nil: not known
	Checksum string   `json:"file:checksum,omitempty"`
	Local    string   `json:"file:local_path,omitempty"`

	Bands []map[string]string `json:"bands,omitempty"` // of images
}

// Files says where the files of an item are had.
type Files struct {
	Href   func(name string) string // the address of a file, whose name is as URLs have it; nil: nowhere, so that no assets are named
	Packed bool                     // the address is that of an archive that has the file in it
}

// Below gives the addresses of an item's files as BASE/ITEM/PATH.
func Below(base string, id layout.ItemID) func(name string) string {
	return func(name string) string { return strings.TrimSuffix(base, "/") + "/" + string(id) + "/" + name }
}

// Item words an item. A link to a collection makes it one of that collection.
func Item(manifest, inventory []byte, at Files, links ...Link) ([]byte, error) {
	m, err := layout.DecodeManifest(manifest)
	if err != nil {
		return nil, err
	}
	f := feature{Type: "Feature", Version: Version, Extensions: []string{file}, ID: string(m.Item), Geometry: json.RawMessage("null"),
		Properties: properties(m, manifest), Links: links, Assets: map[string]asset{}}
	if links == nil {
		f.Links = []Link{}
	}
	for _, l := range links {
		if l.Rel == "collection" {
			f.Collection = string(m.Collection)
		}
	}
	if err := f.place(manifest); err != nil {
		return nil, err
	}
	if code := projectionOf(manifest); code != "" {
		f.Properties["proj:code"] = code
		f.Extensions = []string{projection, file}
	}
	if inventory != nil && at.Href != nil {
		if err := f.addAssets(inventory, bandsOf(gjson.GetBytes(manifest, "metadata.entity.bands")), at); err != nil {
			return nil, err
		}
	}
	return layout.EncodeJSON(f)
}

func (f *feature) addAssets(inventory []byte, bands []map[string]string, at Files) error {
	files, err := layout.DecodeInventory(inventory)
	if err != nil {
		return err
	}
	roles := gjson.GetBytes(inventory, "files")
	for encoded, about := range files.Files {
		name, err := layout.DecodePath(encoded)
		if err != nil {
			return err
		}
		a := asset{Href: at.Href((&url.URL{Path: name}).EscapedPath()), Title: path.Base(encoded), Roles: []string{"data"}}
		switch {
		case at.Packed: // type, size and checksum would be read as the archive's
			if !strings.ContainsAny(encoded, notLocal) {
				a.Local = encoded
			}
		default:
			a.Type, a.Size = about.Type, &about.Size
			if about.SHA256 != "" {
				a.Checksum = "1220" + about.SHA256
			}
		}
		role := roles.Get(gjson.Escape(encoded) + ".role").Str
		known := map[string]string{"metadata": "metadata", "view": "overview", "attached": "attached"}[role]
		if known != "" {
			a.Roles = []string{known}
		}
		if known == "" && strings.HasPrefix(about.Type, "image/") {
			a.Bands = bands
		}
		f.Assets[encoded] = a
	}
	return nil
}

// notLocal are the characters that file:local_path cannot have.
const notLocal = "\r\n\t\\:'\""

// earliest is the first moment that RFC 3339 has a year for.
const earliest = "0001-01-01T00:00:00Z"

// properties are an item's. STAC has no word for an item of which nobody knows when it is from: datetime may be null only
// beside the two ends of a span, and neither may be open. All that is known is that it is no younger than its registration.
func properties(m layout.Manifest, manifest []byte) map[string]any {
	p := map[string]any{"title": m.Label, "created": stamp(m.Created), "version": fmt.Sprint(max(m.Version, 1))}
	switch s, ok := query.Time(manifest); {
	case !ok:
		p["datetime"], p["start_datetime"], p["end_datetime"] = nil, earliest, stamp(m.Created)
	case s.Start.Equal(s.End):
		p["datetime"] = stamp(s.Start)
	default:
		p["datetime"], p["start_datetime"], p["end_datetime"] = nil, stamp(s.Start), stamp(s.End)
	}
	if tags := query.Tags(manifest); len(tags) > 0 {
		p["keywords"] = tags
	}
	return p
}

// mostBands is far above any sensor.
const mostBands = 1000

// bandsOf are the bands by their names, or numbered.
func bandsOf(v gjson.Result) (bands []map[string]string) {
	if n := v.Int(); v.Type == gjson.Number && n > 0 && n <= mostBands {
		for i := range n {
			bands = append(bands, map[string]string{"name": fmt.Sprintf("b%d", i+1)})
		}
		return bands
	}
	for i, b := range v.Array() {
		name := b.Get("name").Str
		if b.Type == gjson.String {
			name = b.Str
		}
		if name == "" {
			name = fmt.Sprintf("b%d", i+1)
		}
		if v.IsArray() && i < mostBands {
			bands = append(bands, map[string]string{"name": name})
		}
	}
	return bands
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// place sets the geometry, and the bounds: those of the geometry where the manifest has none.
func (f *feature) place(manifest []byte) (err error) {
	g := query.Footprint(manifest)
	if g == nil {
		return nil
	}
	f.Geometry, err = query.GeoJSON(g)
	if b, ok := query.Bounds(manifest); ok {
		f.BBox = b[:]
		return err
	}
	b := g.Bound()
	f.BBox = []float64{b.Left(), b.Bottom(), b.Right(), b.Top()}
	return err
}

// projectionOf is the code of the native reference system, as EPSG:32650.
func projectionOf(manifest []byte) string {
	for _, at := range []string{"metadata.space.crs.code", "metadata.space.native.code"} {
		if code := gjson.GetBytes(manifest, at).Str; code != "" {
			return code
		}
	}
	return ""
}
