package layout

import (
	"encoding/json"
	"fmt"
	"time"
)

// DepositsJSON is the record of an item's copies and their fixity:
//
//	{
//	  "copies": {
//	    "content": {"at": "…", "bytes": 22, "files": 2, "outcome": "passed", "path": "items/3/f/a/9/…/content"},
//	    "deposit": {"at": "…", "message": "data/a.txt: mismatch: …", "outcome": "failed", "path": "store/3/f/a/9/…"},
//	    "source": {"at": "…", "outcome": "absent"}
//	  },
//	  "item": "3fa9c0d2e1b7a45",
//	  "schema": 1
//	}
//
// Each copy has its last check alone; the history has those before. Unknown fields
// survive a rewrite.

const depositsSchema = 1

// The outcomes of a check.
const (
	FixityPassed = "passed"
	FixityFailed = "failed" // it is not what the history says
	FixityAbsent = "absent" // it is not there, and need not be
)

// Deposits is deposits.json.
type Deposits struct {
	Item   ItemID
	Copies map[string]FixityCheck // by copy: source, content, deposit

	unknown map[string]json.RawMessage
}

// FixityCheck is one look at one copy.
type FixityCheck struct {
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"`
	Path    string    `json:"path,omitempty"` // relative to the workspace, or absolute; percent-encoded
	Files   int       `json:"files,omitempty"`
	Bytes   int64     `json:"bytes,omitempty"`
	Message string    `json:"message,omitempty"`
}

// DecodeDeposits reads deposits.json; a newer schema is a *SchemaError.
func DecodeDeposits(data []byte) (d Deposits, err error) {
	if err := json.Unmarshal(data, &d.unknown); err != nil {
		return d, fmt.Errorf("read %s: %w", DepositsJSON, err)
	}
	var schema int
	for key, to := range map[string]any{"schema": &schema, "item": &d.Item, "copies": &d.Copies} {
		if raw, ok := d.unknown[key]; ok {
			if err := json.Unmarshal(raw, to); err != nil {
				return d, fmt.Errorf("read %s: %s: %w", DepositsJSON, key, err)
			}
		}
	}
	if schema > depositsSchema {
		return d, &SchemaError{File: DepositsJSON, Schema: schema, Known: depositsSchema}
	}
	return d, nil
}

// Encode writes the record.
func (d Deposits) Encode() ([]byte, error) {
	all := map[string]any{}
	for key, raw := range d.unknown {
		all[key] = raw
	}
	all["schema"], all["item"], all["copies"] = depositsSchema, d.Item, d.Copies
	out, err := EncodeJSON(all)
	if err != nil {
		return nil, fmt.Errorf("write %s of %s: %w", DepositsJSON, d.Item, err)
	}
	return out, nil
}
