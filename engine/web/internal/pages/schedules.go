package pages

import (
	"net/http"
	"time"

	"bagpipe/engine/schedule"
	"bagpipe/engine/web/internal/desk"
)

// capabilities are the pages of the rooms that do one thing each; they only ask; acts.go has what is done there.
type capabilities struct{ d *desk.Desk }

type schedulesView struct {
	Rows  []scheduleRow
	Wrong []string // with files that are not in force
}

type scheduleRow struct {
	schedule.Row
	Description string
	Does        string
	State       string
	Next        []time.Time // the first may be past: no engine works
	Late        bool        // it is
	Wrong       []string
}

// schedules shows what is done when, when next, and what became of it.
func (p capabilities) schedules(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	if err := p.d.Whole(r.Context()); err != nil {
		return "", nil, err
	}
	checked, err := p.d.Schedule.Check(nil)
	if err != nil {
		return "", nil, err
	}
	v := schedulesView{}
	for _, c := range checked {
		row := scheduleRow{Wrong: c.Wrong}
		if c.File != nil {
			v.Wrong = append(v.Wrong, c.File.Error())
		}
		s := p.d.Settings.Current().Schedules[c.Name]
		if s == nil {
			continue
		}
		if row.Row, err = p.d.Schedule.Row(c.Name); err != nil {
			return "", nil, err
		}
		row.Description, row.Does, row.State = s.Description, s.Do.String(), row.Status
		if !row.Running.IsZero() {
			row.State = "running"
		}
		if !row.Row.Next.IsZero() {
			row.Next, row.Late = []time.Time{row.Row.Next}, row.Running.IsZero() && p.d.Now().After(row.Row.Next.Add(time.Minute))
			if row.Next, err = p.after(c.Name, row.Next); err != nil {
				return "", nil, err
			}
		}
		v.Rows = append(v.Rows, row)
	}
	return "schedules", v, nil
}

// after adds the times at which a schedule is due next but one: of a line of cron, which no end of a firing moves.
func (p capabilities) after(name string, next []time.Time) ([]time.Time, error) {
	const shown = 3
	if p.d.Settings.Current().Schedules[name].Trigger.Cron == "" {
		return next, nil
	}
	times, err := p.d.Schedule.Next(name, shown)
	for _, t := range times {
		if t.After(next[0]) && len(next) < shown {
			next = append(next, t)
		}
	}
	return next, err
}
