package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Grid counts steps by workflow, step and status.
type Grid struct {
	Workflow string    `json:"workflow"`
	Items    int       `json:"items"`
	Steps    []GridRow `json:"steps"`
}

// GridRow is one step of a Grid.
type GridRow struct {
	Step   layout.Name          `json:"step"`
	Counts map[state.Status]int `json:"counts"`
	Manual int                  `json:"waitsForPerson"` // of the waiting ones
	Ready  int                  `json:"ready"`          // of the waiting ones
}

// Status is how the workspace stands.
type Status struct {
	Items    int       `json:"items"`
	Held     int       `json:"held"`
	Grids    []Grid    `json:"workflows"`
	Failures []Failure `json:"failures"`
	People   []ItemRow `json:"waitingForPeople"`
	Inbox    []string  `json:"inbox"` // what lies there and why it waits
	Rejected []string  `json:"rejected"`
	Paused   string    `json:"paused,omitempty"`
	Engines  []string  `json:"engines"` // alive
}

// Status reads how the workspace stands; Load must have been called.
func (e *Engine) Status(ctx context.Context) (Status, error) {
	s := Status{Failures: []Failure{}, People: []ItemRow{}, Inbox: []string{}, Rejected: []string{}, Engines: []string{}, Grids: []Grid{}}
	grids := map[string]*Grid{}
	var order []string
	for it := range e.index.Items() {
		s.Items++
		if it.Held {
			s.Held++
		}
		s.Failures = append(s.Failures, failures(it)...)
		for r := range it.Runs {
			run := &it.Runs[r]
			name, _ := numbered(run.Name)
			if grids[name] == nil {
				grids[name] = &Grid{Workflow: name}
				order = append(order, name)
			}
			grids[name].count(it, run)
		}
		if row := e.row(it); row.Person {
			s.People = append(s.People, row)
		}
	}
	slices.Sort(order)
	for _, name := range order {
		s.Grids = append(s.Grids, *grids[name])
	}
	if err := e.lowSpace(); err != nil {
		s.Paused = err.Error()
	}
	var err error
	if s.Rejected, err = e.rejected(); err != nil {
		return s, err
	}
	if s.Engines, err = e.engines(); err != nil {
		return s, err
	}
	s.Inbox, err = e.inboxWaits(ctx)
	return s, err
}

func (g *Grid) count(it *queue.Item, run *queue.Run) {
	g.Items++
	for i := range run.Steps {
		name := layout.Name(run.Plan.Steps[i].Name)
		at := slices.IndexFunc(g.Steps, func(r GridRow) bool { return r.Step == name })
		if at < 0 {
			g.Steps = append(g.Steps, GridRow{Step: name, Counts: map[state.Status]int{}})
			at = len(g.Steps) - 1
		}
		row := &g.Steps[at]
		row.Counts[run.Steps[i].Status]++
		switch {
		case it.Waits(run, i):
			row.Manual++
		case run.Steps[i].Blocked == nil && it.Broken == "":
			row.Ready++
		}
	}
}

func (e *Engine) inboxWaits(ctx context.Context) ([]string, error) {
	out := []string{}
	box, err := e.box(false)
	if err != nil {
		return out, err
	}
	settled, waiting, bad, err := box.Scan(ctx)
	if err != nil {
		return out, fmt.Errorf("scan the inbox: %w", err)
	}
	for _, d := range settled {
		out = append(out, fmt.Sprintf("%s/%s: settled; the next run takes it in", d.Collection, layout.EncodePath(d.Name)))
	}
	for _, w := range waiting {
		out = append(out, strings.TrimPrefix(fmt.Sprintf("%s/%s: %s", w.Collection, layout.EncodePath(w.Name), w.Reason), "/"))
	}
	for _, b := range bad {
		out = append(out, fmt.Sprintf("%s/%s: %s; the next run sets it aside", b.Collection, layout.EncodePath(b.Name), b.Reason))
	}
	return out, nil
}

// rejected lists the drops set aside.
func (e *Engine) rejected() ([]string, error) {
	out := []string{}
	collections, err := os.ReadDir(e.path(layout.RejectedDir))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	for _, c := range collections {
		entries, err := os.ReadDir(filepath.Join(e.path(layout.RejectedDir), c.Name()))
		if err != nil {
			return out, err
		}
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), ".reason.json") && !strings.HasPrefix(entry.Name(), ".") {
				out = append(out, layout.EncodePath(c.Name()+"/"+entry.Name()))
			}
		}
	}
	return out, nil
}

