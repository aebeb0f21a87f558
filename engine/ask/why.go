package ask

import (
	"fmt"
	"strings"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Waiting is one step that is not done, the one thing it waits for, and what would
// let it go on.
type Waiting struct {
	Workflow string          `json:"workflow"`
	Step     layout.Name     `json:"step"`
	Status   state.Status    `json:"status"`
	Code     string          `json:"code"` // of the reason: ready, limit, requires, manual, date, …
	Why      string          `json:"why"`
	Since    time.Time       `json:"since,omitzero"`
	Until    time.Time       `json:"until,omitzero"`
	Before   int             `json:"before"`          // steps that are handed out earlier, of one that is ready
	Items    []layout.ItemID `json:"items,omitempty"` // other items that it waits for, or that fill its limit: the first of them
	Remedy   Remedy          `json:"-"`               // lets it go on
	Again    Remedy          `json:"-"`               // where it was not the content's fault after all
	Instead  Remedy          `json:"-"`               // another way
}

// Explained is why an item's steps wait.
type Explained struct {
	Item   layout.ItemID `json:"item"`
	Label  string        `json:"label"`
	Why    string        `json:"why,omitempty"` // of the item as a whole
	Steps  []Waiting     `json:"steps"`
	Remedy Remedy        `json:"-"` // of the item as a whole

	Deliveries []DeliveryDetail `json:"deliveries,omitempty"` // by target, where not one step is asked for
}

// Why says of each step of an item that is not done, or of one of them, what it waits
// for.
func (re *Reasons) Why(id layout.ItemID, workflow string, step layout.Name) (Explained, error) {
	now := re.ledger.Now()
	re.index.Loaded().Settle(now)
	it := re.index.Loaded().Item(id)
	if it == nil {
		return Explained{}, ledger.Missing(re.ledger, id)
	}
	out := Explained{Item: id, Label: it.Label, Steps: []Waiting{}}
	if it.Broken != "" {
		out.Why = it.Broken
		return out, nil
	}
	found := false
	for r := range it.Runs {
		run := &it.Runs[r]
		if workflow != "" && workflow != run.Name && workflow != run.Plan.Name {
			continue
		}
		for i := range run.Steps {
			name := layout.Name(run.Plan.Steps[i].Name)
			if step != "" && step != name {
				continue
			}
			found = true
			w, open := re.waiting(it, run, i, now)
			if !open && step == "" {
				continue
			}
			if step == "" {
				tellOnce(&w, it, run, i)
			}
			out.Steps = append(out.Steps, w)
		}
	}
	if step != "" && !found {
		return out, fault.New(fault.NotFound, fmt.Sprintf("item %s has no step %s", id.Short(), strings.TrimPrefix(workflow+"/"+string(step), "/")), fault.Remedy{Verb: fault.Show, Item: id})
	}
	if workflow != "" && !found {
		return out, ledger.NoInstance(id, workflow)
	}
	switch {
	case it.Disposed():
		out.Why = "it was disposed of"
	case len(it.Runs) == 0:
		out.Why, out.Remedy = "no workflow was started on it", Remedy{Verb: fault.Start, Item: id, Run: "WORKFLOW"}
	case len(out.Steps) == 0 && it.Held:
		out.Why, out.Remedy = "every step is done; it is held "+it.HeldBy, letGo(it)
	case len(out.Steps) == 0:
		out.Why = "every step is done"
	}
	if step != "" || workflow != "" {
		return out, nil
	}
	v, rec, err := re.ledger.ReadTip(id, "")
	if err == nil {
		out.Deliveries, err = deliveriesOf(v, rec.Execution, now)
	}
	return out, err
}
