package wire

import (
	"context"
	"errors"
	"slices"
	"time"

	"bagpipe/layout"
	"bagpipe/steps"
)

// How an attempt ended on a worker.
const (
	Done        = "done" // completed or skipped
	Failed      = "failed"
	Deferred    = "later"
	Unavailable = "unavailable"
	Returned    = "returned" // given back: it was not begun, or was interrupted
)

// End is how a robot ended, and the files it made.
type End struct {
	Head
	How       string            `json:"how"`
	Text      string            `json:"text,omitempty"`
	Content   bool              `json:"content,omitempty"` // of Failed: the producer must mend it
	After     time.Duration     `json:"after,omitempty"`   // of Deferred
	Skipped   bool              `json:"skipped,omitempty"`
	Metadata  map[string]any    `json:"metadata,omitempty"`
	Inventory *layout.Inventory `json:"inventory,omitempty"`
	Reached
	Times
	Outputs  []Output `json:"outputs,omitempty"`
	Remove   []string `json:"remove,omitempty"`
	Children []Child  `json:"children,omitempty"`
	Listed
	Shared bool `json:"shared,omitempty"` // the robot wrote into the attempt's own scratch folder
}

// Reached are the milestones and the steps chosen that a robot named.
type Reached struct {
	Milestones []layout.Name `json:"milestones,omitempty"`
	Choose     []layout.Name `json:"choose,omitzero"`
}

// Listed are the folders of the outputs and children, also those that are empty, and their files, below scratch; and what
// the robot printed, unless it came as the file LogFile.
type Listed struct {
	Folders []string `json:"folders,omitempty"`
	Files   []File   `json:"files,omitempty"`
	Log     []byte   `json:"log,omitempty"`
}

// Carries reports whether an end has bytes in it that are to be written.
func (e End) Carries() bool {
	return len(e.Log) > 0 || slices.ContainsFunc(e.Files, func(f File) bool { return f.Data != nil })
}

// Times are how long an attempt took on its worker.
type Times struct {
	Fetched time.Duration `json:"fetched,omitempty"`
	Ran     time.Duration `json:"ran,omitempty"`
	Sent    time.Duration `json:"sent,omitempty"`
	CPU     time.Duration `json:"cpu,omitempty"` // processor time of the program; 0: not known
}

// Output is a steps.Output with percent-encoded paths.
type Output struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Child is a steps.Child with a percent-encoded path; its name may hold any bytes.
type Child struct {
	From       string         `json:"from"`
	Name       []byte         `json:"name"`
	Label      []byte         `json:"label,omitempty"`
	Collection layout.Name    `json:"collection,omitempty"`
	Workflow   layout.Name    `json:"workflow,omitempty"`
	Lane       layout.Name    `json:"lane,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
}

// EndOf words what a robot answered. The caller adds the files.
func EndOf(res steps.Result, err error) End {
	e := End{Head: Now(), How: Done, Text: res.Message, Skipped: res.Status == steps.Skipped, Metadata: res.Metadata,
		Inventory: res.Inventory, Reached: Reached{res.Milestones, res.Choose}}
	var later *steps.Later
	var unavailable *steps.Unavailable
	switch {
	case errors.As(err, &later):
		e.How, e.Text, e.After = Deferred, later.Reason, later.After
	case errors.As(err, &unavailable):
		e.How, e.Text = Unavailable, err.Error()
	case errors.Is(err, context.Canceled):
		e.How, e.Text = Returned, err.Error()
	case err != nil:
		e.How, e.Text, e.Content = Failed, err.Error(), steps.KindOf(err) == steps.Content
	}
	for _, o := range res.Outputs {
		e.Outputs = append(e.Outputs, Output{layout.EncodePath(string(o.From)), layout.EncodePath(string(o.To))})
	}
	for _, p := range res.Remove {
		e.Remove = append(e.Remove, layout.EncodePath(string(p)))
	}
	for _, c := range res.Children {
		e.Children = append(e.Children, Child{From: layout.EncodePath(string(c.From)), Name: []byte(c.Name), Label: []byte(c.Label),
			Collection: c.Collection, Workflow: c.Workflow, Lane: c.Lane, Metadata: c.Metadata})
	}
	return e
}

// Result gives the robot's answer, as it would be given here. Its paths are checked for form;
// that the files are there is the caller's to see.
func (e End) Result() (res steps.Result, failure error, bad error) {
	res = steps.Result{Status: steps.Completed, Message: e.Text, Metadata: e.Metadata, Inventory: e.Inventory, Milestones: e.Milestones, Choose: e.Choose}
	if e.Skipped {
		res.Status = steps.Skipped
	}
	for _, m := range e.Milestones {
		if _, err := layout.ParseName(string(m)); err != nil {
			return res, nil, err
		}
	}
	for _, o := range e.Outputs {
		from, err := relPath(o.From)
		to, err2 := relPath(o.To)
		if err := errors.Join(err, err2); err != nil {
			return res, nil, err
		}
		res.Outputs = append(res.Outputs, steps.Output{From: from, To: to})
	}
	for _, p := range e.Remove {
		rel, err := relPath(p)
		if err != nil {
			return res, nil, err
		}
		res.Remove = append(res.Remove, rel)
	}
	for _, c := range e.Children {
		from, err := relPath(c.From)
		if err != nil {
			return res, nil, err
		}
		res.Children = append(res.Children, steps.Child{From: from, Name: string(c.Name), Label: string(c.Label),
			Collection: c.Collection, Workflow: c.Workflow, Lane: c.Lane, Metadata: c.Metadata})
	}
	switch e.How {
	case Done:
	case Deferred:
		failure = &steps.Later{Reason: e.Text, After: e.After}
	case Unavailable:
		failure = &steps.Unavailable{Err: errors.New(e.Text)}
	case Failed:
		failure = &steps.Failure{Kind: steps.System, Err: errors.New(e.Text)}
		if e.Content {
			failure = &steps.Failure{Kind: steps.Content, Err: errors.New(e.Text)}
		}
	case Returned:
		failure = context.Canceled
	default:
		return res, nil, errors.New("an end without a word for it")
	}
	return res, failure, nil
}

// relPath reads a percent-encoded path.
func relPath(s string) (layout.RelPath, error) {
	p, err := layout.DecodePath(s)
	if err != nil {
		return "", err
	}
	return layout.ParseRelPath(p)
}