// ItemRow is one line of a listing.
type ItemRow struct {
	Item       layout.ItemID `json:"item"`
	Collection layout.Name   `json:"collection"`
	Label      string        `json:"label"`
	Lane       layout.Name   `json:"lane"`
	Created    time.Time     `json:"created"`
	Workflow   string        `json:"workflow"` // the latest
	Status     state.Status  `json:"status"`
	Step       layout.Name   `json:"step,omitempty"` // the first that is not done
	Since      time.Time     `json:"since"`
	Why        string        `json:"why,omitempty"`
	Held       bool          `json:"held"`
	Person     bool          `json:"waitsForPerson"`
}

// row tells where an item stands in one line.
func (e *Engine) row(it *queue.Item) ItemRow {
	row := ItemRow{Item: it.ID, Collection: it.Collection, Label: it.Label, Lane: it.Lane, Created: it.Created, Held: it.Held, Since: it.Created}
	if it.Broken != "" {
		row.Status, row.Why = state.Failed, it.Broken
		return row
	}
	for r := range it.Runs {
		run := &it.Runs[r]
		row.Workflow, row.Status, row.Step, row.Why = run.Name, run.Status, "", ""
		if at := firstOpen(it, run); at >= 0 {
			s := &run.Steps[at]
			row.Step, row.Since = layout.Name(run.Plan.Steps[at].Name), s.Since
			row.Person = row.Person || it.Waits(run, at)
			row.Why = e.why(s)
		}
	}
	return row
}

// firstOpen finds the step that tells most about a run: a failed one, else one
// in progress, else the first that is not done; -1 when all are.
func firstOpen(it *queue.Item, run *queue.Run) int {
	best, rank := -1, 0
	for i := range run.Steps {
		r := 0
		switch run.Steps[i].Status {
		case state.Failed:
			if r = 4; run.Plan.Steps[i].Optional {
				r = 0
			}
		case state.InProgress:
			r = 3
		case state.Waiting:
			if r = 1; it.Waits(run, i) || run.Steps[i].Blocked == nil {
				r = 2
			}
		}
		if r > rank {
			best, rank = i, r
		}
	}
	return best
}

func (e *Engine) why(s *queue.Step) string {
	switch {
	case s.Status == state.Failed:
		return s.Message
	case s.Blocked == nil:
		return "ready"
	}
	return s.Blocked.Text
}

// Filter narrows a listing; zero fields do not.
type Filter struct {
	Collection layout.Name
	Workflow   string // accession or accession.1
	Step       layout.Name
	Status     state.Status // of the step when Step is set, else of the workflow
}

func (f Filter) fits(it *queue.Item) bool {
	if f.Collection != "" && f.Collection != it.Collection {
		return false
	}
	if f.Workflow == "" && f.Step == "" && f.Status == "" {
		return true
	}
	for r := range it.Runs {
		if f.fitsRun(&it.Runs[r]) {
			return true
		}
	}
	return f.Status == state.Failed && it.Broken != "" && f.Step == "" && f.Workflow == ""
}

func (f Filter) fitsRun(run *queue.Run) bool {
	name, _ := numbered(run.Name)
	if f.Workflow != "" && f.Workflow != name && f.Workflow != run.Name {
		return false
	}
	if f.Step == "" {
		return f.Status == "" || run.Status == f.Status
	}
	for i := range run.Steps {
		if run.Plan.Steps[i].Name == string(f.Step) {
			return f.Status == "" || run.Steps[i].Status == f.Status
		}
	}
	return false
}

// Items lists items, oldest first; Load must have been called.
func (e *Engine) Items(f Filter) []ItemRow {
	rows := []ItemRow{}
	for it := range e.index.Items() {
		if f.fits(it) {
			rows = append(rows, e.row(it))
		}
	}
	return rows
}

// QueueRow is one step that is ready, or waits for a person.
type QueueRow struct {
	Item     layout.ItemID `json:"item"`
	Label    string        `json:"label"`
	Workflow string        `json:"workflow"`
	Step     layout.Name   `json:"step"`
	Lane     layout.Name   `json:"lane"`
	Since    time.Time     `json:"since"` // the item's creation
	Person   bool          `json:"waitsForPerson"`
}

