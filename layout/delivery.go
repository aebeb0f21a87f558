package layout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// DeliveryJSON is the record of where an item goes, beside its deposits:
//
//	{
//	  "item": "3fa9c0d2e1b7a45",
//	  "schema": 1,
//	  "targets": {
//	    "portal": {
//	      "at": "…", "by": "bagpipe host:4711", "digest": "sha256:…", "rule": "imagery/1", "state": "delivered", "version": 2,
//	      "decision": {"at": "…", "by": "A <a@example.org>", "text": "…", "version": 2, "what": "approved"},
//	      "sent": {"at": "…", "digest": "sha256:…", "earlier": {"1": "sha256:…"}, "receipt": "…", "version": 2}
//	    }
//	  }
//	}
//
// version and digest are of what is to be delivered, sent is what the target holds, or may
// hold. A decision is a person's, and may come by a push. Unknown fields survive a rewrite.
const DeliveryJSON = "delivery.json"

// DeliveryControl is the republication under way; committed.
const DeliveryControl = "controls/delivery.json"

const deliverySchema = 1

// The states of a delivery.
const (
	DeliveryReady       = "ready"       // it goes by itself
	DeliveryWaits       = "waits"       // for a person's approval
	DeliveryForbidden   = "forbidden"   // a person refused it
	DeliverySending     = "sending"     // an engine is at it
	DeliveryDelivered   = "delivered"   // the target holds it
	DeliveryUnconfirmed = "unconfirmed" // the target holds it, and no rule says so any more, or a person wants it back
	DeliveryWithdrawn   = "withdrawn"   // the target held it
	DeliveryFailed      = "failed"      // it is tried again when a person says so
)

// DeliveryUnreadable is what is said of an item whose DeliveryJSON cannot be read. No record has it.
const DeliveryUnreadable = "unreadable"

var deliveryStates = []string{DeliveryReady, DeliveryWaits, DeliveryForbidden, DeliverySending, DeliveryDelivered, DeliveryUnconfirmed, DeliveryWithdrawn, DeliveryFailed}

// What a person may decide.
const (
	DeliveryApproved = "approved"
	DeliveryRefused  = "refused"
	DeliveryTakeBack = "withdrawn"
)

var deliveryDecisions = []string{DeliveryApproved, DeliveryRefused, DeliveryTakeBack}

// Deliveries is delivery.json.
type Deliveries struct {
	Item    ItemID
	Targets map[Name]*Delivery

	unknown map[string]json.RawMessage
}

// Delivery is what becomes of an item at one target.
type Delivery struct {
	State    string            `json:"state"`
	Version  int               `json:"version"`
	Digest   string            `json:"digest"`
	Rule     string            `json:"rule"`
	By       string            `json:"by"`                 // who brought it into its state
	At       time.Time         `json:"at,omitzero"`        // when
	Engine   EngineID          `json:"engine,omitempty"`   // that sends it or takes it back
	Attempts int               `json:"attempts,omitempty"` // failed ones in a row
	After    time.Time         `json:"after,omitzero"`     // it is not tried before
	Message  string            `json:"message,omitempty"`
	Due      bool              `json:"due,omitempty"` // a republication found it under way, or the target away: runs take it back, unless a rule wants it
	Decision *DeliveryDecision `json:"decision,omitempty"`
	Sent     *DeliverySent     `json:"sent,omitempty"`
}

// DeliveryDecision is a person's.
type DeliveryDecision struct {
	What    string    `json:"what"` // approved, refused or withdrawn
	By      string    `json:"by"`
	At      time.Time `json:"at,omitzero"`
	Version int       `json:"version,omitempty"` // approved: this alone
	Text    string    `json:"text,omitempty"`
	Kept    bool      `json:"kept,omitempty"` // withdrawn: the target refused to give it back, and is not asked again by itself
}

// DeliverySent is what a target holds.
type DeliverySent struct {
	Version int       `json:"version"`
	Digest  string    `json:"digest"`
	Receipt string    `json:"receipt,omitempty"`
	At      time.Time `json:"at"`
	Maybe   bool      `json:"maybe,omitempty"` // its sending has not ended well: the target is asked

	Place  string   `json:"place,omitempty"`  // where the target was, as settings have it; "": not noted
	Format string   `json:"format,omitempty"` // of what was sent; "": not noted
	Left   []string `json:"left,omitempty"`   // where the target was before, and may hold it still

	Earlier map[int]string `json:"earlier,omitempty"` // other versions that were sent, and not taken back: their digests
}

// DecodeDeliveries reads delivery.json; a newer schema is a *SchemaError.
func DecodeDeliveries(data []byte) (d Deliveries, err error) {
	if err := json.Unmarshal(data, &d.unknown); err != nil {
		return d, fmt.Errorf("read %s: %w", DeliveryJSON, err)
	}
	var schema int
	for key, to := range map[string]any{"schema": &schema, "item": &d.Item, "targets": &d.Targets} {
		if raw, ok := d.unknown[key]; ok {
			if err := json.Unmarshal(raw, to); err != nil {
				return d, fmt.Errorf("read %s: %s: %w", DeliveryJSON, key, err)
			}
		}
	}
	if schema > deliverySchema {
		return d, &SchemaError{File: DeliveryJSON, Schema: schema, Known: deliverySchema}
	}
	for name, t := range d.Targets {
		if _, err := ParseName(string(name)); err != nil || t == nil {
			return d, fmt.Errorf("read %s: targets: %q is no target with its delivery", DeliveryJSON, name)
		}
		if t.State != "" && !slices.Contains(deliveryStates, t.State) { // "": a person decided before any rule did
			return d, fmt.Errorf("read %s: targets: %s: no state is called %q", DeliveryJSON, name, t.State)
		}
		if t.Decision != nil && !slices.Contains(deliveryDecisions, t.Decision.What) {
			return d, fmt.Errorf("read %s: targets: %s: expected a decision of %s, not %q", DeliveryJSON, name, strings.Join(deliveryDecisions, ", "), t.Decision.What)
		}
	}
	return d, nil
}

// Encode writes the record.
func (d Deliveries) Encode() ([]byte, error) {
	all := map[string]any{}
	for key, raw := range d.unknown {
		all[key] = raw
	}
	all["schema"], all["item"], all["targets"] = deliverySchema, d.Item, d.Targets
	out, err := EncodeJSON(all)
	if err != nil {
		return nil, fmt.Errorf("write %s of %s: %w", DeliveryJSON, d.Item, err)
	}
	return out, nil
}
