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
// at, and what lies in the inbox. It is found anew every few seconds at most, and where it takes long beside the
// pages, which show meanwhile what was found before. The lock guards the rest.
type slow struct {
	mu   sync.Mutex
	busy chan struct{} // closed when it is found; nil: nobody looks
	next time.Time     // when it is found anew
	last found
}

// found is what was found.
type found struct {
	stalled []ask.StalledSaid
	inbox   ask.InboxStatus
	err     error
	took    time.Duration
}

func (s *slow) get(ctx context.Context, d *desk.Desk) ([]ask.StalledSaid, ask.InboxStatus, error) {
	const long, first = 100 * time.Millisecond, 2 * time.Second // what takes long nobody waits for, but the first a little
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy == nil && !time.Now().Before(s.next) {
		done := make(chan struct{})
		s.busy = done
		go func() {
			f := find(context.WithoutCancel(ctx), d)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.note(f)
			s.busy = nil
			close(done)
		}()
	}
	if done := s.busy; done != nil && s.last.took < long {
		s.mu.Unlock()
		select {
		case <-done:
		case <-time.After(first):
		}
		s.mu.Lock()
	}
	return s.last.stalled, s.last.inbox, s.last.err
}

// note keeps what was found; what takes longer is looked for less often, so that it costs a fiftieth of the
// time. The lock is held.
func (s *slow) note(f found) {
	const again, share = 2 * time.Second, 50
	if s.last = f; f.err == nil {
		s.next = time.Now().Add(again + share*f.took)
	}
}

func find(ctx context.Context, d *desk.Desk) (f found) {
	began := time.Now()
	if f.inbox, f.err = d.Ask.Inbox(ctx); f.err == nil {
		f.stalled = ask.StalledIn(d.Words, d.Ask.Stalled(0, mostShown))
		f.inbox = (&ask.Status{InboxStatus: f.inbox}).Said(d.Words).InboxStatus
	}
	f.took = time.Since(began)
	return f
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
