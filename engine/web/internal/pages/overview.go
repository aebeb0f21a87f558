package pages

import (
	"context"
	"net/http"
	"sync"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/state"
	"bagpipe/engine/web/internal/desk"
)

type overviewView struct {
	ask.Status
	Whole        bool // the account reaches every collection
	Wait, Failed int  // steps that wait for a person; that failed
	Stalled      []ask.StalledSaid
	MoreRunning  int // steps in progress that are not listed
}

// mostShown is how much of a list the overview has.
const mostShown = 20

// slow is what takes long to find: what has stalled, for which every step that is not done is looked
// at, and what lies in the inbox. It is found anew every few seconds at most. The lock guards the rest.
type slow struct {
	mu      sync.Mutex
	at      time.Time
	stalled []ask.StalledSaid
	inbox   ask.InboxStatus
}

func (s *slow) get(ctx context.Context, d *desk.Desk) ([]ask.StalledSaid, ask.InboxStatus, error) {
	const again = 2 * time.Second
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	if began.Before(s.at) {
		return s.stalled, s.inbox, nil
	}
	found, err := d.Ask.Inbox(ctx)
	if err != nil {
		return nil, found, err
	}
	rows := d.Ask.Stalled(0)
	s.stalled = ask.StalledIn(d.Words, rows[:min(len(rows), mostShown)])
	s.inbox = (&ask.Status{InboxStatus: found}).Said(d.Words).InboxStatus
	s.at = time.Now().Add(again + 10*time.Since(began)) // what takes longer is looked for less often
	return s.stalled, s.inbox, nil
}

// overview shows how the workspace stands.
func (p *Pages) overview(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	ctx := r.Context()
	s, err := p.d.Standing(ctx)
	if err != nil {
		return "", nil, err
	}
	v := overviewView{Status: s.Said(p.d.Words), Whole: p.d.Whole(ctx) == nil}
	for _, g := range v.Grids {
		for _, row := range g.Steps {
			v.Wait += row.Manual
			v.Failed += row.Counts[state.Failed]
		}
	}
	if len(v.Running) > mostShown {
		v.MoreRunning = len(v.Running) - mostShown
		v.Running = v.Running[:mostShown]
	}
	if v.Whole {
		v.Stalled, v.InboxStatus, err = p.slow.get(ctx, p.d)
	}
	return "overview", v, err
}

// cell is one number of a grid, and where its items are listed.
type cell struct {
	N    int
	Kind string
	Path string
}

// gridHeads are the columns of a grid.
func gridHeads() []string {
	return []string{"waiting", "of these ready", "of these for a person", "in progress", "failed", "skipped", "completed"}
}

func gridCells(workflow string, row ask.GridRow) []cell {
	items := func(status state.Status) cell {
		return cell{row.Counts[status], string(status), "items?" + query("workflow", workflow, "step", row.Step, "status", status)}
	}
	queue := func(n int, kind, who string) cell {
		return cell{n, kind, "queues/" + workflow + "/" + string(row.Step) + "?for=" + who}
	}
	return []cell{items(state.Waiting), queue(row.Ready, "ready", ask.Robots), queue(row.Manual, "person", ask.People),
		items(state.InProgress), items(state.Failed), items(state.Skipped), items(state.Completed)}
}
