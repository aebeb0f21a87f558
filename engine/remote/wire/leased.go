package wire

import (
	"encoding/json"

	"bagpipe/layout"
)

// Leased is an attempt that a program was granted over HTTP.
type Leased struct {
	Item     layout.ItemID `json:"item"`
	Workflow string        `json:"workflow"`
	Step     layout.Name   `json:"step"`
	Attempt  string        `json:"attempt"`
	Lease    string        `json:"lease" doc:"how long the program may be silent, as in 10m0s"`
	Seconds  float64       `json:"leaseSeconds"`
}

// Held names the attempt.
func (l Leased) Held() Held {
	return Held{Item: l.Item, Workflow: l.Workflow, Step: l.Step, Attempt: l.Attempt}
}

// Given is what a program is given that does a step.
type Given struct {
	Item       layout.ItemID   `json:"item"`
	Collection layout.Name     `json:"collection"`
	Label      string          `json:"label" doc:"percent-encoded where it is no text"`
	Workflow   string          `json:"workflow"`
	Step       layout.Name     `json:"step"`
	Attempt    string          `json:"attempt"`
	Lease      string          `json:"lease"`
	With       map[string]any  `json:"with,omitempty"`
	Source     string          `json:"source" doc:"the folder, among the files, of the drop"`
	Content    string          `json:"content" doc:"the folder, among the files, of the object as it stands"`
	Manifest   json.RawMessage `json:"manifest"`
	Execution  json.RawMessage `json:"execution"`
	Files      []File          `json:"files" doc:"of the item, percent-encoded; each is fetched below files/"`
}

// Ended is how a program's attempt ended: as that of a program of the engine's machine, by its
// exit code, its last line, and what it would write to result.json.
type Ended struct {
	Exit    int             `json:"exit,omitempty" minimum:"0" maximum:"255" doc:"0 completed, 65 content failure, 69 unavailable, 75 try later, 77 skipped, else a system failure"`
	Message string          `json:"message,omitempty" maxLength:"4000"`
	Result  json.RawMessage `json:"result,omitempty" doc:"as result.json"`
	Log     string          `json:"log,omitempty" maxLength:"500000"`
	Return  bool            `json:"return,omitempty" doc:"the step is given back, which costs no retry"`
}
