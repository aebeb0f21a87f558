package ask

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"bagpipe/engine/claim"
	"bagpipe/engine/inbox"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Grid counts steps by workflow, step and status.
type Grid struct {
	Workflow string    `json:"workflow"`
	Items    int       `json:"items"`
	Runs     int       `json:"runs"` // an item may have gone through it more than once
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
	Holds    []ItemRow `json:"holds"`
	Grids    []Grid    `json:"workflows"`
	Failures []Failure `json:"failures"`
	People   []ItemRow `json:"waitingForPeople"`
	InboxStatus
	Paused  string        `json:"paused,omitempty"`
	Engines []string      `json:"engines"`           // alive
	Workers []string      `json:"workers,omitempty"` // connected to one of them
	Steps   []StepControl `json:"steps"`             // that are disabled, or stopped a run
	Running []RunningStep `json:"running"`
	Later   []TriedLater  `json:"triedLater"`
	Parents []ItemRow     `json:"parents"` // items some of whose children failed
	Cold    []string      `json:"cold"`    // steps that engines do not claim as their warm-up failed
}

// InboxStatus is what is not taken in, and why.
type InboxStatus struct {
	Inbox    []InboxRow        `json:"inbox"`  // what lies there and why it waits
	Pauses   []string          `json:"pauses"` // why nothing, or not everything, is taken in
	Rejected []inbox.Rejection `json:"rejected"`
}

// Status reads how the workspace stands, or the items in it that fit.
func (an *Answers) Status(ctx context.Context, f Filter) (Status, error) {
	return an.status(ctx, f, true)
}

// Standing is Status of all items without the lists of them: what is held, failed, waits for a
// person or is the parent of such, and without the inbox. It does not take longer the more items
// there are.
func (an *Answers) Standing(ctx context.Context) (Status, error) {
	return an.status(ctx, Filter{}, false)
}

func (an *Answers) status(ctx context.Context, f Filter, lists bool) (Status, error) {
	s := Status{Failures: []Failure{}, People: []ItemRow{}, Holds: []ItemRow{}, InboxStatus: InboxStatus{[]InboxRow{}, []string{}, []inbox.Rejection{}}, Engines: []string{}, Grids: []Grid{}, Parents: []ItemRow{}, Running: an.Running()}
	if err := an.statusOfItems(&s, f, lists); err != nil {
		return s, err
	}
	s.Steps = an.StepControls(func(c StepControl) bool { return c.Status != state.StepEnabled && f.asksFor(c.Step) })
	if err := cmp.Or(an.ledger.CheckMounted(), an.folder.Space.Low()); err != nil {
		s.Paused = err.Error()
	}
	var err error
	s.Workers = an.workerLines()
	if s.Engines, s.Cold, err = an.engines(); err != nil {
		return s, err
	}
	if !lists {
		return s, nil
	}
	return s, an.statusOfInbox(ctx, &s)
}

// Inbox tells what is not taken in, and why.
func (an *Answers) Inbox(ctx context.Context) (InboxStatus, error) {
	s := Status{InboxStatus: InboxStatus{[]InboxRow{}, []string{}, []inbox.Rejection{}}}
	err := an.statusOfInbox(ctx, &s)
	return s.InboxStatus, err
}

// statusOfItems fills in what follows from the items.
func (an *Answers) statusOfItems(s *Status, f Filter, lists bool) error {
	an.index.Loaded().Settle(an.ledger.Now())
	const telling = queue.Held | queue.Failed | queue.Broken | queue.Person | queue.Kin
	asked := an.index.Loaded()
	var workflows []queue.WorkflowCount
	s.Items, s.Held, workflows = an.index.Loaded().Counts()
	if f != (Filter{}) {
		fitting, err := an.selected(f)
		if err != nil {
			return err
		}
		some := queue.New() // counts, of those that fit
		filling := some.Fill()
		for it := range fitting {
			filling.Put(it)
		}
		filling.Count()
		s.Items, s.Held, workflows = some.Counts()
		asked = some
	}
	s.Later = an.listLater(asked)
	for _, w := range workflows {
		s.Grids = append(s.Grids, gridOf(w))
	}
	if !lists {
		return nil
	}
	for it := range asked.With(telling) {
		if it.Held {
			s.Holds = append(s.Holds, an.row(it))
		}
		for _, f := range Failures(it) {
			f.Remedy = addChanged(an.ledger, it, f.Message)
			s.Failures = append(s.Failures, f)
		}
		if slices.ContainsFunc(an.index.Loaded().Families(it.ID), func(f queue.Family) bool { return f.Failed > 0 }) {
			s.Parents = append(s.Parents, an.row(it))
		}
		s.People = append(s.People, an.people(it)...)
	}
	return nil
}

