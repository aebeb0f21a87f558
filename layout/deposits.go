package layout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
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
//	  "schema": 1,
//	  "targets": {
//	    "vault": {
//	      "1": {"bytes": 1830, "digest": "sha512:…", "files": 9, "layout": "bag", "outcome": "passed",
//	            "place": "3/f/a/9/3fa9c0d2e1b7a45", "verified": "…", "written": "…"}
//	    }
//	  }
//	}
//
// Each copy has its last check alone; the history has those before. targets has the copies of
// the item's versions on the targets of the settings, by target and version. A copy's digest
// is that of its tag manifests, each with its name before it, which vouch for all the rest;
// of a tar that of all its bytes.
// Of two records of one copy the later verified wins. Unknown fields survive a rewrite.

const depositsSchema = 1

// The outcomes of a check.
const (
	FixityPassed = "passed"
	FixityFailed = "failed" // it is not what the history says
	FixityAbsent = "absent" // it is not there, and need not be
	FixityDown   = "down"   // its target could not be asked; never recorded
	FixityNewer  = "newer"  // an object in place that is not as it was catalogued, by its size or times, too; never recorded
)

// Deposits is deposits.json.
type Deposits struct {
	Item    ItemID
	Copies  map[string]FixityCheck       // by copy: source, content, deposit
	Targets map[Name]map[int]DepositCopy // by target and version of the item

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
	How     string    `json:"how,omitempty"`   // of a failed one: changed, missing or unreadable
	Aside   string    `json:"aside,omitempty"` // as of DepositCopy
}

// DepositCopy is the copy of one version of an item on one target.
type DepositCopy struct {
	Place       string          `json:"place"` // relative to the target's root, percent-encoded
	Layout      string          `json:"layout"`
	Files       int             `json:"files"`
	Bytes       int64           `json:"bytes"`
	Digest      string          `json:"digest"`             // sha512:…
	State       string          `json:"state,omitempty"`    // of OCFL: the object's version, v1
	Version     string          `json:"version,omitempty"`  // of an S3 object
	Retention   time.Time       `json:"retention,omitzero"` // it can't be deleted before
	Written     time.Time       `json:"written"`
	Verified    time.Time       `json:"verified"` // last, whatever the outcome
	Outcome     string          `json:"outcome"`
	Message     string          `json:"message,omitempty"` // what is wrong
	LastFailure *DepositFailure `json:"lastFailure,omitempty"`
	Aside       string          `json:"aside,omitempty"` // where bytes stand that a mend set aside, as place
}

// DepositFailure is the last look at a copy that found it wanting.
type DepositFailure struct {
	At      time.Time `json:"at"`
	Message string    `json:"message"`
}

// Note records a copy of a version, unless a later one is recorded.
func (d *Deposits) Note(target Name, version int, c DepositCopy) {
	if d.Targets == nil {
		d.Targets = map[Name]map[int]DepositCopy{}
	}
	if d.Targets[target] == nil {
		d.Targets[target] = map[int]DepositCopy{}
	}
	old := d.Targets[target][version]
	if old.Verified.After(c.Verified) {
		return
	}
	if old.Digest == c.Digest && !old.Written.IsZero() {
		c.Written = old.Written
	}
	if c.Retention.Before(old.Retention) { // which only grows
		c.Retention = old.Retention
	}
	if c.LastFailure == nil {
		c.LastFailure = old.LastFailure
	}
	if c.Outcome == FixityFailed {
		c.LastFailure = &DepositFailure{At: c.Verified, Message: c.Message}
	}
	d.Targets[target][version] = c
}

// Join unites two records of an item's copies: of each copy what the later look found, the
// longer retention, the last failure. Unknown fields are those of d, then of other.
func (d Deposits) Join(other Deposits) Deposits {
	out := Deposits{Item: d.Item, Copies: maps.Clone(d.Copies), unknown: maps.Clone(other.unknown)}
	if out.unknown == nil {
		out.unknown = map[string]json.RawMessage{}
	}
	maps.Copy(out.unknown, d.unknown)
	for name, c := range other.Copies {
		if old, known := out.Copies[name]; !known || later(old.At, old, c.At, c) {
			if out.Copies == nil {
				out.Copies = map[string]FixityCheck{}
			}
			out.Copies[name] = c
		}
	}
	for _, of := range []Deposits{d, other} {
		for target, versions := range of.Targets {
			for version, c := range versions {
				out.join(target, version, c)
			}
		}
	}
	return out
}

func (d *Deposits) join(target Name, version int, c DepositCopy) {
	old, known := d.Targets[target][version]
	if known {
		first, last := c, old
		if later(old.Verified, old.found(), c.Verified, c.found()) {
			first, last = old, c
		}
		c = last
		if first.Retention.After(c.Retention) {
			c.Retention = first.Retention
		}
		if f := first.LastFailure; f != nil && (c.LastFailure == nil || later(c.LastFailure.At, *c.LastFailure, f.At, *f)) {
			c.LastFailure = f
		}
	}
	if d.Targets == nil {
		d.Targets = map[Name]map[int]DepositCopy{}
	}
	if d.Targets[target] == nil {
		d.Targets[target] = map[int]DepositCopy{}
	}
	d.Targets[target][version] = c
}

// found is what a look found: less what is joined by rules of its own.
func (c DepositCopy) found() DepositCopy {
	c.LastFailure, c.Retention = nil, time.Time{}
	return c
}

// later tells whether b was found after a; at one time the greater by its spelling.
func later(at time.Time, a any, bt time.Time, b any) bool {
	if c := at.Compare(bt); c != 0 {
		return c < 0
	}
	x, _ := json.Marshal(a) // plain values: it cannot fail
	y, _ := json.Marshal(b)
	return bytes.Compare(x, y) < 0
}

// DecodeDeposits reads deposits.json; a newer schema is a *SchemaError.
func DecodeDeposits(data []byte) (d Deposits, err error) {
	if err := json.Unmarshal(data, &d.unknown); err != nil {
		return d, fmt.Errorf("read %s: %w", DepositsJSON, err)
	}
	var schema int
	for key, to := range map[string]any{"schema": &schema, "item": &d.Item, "copies": &d.Copies, "targets": &d.Targets} {
		if raw, ok := d.unknown[key]; ok {
			if err := json.Unmarshal(raw, to); err != nil {
				return d, fmt.Errorf("read %s: %s: %w", DepositsJSON, key, err)
			}
		}
	}
	if schema > depositsSchema {
		return d, &SchemaError{File: DepositsJSON, Schema: schema, Known: depositsSchema}
	}
	// A pushed target without versions would hide the store's bag from the checks.
	maps.DeleteFunc(d.Targets, func(_ Name, versions map[int]DepositCopy) bool { return len(versions) == 0 })
	if len(d.Targets) == 0 {
		delete(d.unknown, "targets")
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
	if len(d.Targets) > 0 {
		all["targets"] = d.Targets
	}
	out, err := EncodeJSON(all)
	if err != nil {
		return nil, fmt.Errorf("write %s of %s: %w", DepositsJSON, d.Item, err)
	}
	return out, nil
}
