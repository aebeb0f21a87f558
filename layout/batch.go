package layout

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const batchSchema = 1

// Batch is batches/NAME.json: items that belong together. The items are not listed
// in it; each names its batch in its manifest.
type Batch struct {
	Schema   int       `json:"schema"`
	Name     Name      `json:"name"`
	Opened   time.Time `json:"opened"`
	By       string    `json:"by"`
	Closed   time.Time `json:"closed,omitzero"` // nothing is added to it any more
	ClosedBy string    `json:"closedBy,omitempty"`
}

// BatchPath is where a batch stands.
func BatchPath(name Name) string { return BatchesDir + "/" + string(name) + ".json" }

// BatchOfPath gives the batch a committed path is about.
func BatchOfPath(p string) (Name, bool) {
	base, ok := strings.CutPrefix(p, BatchesDir+"/")
	base, isJSON := strings.CutSuffix(base, ".json")
	name, err := ParseName(base)
	return name, ok && isJSON && err == nil
}

// DecodeBatch reads batches/NAME.json; a newer schema is a *SchemaError.
func DecodeBatch(data []byte) (Batch, error) {
	var b Batch
	if err := json.Unmarshal(data, &b); err != nil {
		return b, fmt.Errorf("read a batch: %w", err)
	}
	if b.Schema > batchSchema {
		return b, &SchemaError{File: BatchesDir + "/" + string(b.Name) + ".json", Schema: b.Schema, Known: batchSchema}
	}
	_, err := ParseName(string(b.Name))
	return b, err
}

// Encode writes b over old (nil for a new one); fields b does not know survive.
func (b Batch) Encode(old []byte) ([]byte, error) {
	b.Schema = batchSchema
	out, err := RewriteJSON(old, b)
	if err != nil {
		return nil, fmt.Errorf("write batch %s: %w", b.Name, err)
	}
	return out, nil
}
