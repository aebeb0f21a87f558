package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/catalog"
	"bagpipe/engine/delivery"
	"bagpipe/engine/disposal"
	"bagpipe/engine/fixity"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/schedule"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/engine/timetable"
	"bagpipe/layout"
)

// deeds are what schedules can do beside running programs.
type deeds struct{ e *Engine }

func (d deeds) byName() map[string]schedule.Deed {
	return map[string]schedule.Deed{"fixity": d.checkFixity, "scan": d.scanCatalog, "read": d.read, "start": d.startOnItems,
		"dispose": d.dispose, "deliver": d.deliver, "feeds": d.writeFeeds}
}

// readyOf counts what a robot can begin in a queue.
func (d deeds) readyOf(q *queue.Named) (int, error) {
	row, err := d.e.Ask.CountQueue(ask.QueueAsk{Which: q.Name, For: ask.Robots})
	return row.Ready, err
}

func (d deeds) checkFixity(ctx context.Context, do timetable.Do) (said string, failed bool, err error) {
	if err := d.e.Index.Load(ctx); err != nil {
		return "", false, err
	}
	if do.Fixity != "due" {
		return d.sweep(ctx, do)
	}
	checked, damaged := 0, 0
	passed, err := fixity.ByEngine(d.e.Fixity).Due(ctx, true, nil, func(r fixity.Result) {
		checked++
		if len(r.Failed()) > 0 {
			damaged++
		}
		logFixity(do, r)
	})
	said = fmt.Sprintf("%d checked, %d damaged", checked, damaged)
	if passed > 0 {
		said += fmt.Sprintf(", %d passed over while worked on", passed)
	}
	return said, damaged > 0, err
}

// logFixity tells the log of copies that are not what they were.
func logFixity(do timetable.Do, r fixity.Result) {
	for _, name := range r.Failed() {
		fmt.Fprintf(do.Out, "damaged  %s  %s/%s  %s: %s\n", r.Item, r.Collection, ledger.OneLine(ledger.Printable(r.Label), 200), name, ledger.OneLine(ledger.Printable(r.Copies[name].Message), 500))
	}
}

// sweep looks at many items, and commits one record of it.
func (d deeds) sweep(ctx context.Context, do timetable.Do) (said string, failed bool, err error) {
	s, err := fixity.ByEngine(d.e.Fixity).Sweep(ctx, fixity.Sweep{Of: do.Fixity, At: do.At, Sample: do.Part, Older: do.OlderFor, Every: do.EveryFor, Rate: do.PerSec,
		Heal: do.Heal, Parallel: do.Parallel, By: do.By}, func(r fixity.Result) { logFixity(do, r) })
	said = fmt.Sprintf("%d checked, %d damaged", s.Checked(), s.Damaged())
	if s.Healed > 0 {
		said += fmt.Sprintf(", %d healed", s.Healed)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Away)) {
		said += fmt.Sprintf(", %d away on %s", s.Away[name], name)
	}
	if s.Newer > 0 {
		said += fmt.Sprintf(", %d changed since catalogued", s.Newer)
	}
	if s.Passed > 0 {
		said += fmt.Sprintf(", %d passed over while worked on", s.Passed)
	}
	if s.Stopped != "" {
		said += "; " + s.Stopped
	}
	return said, s.Damaged() > 0 || s.Stopped != "", err
}

// startOnItems starts a workflow on the items that fit and do not have it under way. A firing that is
// resumed passes over those that got it since it was begun: they may have done it by now.
func (d deeds) startOnItems(ctx context.Context, do timetable.Do) (said string, failed bool, err error) {
	if err := d.e.Index.Load(ctx); err != nil {
		return "", false, err
	}
	rows, err := d.e.Ask.Items(ask.Filter{Where: do.Which}, ask.Page{})
	if err != nil {
		return "", false, err
	}
	acts, started, underWay, before := d.e.Act.As(d.e.Ledger.ByEngine()), 0, 0, 0
	for _, row := range rows {
		if has, err := d.startedSince(row.Item, do.Start, do.Since); err != nil {
			return fmt.Sprintf("started on %d", started), true, err
		} else if has {
			before++
			continue
		}
		_, err := acts.Start(ctx, row.Item, do.Start, d.e.Ledger.Now())
		var illegal *state.IllegalError
		switch {
		case errors.As(err, &illegal):
			underWay++
		case err != nil:
			return fmt.Sprintf("started on %d", started), true, err
		default:
			started++
			fmt.Fprintf(do.Out, "started  %s  %s/%s\n", row.Item, row.Collection, ledger.OneLine(ledger.Printable(row.Label), 200))
		}
	}
	said = fmt.Sprintf("%s started on %d of %s, under way on %d", do.Start, started, layout.Count(len(rows), "item"), underWay)
	if before > 0 {
		said += fmt.Sprintf(", and on %d before the engine was gone", before)
	}
	return said, false, nil
}