// Queue lists what is ready in the order it would be taken, then what waits for
// people. which is "", WORKFLOW, WORKFLOW/STEP or /STEP.
func (e *Engine) Queue(which string) []QueueRow {
	workflow, step, _ := strings.Cut(which, "/")
	want := func(en queue.Entry) bool {
		name, _ := numbered(en.Run)
		return (workflow == "" || workflow == name || workflow == en.Run) && (step == "" || step == string(en.Step))
	}
	ready, people := e.index.Queue(e.o.Now(), want)
	rows := make([]QueueRow, 0, len(ready)+len(people))
	add := func(entries []queue.Entry, person bool) {
		for _, en := range entries {
			rows = append(rows, QueueRow{Item: en.Item.ID, Label: en.Item.Label, Workflow: en.Run, Step: en.Step,
				Lane: en.Item.Lane, Since: en.Item.Created, Person: person})
		}
	}
	add(ready, false)
	add(people, true)
	return rows
}

// AmbiguousError is a reference that fits several items.
type AmbiguousError struct {
	Ref   string
	Items []string
}

func (e *AmbiguousError) Error() string {
	shown := e.Items
	if len(shown) > 5 {
		shown = append(shown[:5:5], "…")
	}
	return fmt.Sprintf("%q fits %d items: %s; give more of the identifier", e.Ref, len(e.Items), strings.Join(shown, ", "))
}