// ForPeople lists the steps that wait for a person, of some collections; none: of all.
func (an *Answers) ForPeople(within []layout.Name) []ItemRow {
	rows := []ItemRow{}
	an.index.Loaded().Settle(an.ledger.Now())
	for it := range an.index.Loaded().With(queue.Person) {
		if len(within) == 0 || slices.Contains(within, it.Collection) {
			rows = append(rows, an.people(it)...)
		}
	}
	return rows
}

// people lists the steps of an item that wait for a person.
func (an *Answers) people(it *queue.Item) (rows []ItemRow) {
	for run, i := range it.Steps() {
		if !it.Waits(run, i) {
			continue
		}
		rows = append(rows, an.PersonRow(it, run, i))
	}
	return rows
}

// PersonRow is one step of an item that waits for a person.
func (li *Lists) PersonRow(it *queue.Item, run *queue.Run, i int) ItemRow {
	row := li.row(it)
	row.Workflow, row.Status, row.Step = run.Name, run.Status, layout.Name(run.Plan.Steps[i].Name)
	row.Since, row.Why = run.Steps[i].Since, Reason(&run.Steps[i])
	return row
}

func gridOf(w queue.WorkflowCount) Grid {
	g := Grid{Workflow: w.Workflow, Items: w.Items, Runs: w.Runs}
	for _, c := range w.Steps {
		g.Steps = append(g.Steps, GridRow{Step: c.Step, Counts: c.By, Manual: c.Person, Ready: c.Ready})
	}
	return g
}

// Beside lists the other engines that are alive, a line each.
func (ac *Activity) Beside() ([]string, error) {
	beside, _, err := ac.engines()
	return beside, err
}

// engines lists the engines that are alive, what they hold, and what they do not
// claim.
func (ac *Activity) engines() (out, cold []string, err error) {
	out = []string{}
	registered, err := claim.NewObserver(ac.ledger.Root, ac.ledger.Host, ac.ledger.Clock).Engines()
	if err != nil {
		return out, nil, err
	}
	holders, err := claim.List(ac.ledger.Root)
	if err != nil {
		return out, nil, err
	}
	held := map[layout.EngineID]int{}
	for _, h := range holders {
		held[h.Engine]++
	}
	alive := map[layout.EngineID]bool{}
	for _, r := range registered {
		alive[r.ID] = r.Alive
		if r.Alive && r.ID != ac.ledger.ID && r.Worker == "" {
			out = append(out, fmt.Sprintf("engine %s on %s, pid %d, since %s, steps: %d", r.ID, r.Host, r.PID, layout.FormatTime(r.Since), held[r.ID]))
		}
	}
	return out, ac.attempt.ColdSteps(alive), nil
}

// workerLines lists the workers that are connected, and what is on offer to them.
func (re *Reasons) workerLines() (lines []string) {
	s, served := re.workers()
	if !served {
		return nil
	}
	for _, why := range []string{s.Warning, s.Trouble} {
		if why != "" {
			lines = append(lines, why)
		}
	}
	if s.Trouble != "" {
		lines[len(lines)-1] = "nothing is offered to workers: " + s.Trouble
	}
	for _, w := range s.Workers {
		lines = append(lines, fmt.Sprintf("worker %s on %s, pid %d, %s, %d of %d at work", w.Name, w.Host, w.PID, w.State, len(w.Running), w.Slots))
	}
	for _, want := range slices.Sorted(maps.Keys(s.Offers)) {
		lines = append(lines, fmt.Sprintf("on offer: %d of %s", s.Offers[want], want))
	}
	return lines
}
