package desk

import (
	"context"
	"slices"

	"bagpipe/engine/ask"
)

// Standing is Status of everything that the account reaches; for one that reaches all, without the
// lists of items.
func (d *Desk) Standing(ctx context.Context) (ask.Status, error) {
	if d.Whole(ctx) == nil {
		return d.Ask.Standing(ctx)
	}
	return d.Status(ctx, ask.Filter{More: &ask.More{Within: Within(ctx)}})
}

// Status reads how the workspace stands, as far as the account reaches.
func (d *Desk) Status(ctx context.Context, f ask.Filter) (ask.Status, error) {
	s, err := d.Ask.Status(ctx, f)
	if err != nil || d.Whole(ctx) == nil {
		return s, err
	}
	who := Who(ctx)
	s.InboxStatus = ask.InboxStatus{Inbox: []ask.InboxRow{}, Pauses: []string{}}
	s.Engines, s.Steps, s.Cold = []string{}, []ask.StepControl{}, nil
	s.Running = slices.DeleteFunc(s.Running, func(r ask.RunningStep) bool { return !who.Reaches(string(r.Collection)) })
	return s, nil
}