// Resolve finds the one item that ref names: an identifier, a unique prefix of
// one, or a label. An identifier needs no search, a prefix of four digits or
// more only its folder.
func (e *Engine) Resolve(ctx context.Context, ref string) (layout.ItemID, error) {
	v, err := e.store.Tip()
	if err != nil {
		return "", err
	}
	id, mistyped := layout.ParseItemID(ref)
	if mistyped == nil {
		if ok, err := e.exists(id); err != nil || ok {
			return id, err
		}
	}
	var found []layout.ItemID
	if layout.IsItemPrefix(ref) {
		if found, err = prefixed(v, ref); err != nil {
			return "", err
		}
	}
	if len(found) == 0 {
		if found, err = labelled(ctx, v, ref); err != nil {
			return "", err
		}
	}
	switch len(found) {
	case 0:
		if layout.IsItemPrefix(ref) && len(ref) == layout.ItemIDLen && mistyped != nil {
			return "", mistyped
		}
		return "", &NoItemError{Ref: ref}
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, id := range found {
		names[i] = string(id)
	}
	return "", &AmbiguousError{Ref: ref, Items: names}
}

// prefixed lists the items whose identifiers begin with prefix, by walking only
// the folders that can hold them.
func prefixed(v gitstore.View, prefix string) (found []layout.ItemID, err error) {
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		entries, err := v.List(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, entry := range entries {
			switch {
			case !entry.IsDir:
			case depth < 4:
				if depth < len(prefix) && entry.Name != prefix[depth:depth+1] {
					continue
				}
				if err := walk(dir+"/"+entry.Name, depth+1); err != nil {
					return err
				}
			case strings.HasPrefix(entry.Name, prefix):
				if id, err := layout.ParseItemID(entry.Name); err == nil {
					found = append(found, id)
				}
			}
		}
		return nil
	}
	return found, walk(layout.ItemsDir, 0)
}

func labelled(ctx context.Context, v gitstore.View, label string) (found []layout.ItemID, err error) {
	isManifest := func(p string) bool { return strings.HasSuffix(p, "/"+layout.ManifestJSON) }
	err = walkItems(ctx, v, isManifest, func(p string, data []byte) error {
		m, err := layout.DecodeManifest(data)
		if err == nil && m.Label == label {
			found = append(found, m.Item)
		}
		return nil
	})
	return found, err
}

// Detail is everything about one item.
type Detail struct {
	Manifest   layout.Manifest           `json:"manifest"`
	Dir        string                    `json:"dir"`
	Held       []string                  `json:"held"`
	Milestones map[layout.Name]time.Time `json:"milestones"`
	Workflows  []WorkflowDetail          `json:"workflows"`
	Files      []FileDetail              `json:"files"`
}

// WorkflowDetail is one workflow instance of an item.
type WorkflowDetail struct {
	Workflow string       `json:"workflow"`
	Digest   string       `json:"digest"`
	Status   state.Status `json:"status"`
	Steps    []StepDetail `json:"steps"`
}

// StepDetail is one step of an instance, with its attempts in order.
type StepDetail struct {
	Step     layout.Name     `json:"step"`
	Status   state.Status    `json:"status"`
	Why      string          `json:"why,omitempty"` // it does not go on
	Attempts []AttemptDetail `json:"attempts"`
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
	Agent   string       `json:"agent"`
	Message string       `json:"message,omitempty"`
	Log     string       `json:"log,omitempty"` // relative to the workspace
}

// FileDetail is one payload file as inventoried.
type FileDetail struct {
	Path string `json:"path"` // percent-encoded
	layout.InventoryFile
}

// Show reads everything about one item.
func (e *Engine) Show(id layout.ItemID) (Detail, error) {
	v, err := e.store.Tip()
	if err != nil {
		return Detail{}, err
	}
	rec, err := e.read(v, id, "")
	if err != nil {
		return Detail{}, err
	}
	d := Detail{Manifest: rec.manifest, Dir: layout.ItemDir(id), Milestones: rec.execution.Milestones, Held: []string{}, Files: []FileDetail{}}
	for _, h := range rec.execution.Holds() {
		i := rec.execution.Intents[h]
		d.Held = append(d.Held, strings.TrimSuffix(fmt.Sprintf("by %s since %s: %s", i.By, layout.FormatTime(i.At), i.Text), ": "))
	}
	for _, name := range rec.execution.Names() {
		plan, err := e.plans.load(v, rec.execution.Workflows[name].Digest)
		if err != nil {
			return d, err
		}
		d.Workflows = append(d.Workflows, e.workflowDetail(rec.execution, name, plan))
	}
	data, err := readOptional(v, layout.ItemDir(id)+"/"+layout.InventoryJSON)
	if err != nil || data == nil {
		return d, err
	}
	inv, err := layout.DecodeInventory(data)
	if err != nil {
		return d, err
	}
	for p, f := range inv.Files {
		d.Files = append(d.Files, FileDetail{Path: p, InventoryFile: f})
	}
	slices.SortFunc(d.Files, func(a, b FileDetail) int { return strings.Compare(a.Path, b.Path) })
	return d, nil
}

func readOptional(r gitstore.Reader, p string) ([]byte, error) {
	data, err := r.ReadFile(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func (e *Engine) workflowDetail(x *state.Execution, name string, plan *state.Definition) WorkflowDetail {
	w := x.Workflows[name]
	d := WorkflowDetail{Workflow: name, Digest: w.Digest, Status: w.Status}
	for i := range plan.Steps {
		step := layout.Name(plan.Steps[i].Name)
		rec := w.Steps[step]
		s := StepDetail{Step: step, Status: rec.Status, Attempts: []AttemptDetail{}}
		if why := x.Blocked(name, plan, i, e.o.Now()); why != nil && why.Code != "done" {
			s.Why = why.Text
		}
		for _, k := range rec.Keys() {
			s.Attempts = append(s.Attempts, e.attemptDetail(x, name, step, k, rec.Attempts[k]))
		}
		d.Steps = append(d.Steps, s)
	}
	return d
}

func (e *Engine) attemptDetail(x *state.Execution, workflow string, step layout.Name, k layout.AttemptKey, a state.Attempt) AttemptDetail {
	d := AttemptDetail{Attempt: k.String(), State: a.State, Kind: a.Kind, Claimed: a.Claimed, Started: a.Started, Ended: a.Ended,
		Elapsed: a.Elapsed, Agent: firstOf(a.By, a.Runner), Message: a.Message, Lost: x.Lost(workflow, step, k)}
	log := layout.ItemDir(x.Item) + "/" + layout.StepLog(step, k)
	if _, err := os.Stat(e.path(log)); err == nil {
		d.Log = log
	}
	return d
}

// History gives the commits of one item, or of all with "", newest first; limit
// 0 is all.
func (e *Engine) History(ctx context.Context, id layout.ItemID, limit int) iter.Seq2[gitstore.Commit, error] {
	o := gitstore.HistoryOptions{Limit: limit}
	if id != "" {
		o.Path = layout.ItemDir(id)
	}
	return e.store.History(ctx, o)
}

// engines lists the engines that are alive, and what they hold.
func (e *Engine) engines() ([]string, error) {
	out := []string{}
	registered, err := claim.NewObserver(e.root, e.o.Host, e.o.Now).Engines()
	if err != nil {
		return out, err
	}
	holders, err := claim.List(e.root)
	if err != nil {
		return out, err
	}
	held := map[layout.EngineID]int{}
	for _, h := range holders {
		held[h.Engine]++
	}
	for _, r := range registered {
		if r.Alive && r.ID != e.id {
			out = append(out, fmt.Sprintf("engine %s on %s, pid %d, since %s, with %d steps", r.ID, r.Host, r.PID, layout.FormatTime(r.Since), held[r.ID]))
		}
	}
	return out, nil
}
