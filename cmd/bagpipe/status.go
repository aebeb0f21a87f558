package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/cmd/bagpipe/internal/admin"
	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/catalog"
	"bagpipe/engine/delivery"
	"bagpipe/engine/fault"
	"bagpipe/engine/guard"
	"bagpipe/engine/inbox"
	"bagpipe/engine/schedule"
	"bagpipe/engine/state"
	"bagpipe/engine/sync"
	"bagpipe/layout"
)

type statusCmd struct {
	itemFilter
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *statusCmd) Run(ctx context.Context, a *app) error {
	return a.looking(ctx, func(e *engine.Engine) error {
		f := c.filter()
		s, err := e.Ask.Status(ctx, f)
		if err != nil {
			return err
		}
		a.tellMissing(f.Asked)
		s = s.Said(remedyWords{})
		b, err := besidesOf(ctx, e)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.JSON(struct {
				ask.Status
				besides
			}{s, b})
		}
		if b.Behind > 0 {
			behind := time.Duration(b.Behind * float64(time.Second))
			fmt.Fprintf(a.Out, "The clock is %s behind the last commit: schedules of cron and at wait until it is right\n\n", behind.Round(time.Second))
		}
		var causes []ask.FailureGroup
		if len(s.Failures) > fewFailures && f == (ask.Filter{}) {
			causes = e.Ask.Failures(ask.FailureFilter{})
		}
		if err := printStatus(a, s, causes); err != nil {
			return err
		}
		b.print(a)
		return nil
	})
}

// besides is what the status tells besides the items.
type besides struct {
	Due        []schedule.Row           `json:"due"`
	Unwell     []schedule.Row           `json:"schedulesFailed"`
	Behind     float64                  `json:"clockBehind,omitzero"` // seconds
	Deliveries []delivery.Asking        `json:"deliveries"`
	Republish  string                   `json:"republishing,omitempty"`
	Offered    []sync.Offered           `json:"offered"`
	StayOut    string                   `json:"staysOut,omitempty"` // why this workspace's commits do at others
	Diverged   []sync.Diverged          `json:"diverged"`
	Targets    map[layout.Name][]string `json:"targets"`  // what they cannot do
	Catalogs   []catalog.Trouble        `json:"catalogs"` // that want a person
}

func besidesOf(ctx context.Context, e *engine.Engine) (b besides, err error) {
	due, err := e.Schedule.Overdue()
	if err != nil {
		return b, err
	}
	unwell, err := schedule.Unwell(e.Schedule)
	if err != nil {
		return b, err
	}
	behind, err := e.Schedule.Behind()
	if err != nil {
		return b, err
	}
	asking, err := delivery.Asked(ctx, e.Delivery)
	if err != nil {
		return b, err
	}
	republishing, err := delivery.Republishing(e.Delivery)
	if err != nil {
		return b, err
	}
	catalogs, err := catalog.Troubled(e.Catalog)
	if err != nil {
		return b, err
	}
	offered, err := sync.Offers(ctx, e.Root())
	if err != nil {
		return b, err
	}
	out, err := guard.StayOut(e.Guard)
	if err != nil {
		return b, err
	}
	diverged := []sync.Diverged{}
	if e.Ledger.Site.Name != "" {
		diverged, err = sync.Divergences(ctx, e.Ledger)
	}
	return besides{append([]schedule.Row{}, due...), append([]schedule.Row{}, unwell...), behind.Seconds(),
		append([]delivery.Asking{}, asking...), republishing, append([]sync.Offered{}, offered...), out, diverged, e.Fixity.Poor(), catalogs}, err
}

func (b besides) print(a *app) {
	a.List("Due, and nobody works: bagpipe run --watch", linesOf(b.Due, func(r schedule.Row) string {
		return fmt.Sprintf("schedule %s since %s", r.Name, screen.When(r.Next))
	}))
	a.List("Schedules that failed last", linesOf(b.Unwell, func(r schedule.Row) string {
		line := fmt.Sprintf("%s, due %s: %s", r.Name, screen.When(r.Last.Due), cmp.Or(r.Last.Message, r.Last.Outcome))
		return line + "; more with: bagpipe schedule show " + r.Name
	}))
	a.List("Done with other outputs at two sites", linesOf(b.Diverged, admin.DivergenceText))
	if b.StayOut != "" {
		a.List("Not signed", []string{b.StayOut + ": bagpipe sign --key FILE, and the key listed"})
	}
	a.List("Pushed, and not joined", linesOf(b.Offered, offeredLine))
	listDeliveries(a, b.Deliveries)
	if b.Republish != "" {
		a.List("A republication that has not ended", []string{screen.Local(b.Republish)})
	}
	var poor []string
	for _, name := range slices.Sorted(maps.Keys(b.Targets)) {
		for _, text := range b.Targets[name] {
			poor = append(poor, string(name)+": "+text)
		}
	}
	a.List("Targets", poor)
	var catalogs []string
	for _, t := range b.Catalogs {
		catalogs = append(catalogs, admin.CatalogLines(t)...)
	}
	a.List("Catalogs", catalogs)
}