// startedSince reports whether an item was given a workflow since a time; zero: never.
func (d deeds) startedSince(id layout.ItemID, workflow string, since time.Time) (bool, error) {
	if since.IsZero() {
		return false, nil
	}
	_, rec, err := d.e.Ledger.ReadTip(id, "")
	if err != nil {
		return false, err
	}
	for name, w := range rec.Execution.Workflows {
		if of, _ := state.Numbered(name); of == workflow && !w.Created.Before(since.Truncate(time.Millisecond)) {
			return true, nil
		}
	}
	return false, nil
}

// scanCatalog brings a catalog up to date. What wants a person fails it.
func (d deeds) scanCatalog(ctx context.Context, do timetable.Do) (said string, failed bool, err error) {
	r, err := d.e.Catalog.Scan(ctx, layout.Name(do.Scan), catalog.Options{})
	if err != nil {
		return "", false, err
	}
	if r.Away != "" {
		return "away: " + r.Away, true, nil
	}
	for _, of := range []map[string]string{r.Unread, r.Problems} {
		for _, path := range slices.Sorted(maps.Keys(of)) {
			fmt.Fprintf(do.Out, "%s: %s\n", ledger.Printable(path), ledger.OneLine(ledger.Printable(of[path]), 500))
		}
	}
	return fmt.Sprintf("%d new, %d versions, %d moved, %d gone, %d unconfirmed, %d unread", r.New, r.Versions, r.Moved, r.Gone, r.Unconfirmed, len(r.Unread)), r.Trouble(), nil
}

// read calls a reader for a schedule.
func (d deeds) read(ctx context.Context, do timetable.Do) (said string, failed bool, err error) {
	o, err := d.e.Reader.Read(ctx, do.Read)
	return o.String(), o.Trouble(), err
}

// dispose proposes what rules say is due, and carries out what persons approved.
func (d deeds) dispose(ctx context.Context, do timetable.Do) (said string, failed bool, err error) {
	if err := d.e.Index.Load(ctx); err != nil {
		return "", false, err
	}
	keys, items, review, err := d.e.Disposal.ProposeDue(ctx)
	if err != nil {
		return "", false, err
	}
	keeper, gone, stay := disposal.ByEngine(d.e.Disposal), 0, 0
	err = keeper.Run(ctx, "", func(t disposal.Told) {
		label := ledger.OneLine(ledger.Printable(t.Label), 200)
		if t.Gone {
			gone++
			fmt.Fprintf(do.Out, "gone  %s  %s\n", t.Item, label)
		} else {
			stay++
			fmt.Fprintf(do.Out, "stays  %s  %s: %s\n", t.Item, label, ledger.OneLine(ledger.Printable(t.Why), 500))
		}
	})
	if err == nil {
		_, err = keeper.Tidy(ctx)
	}
	return fmt.Sprintf("%s proposed in %s, %d for review, %d disposed of, %d stay", layout.Count(items, "item"), layout.Count(len(keys), "proposal"), review, gone, stay), stay > 0, err
}

// deliver sends what delivery rules say.
func (d deeds) deliver(ctx context.Context, do timetable.Do) (said string, failed bool, err error) {
	delivered, bad := 0, 0
	err = d.e.Delivery.Pass(ctx, 0, func(t delivery.Told) {
		if t.State == layout.DeliveryDelivered {
			delivered++
		} else {
			bad++
		}
		fmt.Fprintf(do.Out, "%s  %s to %s  %s\n", t.State, t.Item, t.Target, ledger.OneLine(ledger.Printable(t.Text), 500))
	})
	return fmt.Sprintf("%d delivered, %d not", delivered, bad), bad > 0, err
}

// writeFeeds brings the feeds up to date, and writes them to a folder.
func (d deeds) writeFeeds(ctx context.Context, do timetable.Do) (said string, failed bool, err error) {
	if err := d.e.Feed.Cycle(ctx); err != nil {
		return "", false, err
	}
	n, err := d.e.Feed.WriteAll(ctx, settings.Below(d.e.Ledger.Root, do.Feeds))
	return fmt.Sprintf("%d feeds written", n), false, err
}
