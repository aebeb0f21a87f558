package wire

import "bagpipe/layout"

// SubmissionKind is the kind of identifier by which an item keeps the key of its submission.
const SubmissionKind = "submission"

// Submission is what a program submits: an object, and what is said of it. All paths begin with
// the name of the drop, which is one file or one folder.
type Submission struct {
	Collection  layout.Name       `json:"collection,omitempty" doc:"default: the rules', or default"`
	Workflow    string            `json:"workflow,omitempty"`
	Label       string            `json:"label,omitempty"`
	Lane        string            `json:"lane,omitempty"`
	Batch       layout.Name       `json:"batch,omitempty"`
	Worker      layout.Name       `json:"worker,omitempty" doc:"the worker that is to do the steps that are placed on workers"`
	Identifiers map[string]string `json:"identifiers,omitempty"`
	Metadata    map[string]any    `json:"metadata,omitempty"`
	Folders     []string          `json:"folders,omitempty" doc:"also those that are empty; percent-encoded"`
	Files       []File            `json:"files,omitempty"`
}

// Submitted is how a submission stands: the item it became, or what of it is here.
type Submitted struct {
	Key        string           `json:"key"`
	Item       layout.ItemID    `json:"item,omitempty"`
	Collection layout.Name      `json:"collection,omitempty"`
	Label      string           `json:"label,omitempty"`
	Workflow   string           `json:"workflow,omitempty"`
	Here       map[string]int64 `json:"here,omitempty" doc:"bytes that came, by the path of the file"`
	Want       []string         `json:"want,omitempty" doc:"files that are not here as announced, and are to be sent"`
}
