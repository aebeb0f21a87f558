package state

import (
	"slices"
	"strings"
	"time"

	"bagpipe/layout"
)

// Hold keeps every step of the item from starting. One that answers a commit
// names it, and is placed beside other holds; a person's, and one that says that no copy is sound, beside those of fixity.
type Hold struct {
	Key     layout.IntentKey
	At      time.Time
	By      string
	Text    string
	Answers string // a commit; "" for a person's own hold
}

// Release ends every hold that is known here. Key is called once for each.
type Release struct {
	Key  KeyFunc
	At   time.Time
	By   string
	Text string
}

// Remark adds a word of a person's to the item's history. It changes no status.
type Remark struct {
	Key  layout.IntentKey
	At   time.Time
	By   string
	Text string
}

// Deactivate takes one workflow of the item out of all queues.
type Deactivate struct {
	Key      layout.IntentKey
	Workflow string
	At       time.Time
	By       string
	Text     string
}

// Activate lets a workflow go on that was deactivated, or stopped by an internal
// error. Key is called once for each.
type Activate struct {
	Key      KeyFunc
	Workflow string
	At       time.Time
	By       string
	Text     string
}

func (e Hold) apply(x *Execution, _ *Definition) (Transition, error) {
	if holds := x.Holds(); len(holds) > 0 && e.Answers == "" && !e.graver(x, holds) {
		held := x.Intents[holds[0]]
		reason := "is held already, by " + held.By
		if held.Text != "" {
			reason += ": " + held.Text
		}
		return Transition{}, &IllegalError{Event: "hold", Item: x.Item, Reason: reason}
	}
	x.intend(e.Key, Intent{Kind: HoldIntent, At: e.At, By: e.By, Text: e.Text, Target: layout.IntentKey(e.Answers)})
	return Transition{}, nil
}

// graver reports whether the holds in place are of fixity, and it is a person's, or says that no copy is sound as they do not.
func (e Hold) graver(x *Execution, holds []layout.IntentKey) bool {
	person, none := !strings.HasPrefix(e.Text, HeldByFixity), strings.HasPrefix(e.Text, HeldByFixity+NoSoundCopy)
	return (person || none) && !slices.ContainsFunc(holds, func(k layout.IntentKey) bool {
		text, is := strings.CutPrefix(x.Intents[k].Text, HeldByFixity)
		return !is || none && strings.HasPrefix(text, NoSoundCopy)
	})
}

// Gravest gives the hold to name of several: one that says that no copy is sound, or the first.
func Gravest(x *Execution, holds []layout.IntentKey) layout.IntentKey {
	n := slices.IndexFunc(holds, func(k layout.IntentKey) bool { return strings.HasPrefix(x.Intents[k].Text, HeldByFixity+NoSoundCopy) })
	return holds[max(n, 0)]
}

func (e Release) apply(x *Execution, _ *Definition) (Transition, error) {
	holds := x.Holds()
	if len(holds) == 0 {
		return Transition{}, &IllegalError{Event: "release", Item: x.Item, Reason: "is not held"}
	}
	return Transition{}, x.end(holds, e.Key, Intent{Kind: ReleaseIntent, At: e.At, By: e.By, Text: e.Text})
}

func (e Remark) apply(x *Execution, _ *Definition) (Transition, error) {
	if e.Text == "" {
		return Transition{}, &IllegalError{Event: "note", Item: x.Item, Reason: "it says nothing"}
	}
	x.intend(e.Key, Intent{Kind: RemarkIntent, At: e.At, By: e.By, Text: e.Text})
	return Transition{}, nil
}

func (e Deactivate) apply(x *Execution, d *Definition) (Transition, error) {
	w, err := x.find("deactivate", e.Workflow, d)
	if err != nil {
		return Transition{}, err
	}
	from := w.Status
	if !w.Active() {
		return Transition{}, &IllegalError{Event: "deactivate", Item: x.Item, Workflow: e.Workflow, Reason: "is " + string(from) + " already"}
	}
	x.intend(e.Key, Intent{Kind: DeactivateIntent, At: e.At, By: e.By, Text: e.Text, Workflow: e.Workflow})
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, From: from, To: w.Status}, nil
}

func (e Activate) apply(x *Execution, d *Definition) (Transition, error) {
	w, err := x.find("activate", e.Workflow, d)
	if err != nil {
		return Transition{}, err
	}
	from := w.Status
	stops := append(x.Deactivations(e.Workflow), x.InternalErrors(e.Workflow)...)
	if len(stops) == 0 {
		return Transition{}, &IllegalError{Event: "activate", Item: x.Item, Workflow: e.Workflow, Reason: "is neither inactive nor stopped by an internal error"}
	}
	if err := x.end(stops, e.Key, Intent{Kind: ActivateIntent, At: e.At, By: e.By, Text: e.Text, Workflow: e.Workflow}); err != nil {
		return Transition{}, err
	}
	x.Compute(e.Workflow, d)
	return Transition{Workflow: e.Workflow, From: from, To: w.Status}, nil
}

// end adds an intent like in for each of the targets.
func (x *Execution) end(targets []layout.IntentKey, key KeyFunc, in Intent) error {
	keys := make([]layout.IntentKey, len(targets)) // all are drawn before the record changes
	for i := range keys {
		var err error
		if keys[i], err = key(); err != nil {
			return err
		}
	}
	for i, t := range targets {
		in.Target = t
		x.intend(keys[i], in)
	}
	return nil
}