// offeredLine says why a branch that asks to be joined is not.
func offeredLine(o sync.Offered) string {
	if o.Refused == "" {
		return o.Branch + ": the next run looks at it"
	}
	return admin.OfferText(o)
}

// listDeliveries lists the deliveries that do not go by themselves, or not yet.
func listDeliveries(a *app, all []delivery.Asking) {
	var person, again []delivery.Asking
	for _, d := range all {
		if d.TriedAgain() {
			again = append(again, d)
		} else {
			person = append(person, d)
		}
	}
	a.List("Deliveries that wait for a person", linesOf(person, askingLine))
	a.List("Deliveries that are tried again", linesOf(again, func(d delivery.Asking) string {
		what := screen.CountVerb(d.Count, "item goes again", "items go again")
		if d.State == layout.DeliveryUnconfirmed {
			what = screen.CountVerb(d.Count, "item is to be taken back", "items are to be taken back")
		}
		return fmt.Sprintf("%s: %s, from %s on: %s", d.Target, what, screen.When(d.Next), d.Message)
	}))
}

// askingLine says how many deliveries to a target wait, and for what.
func askingLine(d delivery.Asking) string {
	if d.State == layout.DeliveryUnreadable {
		return fmt.Sprintf("%s delivered nowhere: %s; list with: bagpipe delivery list --state %s", screen.CountVerb(d.Count, "item is", "items are"), d.Message, d.State)
	}
	if d.State == layout.DeliveryDelivered {
		return fmt.Sprintf("%s: %s, and %s: nothing is taken back from it; list with: bagpipe delivery list --to %s", d.Target, screen.CountVerb(d.Count, "item is there", "items are there"), d.Message, d.Target)
	}
	what := screen.CountVerb(d.Count, "item waits for approval", "items wait for approval")
	if d.State == layout.DeliveryFailed {
		what = screen.CountVerb(d.Count, "item failed", "items failed")
	} else if d.State == layout.DeliveryUnconfirmed {
		what = screen.CountVerb(d.Count, "item could not be taken back", "items could not be taken back")
	}
	return fmt.Sprintf("%s: %s; list with: bagpipe delivery list --to %s --state %s", d.Target, what, d.Target, d.State)
}

// fewFailures are listed one by one; of more their causes are.
const fewFailures = 5

// printStatus prints causes, if there are any, in place of the failures.
func printStatus(a *app, s ask.Status, causes []ask.FailureGroup) error {
	if s.Paused != "" {
		fmt.Fprintf(a.Out, "%s\n\n", s.Paused)
	}
	lost := func(h ask.ItemRow) bool { return strings.Contains(h.HeldBy, state.NoSoundCopy) }
	if first := linesOf(slices.DeleteFunc(slices.Clone(s.Holds), func(h ask.ItemRow) bool { return !lost(h) }), holdLine); len(first) > 0 {
		fmt.Fprintf(a.Out, "No sound copy is known of\n  %s\n\n", screen.Local(strings.Join(first, "\n  ")))
		s.Holds = slices.DeleteFunc(slices.Clone(s.Holds), lost)
	}
	fmt.Fprintf(a.Out, "%s, %d held, %s, %s\n", screen.Count(s.Items, "item"), s.Held, screen.CountVerb(len(s.Rejected), "rejected drop", "rejected drops"), screen.Count(len(s.Engines), "engine")+" running")
	for _, g := range s.Grids {
		if err := printGrid(a, g); err != nil {
			return err
		}
	}
	a.List("Steps", controlLines(s.Steps))
	if len(causes) > 0 {
		a.List("Failed, by cause (bagpipe items --status failed lists the items)", linesOf(causes, causeLine))
	} else {
		a.List("Failed", failureLines(s.Failures), manyFailed)
	}
	a.List("Children failed, of", linesOf(s.Parents, parentLine))
	a.List("Tried again later", linesOf(s.Later, laterLine))
	a.List("Waiting for a person", linesOf(s.People, personLine))
	a.List("Held", linesOf(s.Holds, holdLine))
	a.List("Not taken in", s.Pauses)
	a.List("In the inbox", linesOf(s.Inbox, ask.InboxRow.String))
	a.List("Rejected (kept in rejected/; a mended drop can be moved back into the inbox)", linesOf(s.Rejected, rejectedLine))
	a.List("In progress", linesOf(s.Running, runningLine))
	a.List("Not claimed", s.Cold)
	a.List("Running", s.Engines)
	a.List("Workers", s.Workers)
	return nil
}

// printGrid prints how many items stand where in a workflow.
func printGrid(a *app, g ask.Grid) error {
	head := screen.Count(g.Items, "item")
	if g.Runs > g.Items {
		head += fmt.Sprintf(", %d runs", g.Runs)
	}
	fmt.Fprintf(a.Out, "\n%s: %s\n", g.Workflow, head)
	t := screen.NewTable("step", "waiting", "in-progress", "completed", "skipped", "failed", "")
	for _, r := range g.Steps {
		n := func(s state.Status) any {
			if r.Counts[s] == 0 {
				return screen.Figure(".")
			}
			return r.Counts[s]
		}
		t.Row(r.Step, n(state.Waiting), n(state.InProgress), n(state.Completed), n(state.Skipped), n(state.Failed), waitingNote(r))
	}
	return t.Print(a.Out)
}

