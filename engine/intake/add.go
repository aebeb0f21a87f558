package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/inbox"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// AddOptions are what a person says of what they add.
type AddOptions struct {
	Workflow   string
	Collection layout.Name // "": default, unless a rule says another
	Label      string
	Lane       string
	Batch      layout.Name
	Move       bool
	By         ledger.Actor  // zero: the person whom the ledger names
	Said       *inbox.Said   // by a reader; nil: nothing
	VersionOf  layout.ItemID // the item that one path becomes the next version of; "": as the rules say
}

// Add takes one path in from anywhere.
func (in *Intake) Add(ctx context.Context, path string, o AddOptions) (got Admitted, err error) {
	allErr := in.AddAll(ctx, []string{path}, o, func(a Admitted, e error) { got, err = a, e })
	return got, errors.Join(allErr, err)
}

// AddAll takes paths in from anywhere. told is called for each, in their order; one that
// cannot be taken in does not keep the others. They become items in groups that share
// their syncs and commits. The error is of what concerns all, as a workflow that is not
// there; those that nothing was told of were not taken in then.
func (in *Intake) AddAll(ctx context.Context, paths []string, o AddOptions, told func(Admitted, error)) error {
	o.By = cmp.Or(o.By, in.ledger.ByPerson())
	a := &adding{e: in, o: o, ticket: ticket(o, o.By.Agent)}
	if err := a.begin(); err != nil {
		return err
	}
	for len(paths) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		group, err := a.group(ctx, paths)
		if err != nil {
			return err
		}
		a.admit(ctx, group)
		for i := range group {
			told(group[i].got, group[i].err)
		}
		paths = paths[len(group):]
	}
	return nil
}

// adding is one call of AddAll.
type adding struct {
	e      *Intake
	o      AddOptions
	ticket inbox.Ticket
	box    *inbox.Box

	measured string // the path that was measured last, the first of the next group,
	room     room   // and what it needs
}

// added is one path of it.
type added struct {
	path string
	got  Admitted
	err  error
}

// begin checks what a person said, and makes the engine one that others see.
func (a *adding) begin() (err error) {
	e, o := a.e, &a.o
	if o.VersionOf != "" {
		if err := a.follow(); err != nil {
			return fmt.Errorf("no new version of item %s: %w", o.VersionOf.Short(), err)
		}
	}
	if a.ticket.Chosen = o.Collection != ""; !a.ticket.Chosen {
		o.Collection, a.ticket.Collection = "default", "default"
	}
	c := e.settings.Current()
	if err := e.settings.CheckCollection(o.Collection); err != nil {
		return err
	}
	if o.Workflow != "" && c.Workflows[o.Workflow] == nil {
		return fault.New(fault.NotFound, fmt.Sprintf("no workflow %q", o.Workflow), fault.Remedy{Verb: fault.ListWorkflows})
	}
	if err := errors.Join(c.Settings.CheckLane(o.Lane), e.ledger.CheckBatch(o.Batch)); err != nil {
		return err
	}
	if o.Label != ledger.OneLine(o.Label, ledger.MaxLabel) {
		return fmt.Errorf("label %q: want one line of at most %d bytes", o.Label, ledger.MaxLabel)
	}
	if a.box, err = e.Box(false); err != nil {
		return err
	}
	if e.ledger.ReadOnly { // nothing may be left of an act whose commit is refused
		return gitstore.ErrReadOnly
	}
	_, err = e.ledger.Seat.Engine()
	return err
}

