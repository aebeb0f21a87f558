package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bagpipe/engine/inbox"
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
}

// Add takes one path in from anywhere.
func (e *Engine) Add(ctx context.Context, path string, o AddOptions) (Admitted, error) {
	chosen := o.Collection != ""
	if !chosen {
		o.Collection = "default"
	}
	c := e.current()
	if err := e.checkCollection(o.Collection); err != nil {
		return Admitted{}, err
	}
	if o.Workflow != "" && c.workflows[o.Workflow] == nil {
		return Admitted{}, fmt.Errorf("no workflow %q; bagpipe workflow list shows them", o.Workflow)
	}
	if err := errors.Join(c.settings.checkLane(o.Lane), e.checkBatch(o.Batch)); err != nil {
		return Admitted{}, err
	}
	if o.Label != oneLine(o.Label, maxLabel) {
		return Admitted{}, fmt.Errorf("label %q: want one line of at most %d bytes", o.Label, maxLabel)
	}
	if err := e.checkRuleFile(path, o.Collection); err != nil {
		return Admitted{}, err
	}
	box, err := e.box(false)
	if err != nil {
		return Admitted{}, err
	}
	if err := errors.Join(e.lowSpace(), e.paused(box, o.Collection), e.tooBig(ctx, path, o.Move)); err != nil {
		return Admitted{}, err
	}
	if _, err := e.register(); err != nil {
		return Admitted{}, err
	}
	if err := e.lookAtFew(ctx); err != nil {
		return Admitted{}, err
	}
	t := ticket(o, e.person())
	t.Chosen = chosen
	taken, err := box.Accept(ctx, path, t)
	if err != nil {
		return Admitted{}, err
	}
	d := &e.admitTaken(ctx, box, []inbox.Taken{taken}, e.byPerson())[0]
	switch {
	case d.err == nil:
		return d.Admitted, nil
	case d.taken.Promoted:
		return d.Admitted, fmt.Errorf("%w; its content is safe in %s, and the next run registers it", d.err, layout.ItemDir(layout.ItemID(firstOf(string(d.taken.Item), string(taken.ID)))))
	}
	return d.Admitted, errors.Join(d.err, box.Undo(d.taken))
}

const maxLabel = 500

func (s *Settings) checkLane(lane string) error {
	if lane == "" || s.laneRank(layout.Name(lane)) < len(s.lanes()) {
		return nil
	}
	return fmt.Errorf("no lane %q; the lanes are %s", lane, strings.Join(s.lanes(), ", "))
}

func firstName(names ...layout.Name) layout.Name {
	for _, n := range names {
		if n != "" {
			return n
		}
	}
	return ""
}

func ticket(o AddOptions, by string) inbox.Ticket {
	return inbox.Ticket{Collection: o.Collection, Label: o.Label, Lane: layout.Name(o.Lane), Workflow: layout.Name(o.Workflow), Batch: string(o.Batch), By: by, Move: o.Move}
}
