package engine

import (
	"context"
	"errors"
	"fmt"

	"bagpipe/engine/ask"
	"bagpipe/engine/catalog"
	"bagpipe/engine/fixity"
	"bagpipe/engine/queue"
	"bagpipe/engine/schedule"
	"bagpipe/engine/state"
	"bagpipe/engine/timetable"
	"bagpipe/layout"
)

// deeds are what schedules can do beside running programs.
func (e *Engine) deeds() map[string]schedule.Deed {
	return map[string]schedule.Deed{"fixity": e.checkFixity, "scan": e.scanCatalog, "read": e.read, "start": e.startOnItems}
}

// readyOf counts what a robot can begin in a queue.
func (e *Engine) readyOf(q *queue.Named) (int, error) {
	row, err := e.Ask.CountQueue(ask.QueueAsk{Which: q.Name, For: ask.Robots})
	return row.Ready, err
}

func (e *Engine) checkFixity(ctx context.Context, d timetable.Do) (said string, failed bool, err error) {
	checked, damaged, passed := 0, 0, 0
	told := func(r fixity.Result) {
		checked++
		if len(r.Failed()) > 0 {
			damaged++
		}
	}
	if d.Fixity == "due" {
		if err = e.Index.Load(ctx); err == nil {
			passed, err = e.Fixity.Due(ctx, true, nil, told)
		}
	} else {
		passed, err = e.Fixity.Run(ctx, fixity.Which{Sample: d.Part, Older: d.OlderFor, Parallel: d.Parallel}, told)
	}
	said = fmt.Sprintf("%d checked, %d damaged", checked, damaged)
	if passed > 0 {
		said += fmt.Sprintf(", %d passed over, as they are worked on", passed)
	}
	return said, damaged > 0, err
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
