package layout

import (
	"encoding/json"
	"fmt"
	"time"
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
