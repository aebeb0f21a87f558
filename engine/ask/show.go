package ask

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/index"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Detail is everything about one item.
type Detail struct {
	Manifest   layout.Manifest           `json:"manifest"`
	Dir        string                    `json:"folder"`
	Held       []string                  `json:"held"`
	Milestones map[layout.Name]time.Time `json:"milestones"`
	Workflows  []WorkflowDetail          `json:"workflows"`
	Files      []FileDetail              `json:"files"`
	Retired    string                    `json:"retired,omitempty"` // the commit where its records last stood, of an item that is retired
	Deliveries []DeliveryDetail          `json:"deliveries"`        // by target

	Parent   *ParentDetail  `json:"parent,omitempty"`
	Families []FamilyDetail `json:"families"` // of its children, by the step that made them
	Children []ItemRow      `json:"children"` // the first of them, those that failed before the others
}

// WorkflowDetail is one workflow instance of an item.
type WorkflowDetail struct {
	Workflow    string       `json:"workflow"`
	Digest      string       `json:"digest"`
	StartedWith string       `json:"startedWith,omitempty"` // the digest, when it was moved to another
	StartedBy   string       `json:"startedBy,omitempty"`   // the step that started it
	Status      state.Status `json:"status"`
	Created     time.Time    `json:"created"`
	NotBefore   time.Time    `json:"notBefore,omitzero"`
	Started     time.Time    `json:"started,omitzero"`
	Ended       time.Time    `json:"ended,omitzero"`
	Why         string       `json:"why,omitempty"` // nothing of it starts
	Steps       []StepDetail `json:"steps"`
}

// StepDetail is one step of an instance, with its attempts in order.
type StepDetail struct {
	Step      layout.Name     `json:"step"`
	Status    state.Status    `json:"status"`
	Milestone layout.Name     `json:"milestone,omitempty"` // it reaches
	Why       string          `json:"why,omitempty"`       // it does not go on
	Attempts  []AttemptDetail `json:"attempts"`
}

// Took is what an attempt took besides its time, in seconds.
type Took struct {
	CPU  float64 `json:"cpu,omitempty"`  // of processors, by the program that did it
	Idle float64 `json:"idle,omitempty"` // that the instance of a program that lives had nothing to do before
}

// AttemptDetail is one attempt. Times are zero where they are not known.
type AttemptDetail struct {
	Attempt string       `json:"attempt"`
	State   state.Status `json:"state"`
	Lost    bool         `json:"lost,omitempty"`
	Kind    string       `json:"kind,omitempty"`
	Claimed time.Time    `json:"claimed,omitzero"`
	Started time.Time    `json:"started,omitzero"`
	Ended   time.Time    `json:"ended,omitzero"`
	Elapsed float64      `json:"elapsed"` // seconds
	Took
	Agent   string `json:"agent"`
	Message string `json:"message,omitempty"`
	Text    string `json:"text,omitempty"` // of a failure, at length

	Children int             `json:"children,omitempty"` // that it made
	Progress *ProgressDetail `json:"progress,omitempty"` // what the robot told last, of an attempt that did not come to its end

	Log string `json:"log,omitempty"` // relative to the workspace
}

// FileDetail is one payload file as inventoried.
type FileDetail struct {
	Path string `json:"path"` // percent-encoded
	layout.InventoryFile
}

// DeliveryDetail is how an item stands with one target.
type DeliveryDetail struct {
	Target layout.Name `json:"target"`
	layout.Delivery
	WaitsFor string `json:"waitsFor,omitempty"` // of one that is ready: the hold or the workflow that keeps it from being sent
}

