package attempt

import (
	"fmt"
	"os"
	"path/filepath"

	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// other is an item that a program is told of beside its own.
type other struct {
	Item      layout.ItemID           `json:"item"`
	Label     string                  `json:"label"`
	Folder    string                  `json:"folder"`
	Name      string                  `json:"name,omitempty"` // of a child: as its step named it
	Step      layout.Name             `json:"step,omitempty"` // of a child: that made it
	Workflows map[string]state.Status `json:"workflows"`
	Message   string                  `json:"message,omitempty"` // of what failed
}

// tellOthers writes the lists of the item's children, and, of a batch's step, of its batch.
func tellOthers(l *ledger.Ledger, index *queue.Index, it *queue.Item, plan *state.Step, scratch string) error {
	if plan.Command == nil {
		return nil
	}
	if children := index.Children(it.ID); len(children) > 0 {
		if err := writeOthers(l, filepath.Join(scratch, steps.ChildrenJSON), children); err != nil {
			return err
		}
	}
	if !plan.OnBatchComplete || it.Batch == "" {
		return nil
	}
	var members []*queue.Item
	for o := range index.Items() {
		if o.Batch == it.Batch {
			members = append(members, o)
		}
	}
	return writeOthers(l, filepath.Join(scratch, steps.BatchJSON), members)
}

func writeOthers(l *ledger.Ledger, path string, items []*queue.Item) error {
	list := make([]other, len(items))
	for i, it := range items {
		o := other{Item: it.ID, Label: it.Label, Folder: l.Path(layout.ItemDir(it.ID)), Workflows: map[string]state.Status{}, Message: it.Broken}
		if it.Parent != nil {
			o.Name, o.Step = it.Parent.Name, it.Parent.Step
		}
		for r := range it.Runs {
			o.Workflows[it.Runs[r].Name] = it.Runs[r].Status
		}
		for run, n := range it.Steps() {
			if s := &run.Steps[n]; s.Status == state.Failed && !run.Plan.Steps[n].Tolerated() {
				o.Message = s.Message
			}
		}
		list[i] = o
	}
	data, err := layout.EncodeJSON(list)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o666)
}

// childrenFailed fails a step that needs one whose children failed, where that wants it so.
func childrenFailed(index *queue.Index, e queue.Entry) error {
	run := e.Item.Run(e.Run)
	if run == nil {
		return nil
	}
	for _, f := range index.Families(e.Item.ID) {
		if f.Run != e.Run || f.Failed == 0 {
			continue
		}
		for _, p := range run.Plan.Prerequisites(e.N) {
			if s := &run.Plan.Steps[p]; layout.Name(s.Name) == f.Step && s.OnChildFailure == state.ChildFail {
				return steps.ContentFailure("%s", fmt.Sprintf("%d of the %d children of %s failed", f.Failed, f.Made, f.Step))
			}
		}
	}
	return nil
}