// linesOf turns each of all into a line, or into what is printed of it as JSON.
func linesOf[T, L any](all []T, line func(T) L) []L {
	lines := make([]L, 0, len(all))
	for _, one := range all {
		lines = append(lines, line(one))
	}
	return lines
}

func parentLine(p ask.ItemRow) string {
	return fmt.Sprintf("%s  %s/%s: %d of %d; bagpipe items --parent %s --status failed", p.Item.Short(), p.Collection, p.Label, p.ChildrenFailed, p.Children, p.Item.Short())
}

func causeLine(g ask.FailureGroup) string {
	return fmt.Sprintf("%s  %s: %s/%s (%s): %s", g.ID, screen.Count(g.Count, "item"), cmp.Or(g.Workflow, "record"), g.Step, g.Kind, causeText(g))
}

func laterLine(l ask.TriedLater) string {
	failed := ""
	if l.Failures > 0 {
		failed = " after " + screen.Count(l.Failures, "failure")
	}
	return fmt.Sprintf("%s: %s%s since %s, again from %s on: %s", l.Step, screen.Count(l.Items, "item"), failed, screen.When(l.Since), screen.When(l.Next), l.Text())
}

func personLine(p ask.ItemRow) string {
	if !strings.HasPrefix(p.Why, "waits for a person") { // its date is none
		return fmt.Sprintf("%s  %s/%s: %s %s; let it go on with: bagpipe step complete %s %s", p.Item.Short(), p.Collection, p.Label, p.Step, p.Why, p.Item.Short(), p.Step)
	}
	return fmt.Sprintf("%s  %s/%s: %s since %s; complete with: bagpipe step complete %s %s", p.Item.Short(), p.Collection, p.Label, p.Step, screen.When(p.Since), p.Item.Short(), p.Step)
}

// holdLine says who holds an item, and what helps where that is more than a release.
func holdLine(h ask.ItemRow) string {
	line := fmt.Sprintf("%s  %s/%s: %s", h.Item.Short(), h.Collection, h.Label, h.HeldBy)
	if helps := h.LetGo(); helps.Verb != fault.Release {
		line = withRemedies(line, helps)
	}
	return line
}

func rejectedLine(r inbox.Rejection) string {
	return strings.TrimSuffix(r.Drop+": "+r.Reason, ": ")
}

// runningLine says who is at a step, and how far; of one whose engine is gone, what to do.
func runningLine(r ask.RunningStep) string {
	gone := ""
	if r.Gone {
		gone = ", which is gone; resume it with: bagpipe run"
	}
	return strings.TrimSuffix(fmt.Sprintf("%s  %s/%s: %s/%s since %s by %s%s: %s", r.Item.Short(), r.Collection, r.Label, r.Workflow, r.Step, screen.When(r.Since), r.Runner, gone, progressText(r.Progress, time.Since(r.Since))), ": ")
}

// controlLines says how steps stand over all items, and what to do about it.
func controlLines(steps []ask.StepControl) (lines []string) {
	for _, c := range steps {
		line := strings.TrimSuffix(fmt.Sprintf("%s: %s by %s since %s: %s", c.Step, c.Status, c.By, screen.When(c.At), c.Text), ": ")
		switch {
		case c.Status == state.StepStopped:
			line = fmt.Sprintf("%s: stopped the run at %s: %s", c.Step, screen.When(c.At), c.Text)
		case c.Trial != "":
			line += "; item " + c.Trial.Short() + " is being tried"
		case !c.Until.IsZero():
			line += "; one item is tried from " + screen.When(c.Until)
		}
		if c.Waiting > 0 {
			line += "; " + screen.CountVerb(c.Waiting, "item waits", "items wait")
		}
		if c.Status == state.StepDisabled {
			line += "; let it go on with: bagpipe step enable " + c.Step
		}
		lines = append(lines, line)
	}
	return lines
}

func waitingNote(r ask.GridRow) string {
	switch {
	case r.Manual > 0:
		return fmt.Sprintf("%d for a person", r.Manual)
	case r.Ready > 0:
		return fmt.Sprintf("%d ready", r.Ready)
	}
	return ""
}

func failureLines(failures []ask.Failure) (lines []string) {
	for _, f := range failures {
		where := string(f.Step)
		if where == "" {
			where = cmp.Or(f.Workflow, "record")
		}
		lines = append(lines, fmt.Sprintf("%s  %s/%s: %s (%s): %s", f.Item.Short(), f.Collection, f.Label, where, f.Kind, f.Message))
		if f.Remedy.Verb != fault.None {
			lines[len(lines)-1] = withRemedies(lines[len(lines)-1], f.Remedy)
		}
	}
	return lines
}

// manyFailed is advice on a long list: mostly one cause has many items.
const manyFailed = "bagpipe failures groups them by their cause"