// String is one line: the state, since when, and why it is so, or what the target answered.
func (d DeliveryDetail) String() string {
	why := cmp.Or(d.WaitsFor, d.Message)
	switch {
	case why != "":
	case d.State == layout.DeliveryDelivered && d.Sent != nil:
		why = d.Sent.Receipt
	case d.Decision != nil:
		why = strings.TrimSuffix(d.Decision.What+" by "+d.Decision.By+": "+d.Decision.Text, ": ")
		if of := d.Decision.Version; d.Decision.What == layout.DeliveryApproved && of != 0 && of != d.Version { // it says nothing of this one
			why = fmt.Sprintf("version %d was %s", of, why)
		}
	case d.State == layout.DeliveryUnconfirmed:
		why = "no rule wants it any more; it stays there until it is republished or withdrawn"
	}
	if d.State == layout.DeliveryWaits {
		why = strings.TrimSuffix("for a person's approval: "+why, ": ")
	}
	since := d.At
	if d.State == layout.DeliveryDelivered && d.Sent != nil {
		since = d.Sent.At // it may have been confirmed since
	}
	line := fmt.Sprintf("to %s: %s since %s, version %d", d.Target, d.State, layout.FormatTime(since), d.Version)
	switch d.State {
	case layout.DeliveryUnreadable:
		line = d.State
	case "": // a person decided, by a push
		line = fmt.Sprintf("to %s: no rule wants it", d.Target)
	}
	if s := d.Sent; s != nil && !s.Maybe && d.State != layout.DeliveryDelivered && s.Version > 0 && s.Version != d.Version {
		line += fmt.Sprintf("; version %d stands there since %s", s.Version, layout.FormatTime(s.At))
	}
	return strings.TrimSuffix(line+": "+ledger.OneLine(ledger.Printable(why), 500), ": ")
}

// deliveriesOf reads how an item stands with targets, by their names.
func deliveriesOf(r gitstore.Reader, x *state.Execution, now time.Time) ([]DeliveryDetail, error) {
	data, err := ledger.ReadOptional(r, layout.ItemDir(x.Item)+"/"+layout.DeliveryJSON)
	if err != nil || data == nil {
		return []DeliveryDetail{}, err
	}
	d, err := layout.DecodeDeliveries(data)
	if err != nil { // it is told, and stops nobody
		return []DeliveryDetail{{Delivery: layout.Delivery{State: layout.DeliveryUnreadable, Message: ledger.Printable(err.Error())}}}, nil
	}
	all := []DeliveryDetail{}
	for _, to := range slices.Sorted(maps.Keys(d.Targets)) {
		row := DeliveryDetail{Target: to, Delivery: *d.Targets[to]}
		if row.State == layout.DeliveryReady {
			row.WaitsFor = state.Unsettled(x, now)
		}
		all = append(all, row)
	}
	return all, nil
}

// Show reads everything about one item.
func (de *Details) Show(ctx context.Context, id layout.ItemID) (Detail, error) {
	return de.ShowSome(ctx, id, 0)
}

// ShowSome is Show of an item with at most so many of its files, the first of them; 0: all.
func (de *Details) ShowSome(ctx context.Context, id layout.ItemID, most int) (Detail, error) {
	v, err := de.ledger.Store.Tip()
	if err != nil {
		return Detail{}, err
	}
	rec, err := de.ledger.Read(v, id, "")
	retired := ""
	if fault.Is(err, fault.Refused) {
		if last, ok, errStood := ledger.Stood(de.ledger, v, id); errStood != nil {
			return Detail{}, errStood
		} else if ok {
			v, retired = last, last.Commit().String()
			rec, err = de.ledger.Read(v, id, "")
		}
	}
	if _, pending := de.guard.Since(); fault.Is(err, fault.NotFound) && pending {
		return Detail{}, fmt.Errorf("item %s: %s", id.Short(), index.RemovedText)
	}
	if err != nil {
		return Detail{}, err
	}
	if needsOthers(rec) {
		// What its steps wait for is in other items.
		if _, err := de.index.View(ctx); err != nil {
			return Detail{}, err
		}
		rec.Execution.Around = de.index.AroundOf(id)
	}
	d := Detail{Manifest: rec.Manifest, Dir: layout.ItemDir(id), Retired: retired, Milestones: rec.Execution.Milestones, Held: []string{}, Deliveries: []DeliveryDetail{}, Files: []FileDetail{}, Families: []FamilyDetail{}, Children: []ItemRow{}}
	if err := de.showFamily(v, &d); err != nil {
		return d, err
	}
	for _, h := range rec.Execution.Holds() {
		d.Held = append(d.Held, rec.Execution.HoldText(h))
	}
	for _, name := range rec.Execution.Names() {
		plan, err := de.ledger.PinnedPlan(v, rec.Execution.Workflows[name].Digest)
		if err != nil {
			return d, err
		}
		d.Workflows = append(d.Workflows, de.workflowDetail(rec.Execution, name, plan))
	}
	if d.Deliveries, err = deliveriesOf(v, rec.Execution, de.ledger.Now()); err != nil {
		return d, err
	}
	d.Files, err = de.listings.of(v, id, most)
	return d, err
}