// follow puts a new version where its item belongs, by the workflow that the item's last
// version went through, unless a person named another.
func (a *adding) follow() error {
	_, rec, err := a.e.ledger.ReadTip(a.o.VersionOf, "")
	if err != nil {
		return err
	}
	m := rec.Manifest
	switch why := notYet(rec); {
	case m.Parent != nil:
		return fmt.Errorf("it is a part of item %s, and a part has no versions of its own", m.Parent.Item.Short())
	case m.Source.Place != nil:
		return fmt.Errorf("its object stays in catalog %s: its next version is what is put in the place of that", m.Source.Place.Catalog)
	case a.o.Collection != "" && a.o.Collection != m.Collection:
		return fmt.Errorf("it is of collection %s, not %s", m.Collection, a.o.Collection)
	case why != "":
		return errors.New(why)
	}
	a.o.Collection = m.Collection
	for _, run := range rec.Execution.Names() {
		if name, _ := state.Instance(run); a.o.Workflow == "" && ledger.OfBefore(rec, run) == nil && a.e.settings.Current().Workflows[name] != nil {
			a.o.Workflow = name
		}
	}
	a.ticket = ticket(a.o, a.ticket.By)
	return nil
}

// addGroup bounds a group: what is told of it waits for all of it.
const addGroup = 64

// group takes as many paths as there is room for at once, and at least one. What is moved
// goes singly: one path may lie in another.
func (a *adding) group(ctx context.Context, paths []string) (group []added, err error) {
	e := a.e
	if err := errors.Join(e.folder.Space.Low(), e.paused(a.box, a.o.Collection), e.guard.LookAtFew(ctx)); err != nil {
		return nil, err
	}
	var need float64
	var bytes int64
	for _, path := range paths {
		if full := len(group) == addGroup || a.o.Move && len(group) > 0; full {
			break
		}
		room, err := a.measure(ctx, path)
		if err != nil {
			return nil, err
		}
		if len(group) > 0 && (need+room.need > room.left || bytes+room.bytes > admissionBytes) {
			break
		}
		one := added{path: path, err: e.recognition.CheckRuleFile(path, a.o.Collection)}
		if one.err == nil {
			one.err = room.refuses(path)
		}
		if one.err == nil {
			need, bytes = need+room.need, bytes+room.bytes
		}
		group = append(group, one)
	}
	return group, nil
}

// measure is roomFor; a path that did not fit one group is not gone through again for
// the next.
func (a *adding) measure(ctx context.Context, path string) (room, error) {
	if path == a.measured {
		left, err := a.e.roomLeft()
		a.room.left = left
		return a.room, err
	}
	r, err := a.e.roomFor(ctx, path, a.o.Move)
	a.measured, a.room = path, r
	return r, err
}

// admit makes items of a group's paths.
func (a *adding) admit(ctx context.Context, group []added) {
	var paths []string
	var of []*added
	for i := range group {
		if one := &group[i]; one.err == nil {
			paths, of = append(paths, one.path), append(of, one)
		}
	}
	var taken []inbox.Taken
	var in []*added
	for i, r := range a.box.AcceptAll(ctx, paths, a.ticket) {
		if of[i].err = r.Err; r.Err == nil {
			taken, in = append(taken, r.Taken), append(in, of[i])
		}
	}
	drops := (&admitting{Intake: a.e, box: a.box, who: a.o.By}).admitTaken(ctx, taken)
	for i, one := range in {
		one.got, one.err = a.ended(&drops[i])
	}
}

func (a *adding) ended(d *drop) (Admitted, error) {
	switch {
	case d.err == nil:
		return d.Admitted, nil
	case d.taken.Promoted:
		return d.Admitted, fmt.Errorf("%w; its content is safe in %s, and the next run registers it", d.err, layout.ItemDir(layout.ItemID(cmp.Or(string(d.taken.Item), string(d.taken.ID)))))
	}
	return d.Admitted, errors.Join(d.err, a.box.Undo(d.taken))
}

func ticket(o AddOptions, by string) inbox.Ticket {
	return inbox.Ticket{Collection: o.Collection, Label: o.Label, Lane: layout.Name(o.Lane), Workflow: layout.Name(o.Workflow), Batch: string(o.Batch), By: by, Move: o.Move, Said: o.Said, VersionOf: o.VersionOf}
}
