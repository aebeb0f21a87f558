package ask

import (
	"fmt"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/layout"
)

// FamilyDetail tells how the children stand that one step of an item made.
type FamilyDetail struct {
	Workflow string      `json:"workflow"` // numbered
	Step     layout.Name `json:"step"`
	Made     int         `json:"made"` // as the item's record tells
	All      int         `json:"all"`  // that are there: more while they are being registered
	Done     int         `json:"done"`
	Failed   int         `json:"failed"`
	Alive    int         `json:"alive"` // under way
}

// ParentDetail names the item that an item is a child of.
type ParentDetail struct {
	layout.Parent
	Label string `json:"label"`
}

// childrenShown is how many children a Detail lists.
const childrenShown = 10

// showFamily adds an item's parent and children to what is shown of it.
func (de *Details) showFamily(v gitstore.View, d *Detail) error {
	if p := d.Manifest.Parent; p != nil {
		d.Parent = &ParentDetail{Parent: *p}
		d.Parent.Name = ledger.Printable(p.Name)
		data, err := ledger.ReadOptional(v, layout.ItemDir(p.Item)+"/"+layout.ManifestJSON)
		if err != nil {
			return err
		}
		if m, err := layout.DecodeManifest(data); data != nil && err == nil {
			d.Parent.Label = ledger.Printable(m.Label)
		}
	}
	if de.index.Loaded() == nil {
		return nil
	}
	d.Families = de.families(d.Manifest.Item)
	for i, it := range de.index.Loaded().Children(d.Manifest.Item) {
		if i == childrenShown {
			break
		}
		d.Children = append(d.Children, de.lists.row(it))
	}
	return nil
}

// needsOthers tells whether what is shown of an item stands in other items: whether it
// is of a batch, a child that is not done, or has children.
func needsOthers(rec *ledger.Record) bool {
	if rec.Manifest.Batch != "" {
		return true
	}
	for _, w := range rec.Execution.Workflows {
		if rec.Manifest.Parent != nil && w.Active() {
			return true
		}
		if w.Multiplied() {
			return true
		}
	}
	return false
}

func (de *Details) families(id layout.ItemID) []FamilyDetail {
	all := []FamilyDetail{}
	for _, f := range de.index.Loaded().Families(id) {
		all = append(all, FamilyDetail{Workflow: f.Run, Step: f.Step, Made: f.Made, All: f.All, Done: f.Done, Failed: f.Failed, Alive: f.Alive})
	}
	return all
}

// String is the one line of a family.
func (f FamilyDetail) String() string {
	parts := []string{fmt.Sprintf("%d by %s/%s", f.All, f.Workflow, f.Step), fmt.Sprintf("%d done", f.Done)}
	for _, n := range []struct {
		n    int
		what string
	}{{f.Alive, "under way"}, {f.All - f.Done - f.Failed - f.Alive, "waiting"}, {f.Failed, "failed"}, {f.Made - f.All, "without records"}} {
		if n.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	return strings.Join(parts, ", ")
}

// countChildren adds an item's children to its row, and says there when some failed.
func (li *Lists) countChildren(row *ItemRow, it *queue.Item) {
	if it.Parent != nil {
		row.Parent = it.Parent.Item
	}
	for _, f := range li.index.Loaded().Families(it.ID) {
		row.Children += f.All
		row.ChildrenFailed += f.Failed
	}
	if row.ChildrenFailed > 0 && !strings.HasPrefix(row.Why, "waits for ") {
		row.Why = strings.TrimPrefix(fmt.Sprintf("%s; %d of %d children failed", row.Why, row.ChildrenFailed, row.Children), "; ")
	}
}