func (de *Details) workflowDetail(x *state.Execution, name string, plan *state.Definition) WorkflowDetail {
	w := x.Workflows[name]
	d := WorkflowDetail{Workflow: name, Digest: w.Digest, StartedBy: w.StartedBy, Status: w.Status, Created: w.Created,
		NotBefore: w.NotBefore, Started: w.Started, Ended: w.Ended, Why: x.Stopped(name)}
	if w.StartedWith != w.Digest {
		d.StartedWith = w.StartedWith
	}
	for i := range plan.Steps {
		step := layout.Name(plan.Steps[i].Name)
		rec := w.Steps[step]
		s := StepDetail{Step: step, Status: rec.Status, Milestone: layout.Name(plan.Steps[i].Milestone), Attempts: []AttemptDetail{}}
		if why := x.Blocked(name, plan, i, de.ledger.Now()); why != nil && why.Code != "done" {
			s.Why = why.Text
		}
		if why := de.offText(x.Item, name, plan, i, rec.Status); why != "" && (s.Why == "" || x.Blocked(name, plan, i, de.ledger.Now()).Code == "retry") {
			s.Why = why
		}
		for _, k := range rec.Keys() {
			s.Attempts = append(s.Attempts, de.attemptDetail(x, name, step, k, rec.Attempts[k]))
		}
		d.Steps = append(d.Steps, s)
	}
	return d
}

func (de *Details) attemptDetail(x *state.Execution, workflow string, step layout.Name, k layout.AttemptKey, a state.Attempt) AttemptDetail {
	d := AttemptDetail{Attempt: k.String(), State: a.State, Kind: a.Kind, Claimed: a.Claimed, Started: a.Started, Ended: a.Ended,
		Elapsed: a.Elapsed, Took: Took{CPU: a.CPU.Seconds(), Idle: a.Idle.Seconds()}, Agent: cmp.Or(a.By, a.Runner), Message: a.Message, Text: a.Text, Children: a.Children, Lost: x.Lost(workflow, step, k)}
	log := layout.ItemDir(x.Item) + "/" + layout.StepLog(step, k)
	if _, err := os.Stat(de.ledger.Path(log)); err == nil {
		d.Log = log
	}
	d.Progress = de.activity.progressOf(x.Item, workflow, step, k, a)
	return d
}

// History gives the commits of one item, or of all with "", newest first; limit
// 0 is all.
func (de *Details) History(ctx context.Context, id layout.ItemID, limit int) iter.Seq2[gitstore.Commit, error] {
	o := gitstore.HistoryOptions{Limit: limit}
	if id != "" {
		o.Path = layout.ItemDir(id)
	}
	return de.ledger.Store.History(ctx, o)
}

// HistoryFrom gives some commits of one item, or of all with "", the newest first: those behind a commit;
// "": from the tip on.
func (de *Details) HistoryFrom(ctx context.Context, id layout.ItemID, after string, most int) (commits []gitstore.Commit, err error) {
	o := gitstore.HistoryOptions{}
	if id != "" {
		o.Path = layout.ItemDir(id)
	}
	if after != "" {
		if o.From, err = gitstore.ParseHash(after); err == nil {
			_, err = de.ledger.Store.At(o.From)
		}
		if err != nil {
			return nil, fault.New(fault.NotFound, "the history has no commit "+after)
		}
	}
	for c, err := range de.ledger.Store.History(ctx, o) {
		if err != nil {
			return nil, err
		}
		if c.Hash.String() == after {
			continue
		}
		if commits = append(commits, c); len(commits) == most {
			break
		}
	}
	return commits, nil
}

// Difference is a record of an item before a commit and after it.
type Difference struct {
	Path          string
	Before, After string // "": there was none
}

// Differences tells how a commit changed the records of an item.
func (de *Details) Differences(ctx context.Context, id layout.ItemID, commit string) (c gitstore.Commit, changed []Difference, err error) {
	dir := layout.ItemDir(id)
	none := fault.New(fault.NotFound, fmt.Sprintf("the history of item %s has no commit %s", id.Short(), commit))
	for c, err = range de.ledger.Store.History(ctx, gitstore.HistoryOptions{Path: dir}) {
		if err != nil {
			return c, nil, err
		}
		if c.Hash.String() == commit {
			break
		}
	}
	if c.Hash.String() != commit {
		return c, nil, none
	}
	var before gitstore.View
	var parent gitstore.Hash
	if len(c.Parents) > 0 {
		parent = c.Parents[0]
		if before, err = de.ledger.Store.At(parent); err != nil {
			return c, nil, err
		}
	}
	err = de.ledger.Store.Diff(ctx, parent, c.Hash, func(f gitstore.FileChange) error {
		if !strings.HasPrefix(f.Path, dir+"/") {
			return nil
		}
		d := Difference{Path: strings.TrimPrefix(f.Path, dir+"/"), After: string(f.Data)}
		if !parent.IsZero() {
			data, err := ledger.ReadOptional(before, f.Path)
			if err != nil {
				return err
			}
			d.Before = string(data)
		}
		changed = append(changed, d)
		return nil
	})
	return c, changed, err
}

