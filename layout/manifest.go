package layout

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidwall/gjson"
)

const manifestSchema = 1

// Manifest is manifest.json: what an item is. It changes only when the content
// or its description does.
type Manifest struct {
	Schema     int               `json:"schema"`
	Item       ItemID            `json:"item"`
	Version    int               `json:"version"`
	Collection Name              `json:"collection"`
	Label      string            `json:"label"`
	Lane       Name              `json:"lane"`
	Batch      string            `json:"batch,omitempty"`
	Created    time.Time         `json:"created"`
	Parent     *Parent           `json:"parent,omitempty"`
	Source     Source            `json:"source"`
	Metadata   map[string]any    `json:"metadata"`
	Inventory  *InventorySummary `json:"inventory,omitempty"`
}

// Source says what was dropped. Digest is the drop's own: of a file its
// SHA-256; of a folder as engine/inbox defines it.
type Source struct {
	Name   string    `json:"name"` // percent-encoded (EncodePath)
	Kind   string    `json:"kind"` // folder, archive, bag or file
	Files  int       `json:"files"`
	Bytes  int64     `json:"bytes"`
	Digest string    `json:"digest"`
	Taken  time.Time `json:"taken"`
	By     string    `json:"by"`
	Rule   string    `json:"rule,omitempty"`
}

// InventorySummary is what the manifest says of inventory.json.
type InventorySummary struct {
	Digest string `json:"digest"` // sha256:HEX of the file inventory.json
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// DecodeManifest reads manifest.json; a newer schema is a *SchemaError.
func DecodeManifest(data []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("read %s: %w", ManifestJSON, err)
	}
	if m.Schema > manifestSchema {
		return m, &SchemaError{File: ManifestJSON, Schema: m.Schema, Known: manifestSchema}
	}
	if _, err := ParseItemID(string(m.Item)); err != nil {
		return m, fmt.Errorf("read %s: %w", ManifestJSON, err)
	}
	if err := m.Parent.check(); err != nil {
		return m, fmt.Errorf("read %s: parent: %w", ManifestJSON, err)
	}
	return m, nil
}

// ManifestHead reads of manifest.json what says which item it is and where it
// belongs, and leaves the rest out: a tenth of the work. ok is false when it is not
// as Encode writes it; then DecodeManifest tells what it is.
func ManifestHead(data []byte) (m Manifest, ok bool) {
	if !gjson.ValidBytes(data) {
		return m, false
	}
	ok = true
	text := func(v gjson.Result) string {
		ok = ok && v.Type == gjson.String
		return v.Str
	}
	number := func(v gjson.Result) int {
		n := int(v.Num)
		ok = ok && v.Type == gjson.Number && float64(n) == v.Num
		return n
	}
	root := gjson.ParseBytes(data)
	root.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "schema":
			m.Schema = number(v)
		case "item":
			m.Item = ItemID(text(v))
		case "version":
			m.Version = number(v)
		case "collection":
			m.Collection = Name(text(v))
		case "label":
			m.Label = text(v)
		case "lane":
			m.Lane = Name(text(v))
		case "batch":
			m.Batch = text(v)
		case "created":
			t, err := time.Parse(time.RFC3339Nano, text(v))
			m.Created, ok = t, ok && err == nil
		case "metadata":
			ok = ok && v.IsObject()
		case "source", "inventory":
			ok = ok && plainObject(v)
		default:
			ok = false // may be another spelling of a known key
		}
		return ok
	})
	if _, err := ParseItemID(string(m.Item)); err != nil || m.Schema > manifestSchema || !root.IsObject() {
		return m, false
	}
	return m, ok
}

// plainObject tells whether the fields of source and inventory are of their types.
func plainObject(v gjson.Result) (ok bool) {
	ok = v.IsObject()
	v.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "files", "bytes":
			ok = ok && v.Type == gjson.Number && float64(v.Int()) == v.Num
		case "taken":
			_, err := time.Parse(time.RFC3339Nano, v.Str)
			ok = ok && err == nil
		case "name", "kind", "digest", "by", "rule":
			ok = ok && v.Type == gjson.String
		default:
			ok = false
		}
		return ok
	})
	return ok
}

// Encode writes m over old (nil for a new one); fields m does not know survive.
func (m Manifest) Encode(old []byte) ([]byte, error) {
	m.Schema = manifestSchema
	if m.Metadata == nil {
		m.Metadata = map[string]any{}
	}
	out, err := RewriteJSON(old, m)
	if err != nil {
		return nil, fmt.Errorf("write %s of %s: %w", ManifestJSON, m.Item, err)
	}
	return out, nil
}
