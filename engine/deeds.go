package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"bagpipe/engine/ask"
	"bagpipe/engine/catalog"
	"bagpipe/engine/delivery"
	"bagpipe/engine/disposal"
	"bagpipe/engine/fixity"
	"bagpipe/engine/queue"
	"bagpipe/engine/schedule"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/engine/timetable"
	"bagpipe/layout"
)

// deeds are what schedules can do beside running programs.
func (e *Engine) deeds() map[string]schedule.Deed {
	return map[string]schedule.Deed{"fixity": e.checkFixity, "scan": e.scanCatalog, "read": e.read, "start": e.startOnItems,
		"dispose": e.dispose, "deliver": e.deliver, "feeds": e.writeFeeds}
}

// readyOf counts what a robot can begin in a queue.
func (e *Engine) readyOf(q *queue.Named) (int, error) {
	row, err := e.Ask.CountQueue(ask.QueueAsk{Which: q.Name, For: ask.Robots})
	return row.Ready, err
}

func (e *Engine) checkFixity(ctx context.Context, d timetable.Do) (said string, failed bool, err error) {
	if err := e.Index.Load(ctx); err != nil {
		return "", false, err
	}
	if d.Fixity != "due" {
		return e.sweep(ctx, d)
	}
	checked, damaged := 0, 0
	passed, err := e.Fixity.Due(ctx, true, nil, func(r fixity.Result) {
		checked++
		if len(r.Failed()) > 0 {
			damaged++
		}
	})
	said = fmt.Sprintf("%d checked, %d damaged", checked, damaged)
	if passed > 0 {
		said += fmt.Sprintf(", %d passed over, as they are worked on", passed)
	}
	return said, damaged > 0, err
}

// sweep looks at many items, and commits one record of it.
func (e *Engine) sweep(ctx context.Context, d timetable.Do) (said string, failed bool, err error) {
	s, err := e.Fixity.Sweep(ctx, fixity.Sweep{Of: d.Fixity, At: d.At, Sample: d.Part, Older: d.OlderFor, Every: d.EveryFor, Rate: d.PerSec,
		Heal: d.Heal, Parallel: d.Parallel, By: "a schedule"}, func(fixity.Result) {})
	said = fmt.Sprintf("%d checked, %d damaged", s.Checked(), s.Damaged())
	if s.Healed > 0 {
		said += fmt.Sprintf(", %d healed", s.Healed)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Away)) {
		said += fmt.Sprintf(", %d away on %s", s.Away[name], name)
	}
	if s.Passed > 0 {
		said += fmt.Sprintf(", %d passed over, as they are worked on", s.Passed)
	}
	if s.Stopped != "" {
		said += "; " + s.Stopped
	}
	return said, s.Damaged() > 0 || s.Stopped != "", err
}

// startOnItems starts a workflow on the items that fit and do not have it under way.
func (e *Engine) startOnItems(ctx context.Context, d timetable.Do) (said string, failed bool, err error) {
	if err := e.Index.Load(ctx); err != nil {
		return "", false, err
	}
	rows, err := e.Ask.Items(ask.Filter{Where: d.Which}, ask.Page{})
	if err != nil {
		return "", false, err
	}
	started, underWay := 0, 0
	for _, row := range rows {
		_, err := e.Act.Start(ctx, row.Item, d.Start, e.Ledger.Now())
		var illegal *state.IllegalError
		switch {
		case errors.As(err, &illegal):
			underWay++
		case err != nil:
			return fmt.Sprintf("started on %d", started), true, err
		default:
			started++
		}
	}
	return fmt.Sprintf("%s started on %d of %d items, under way on %d", d.Start, started, len(rows), underWay), false, nil
}

// scanCatalog brings a catalog up to date. What wants a person fails it.
func (e *Engine) scanCatalog(ctx context.Context, d timetable.Do) (said string, failed bool, err error) {
	r, err := e.Catalog.Scan(ctx, layout.Name(d.Scan), catalog.Options{})
	if err != nil {
		return "", false, err
	}
	if r.Away != "" {
		return "away: " + r.Away, true, nil
	}
	return fmt.Sprintf("%d new, %d versions, %d moved, %d gone, %d unconfirmed, %d unread", r.New, r.Versions, r.Moved, r.Gone, r.Unconfirmed, len(r.Unread)), r.Trouble(), nil
}

// read calls a reader for a schedule.
func (e *Engine) read(ctx context.Context, d timetable.Do) (said string, failed bool, err error) {
	o, err := e.Reader.Read(ctx, d.Read)
	return o.String(), o.Trouble(), err
}

// dispose proposes what rules say is due, and carries out what persons approved.
func (e *Engine) dispose(ctx context.Context, _ timetable.Do) (said string, failed bool, err error) {
	if err := e.Index.Load(ctx); err != nil {
		return "", false, err
	}
	keys, items, review, err := e.Disposal.ProposeDue(ctx)
	if err != nil {
		return "", false, err
	}
	gone, stay := 0, 0
	err = e.Disposal.Run(ctx, "", func(t disposal.Told) {
		if t.Gone {
			gone++
		} else {
			stay++
		}
	})
	if err == nil {
		_, err = e.Disposal.Tidy(ctx)
	}
	return fmt.Sprintf("%d items proposed in %d proposals, %d for review, %d disposed of, %d stay", items, len(keys), review, gone, stay), stay > 0, err
}

// deliver sends what delivery rules say.
func (e *Engine) deliver(ctx context.Context, _ timetable.Do) (said string, failed bool, err error) {
	delivered, bad := 0, 0
	err = e.Delivery.Pass(ctx, func(t delivery.Told) {
		if t.State == layout.DeliveryDelivered {
			delivered++
		} else {
			bad++
		}
	})
	return fmt.Sprintf("%d delivered, %d not", delivered, bad), bad > 0, err
}

// writeFeeds brings the feeds up to date, and writes them to a folder.
func (e *Engine) writeFeeds(ctx context.Context, d timetable.Do) (said string, failed bool, err error) {
	if err := e.Feed.Cycle(ctx); err != nil {
		return "", false, err
	}
	n, err := e.Feed.WriteAll(settings.Below(e.Ledger.Root, d.Feeds))
	return fmt.Sprintf("%d feeds written", n), false, err
}