// Quality is what the checks of an item's present version found.
func (a *Answers) Quality(id layout.ItemID) (*layout.Quality, error) {
	v, err := a.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	q, err := ledger.ReadQuality(v, id)
	if err == nil && q == nil {
		err = fault.New(fault.NotFound, fmt.Sprintf("item %s has not been checked: no step reported a check of its present version", id.Short()),
			fault.Remedy{Verb: fault.Show, Item: id})
	}
	return q, err
}

// Manifest says what an item is.
func (de *Details) Manifest(id layout.ItemID) (layout.Manifest, error) {
	_, rec, err := de.ledger.ReadTip(id, "")
	if err != nil {
		return layout.Manifest{}, err
	}
	return rec.Manifest, nil
}

// Stamp is a text that changes whenever an item's records do.
func (de *Details) Stamp(id layout.ItemID) (string, error) {
	v, err := de.ledger.Store.Tip()
	if err != nil {
		return "", err
	}
	return ledger.Stamp(v, id)
}

// CollectionOf is the collection of an item.
func (de *Details) CollectionOf(_ context.Context, id layout.ItemID) (layout.Name, error) {
	if it := de.index.Loaded().Item(id); it != nil {
		return it.Collection, nil
	}
	_, rec, err := de.ledger.ReadTip(id, "")
	if err != nil {
		return "", err
	}
	return rec.Manifest.Collection, nil
}

// listings are the first files of inventories that were told last: an item of 100,000 files has an
// inventory of 30 MB, and is looked at again and again while it moves. The lock guards kept.
type listings struct {
	mu   sync.Mutex
	kept map[listing][]FileDetail
}

type listing struct {
	inventory gitstore.Hash
	most      int
}

// File gives one file of an item's inventory, by its path as it stands there; ok is false where there
// is none.
func (de *Details) File(ctx context.Context, id layout.ItemID, path string) (f FileDetail, ok bool, err error) {
	v, err := de.ledger.Store.Tip()
	if err != nil {
		return f, false, err
	}
	data, err := ledger.ReadOptional(v, layout.ItemDir(id)+"/"+layout.InventoryJSON)
	if err != nil {
		return f, false, err
	}
	f.Path = path
	if data != nil {
		f.InventoryFile, ok, err = layout.FileOf(data, path)
		return f, ok, err
	}
	d, err := de.Show(ctx, id) // it may be retired
	at := slices.IndexFunc(d.Files, func(f FileDetail) bool { return f.Path == path })
	if err != nil || at < 0 {
		return f, false, err
	}
	return d.Files[at], true, nil
}

// of gives the first files of an item, at most so many; 0: all.
func (l *listings) of(v gitstore.View, id layout.ItemID, most int) (files []FileDetail, err error) {
	const mostKept = 64
	entries, err := v.List(layout.ItemDir(id))
	at := slices.IndexFunc(entries, func(e gitstore.Entry) bool { return e.Name == layout.InventoryJSON })
	if err != nil || at < 0 {
		return []FileDetail{}, err
	}
	key := listing{entries[at].Hash, most}
	l.mu.Lock()
	files, known := l.kept[key]
	l.mu.Unlock()
	if known {
		return slices.Clone(files), nil
	}
	data, err := ledger.ReadOptional(v, layout.ItemDir(id)+"/"+layout.InventoryJSON)
	if err != nil {
		return nil, err
	}
	all, err := layout.InventoryFiles(data, most)
	if err != nil {
		return nil, err
	}
	files = make([]FileDetail, 0, len(all))
	for p, f := range all {
		files = append(files, FileDetail{Path: p, InventoryFile: f})
	}
	slices.SortFunc(files, func(a, b FileDetail) int { return strings.Compare(a.Path, b.Path) })
	if most == 0 { // it may be long
		return files, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil || len(l.kept) >= mostKept {
		l.kept = map[listing][]FileDetail{}
	}
	l.kept[key] = slices.Clone(files)
	return files, nil
}
