package alert

import (
	"context"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/act"
	"bagpipe/engine/ask"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/inbox"
	"bagpipe/engine/index"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// past is what stood when an alert was told last, beside what stands at a commit now. What
// came to wait after that commit is left for the next digest.
type past struct {
	alerts   *Alerts
	at       time.Time // when it was told
	now      snapshot
	then     *snapshot              // nil: of then nothing is known, and everything is new
	changed  map[layout.ItemID]bool // since then
	controls *state.Controls        // of then
}

// pastOf finds what stood when an alert was told, at a commit that may be lost.
func (al *Alerts) pastOf(ctx context.Context, v gitstore.View, was told) (*past, error) {
	p := &past{alerts: al, at: was.At, now: al.snapshot(v), changed: map[layout.ItemID]bool{}, controls: &state.Controls{}}
	hash, err := gitstore.ParseHash(was.Commit)
	if err != nil {
		return p, nil
	}
	old, err := al.ledger.Store.At(hash)
	if err != nil {
		return p, nil
	}
	then := al.snapshot(old)
	p.then = &then
	if before, err := al.control.ControlsAt(old); err == nil {
		p.controls = before
	}
	return p, al.ledger.Store.Diff(ctx, hash, v.Commit(), func(c gitstore.FileChange) error {
		if id, _, ok := layout.ItemOfPath(c.Path); ok {
			p.changed[id] = true
		}
		return nil
	})
}

// isNew reports whether a failure waits now and did not wait then.
func (p *past) isNew(x act.Failing) bool {
	if p.then != nil && !p.changed[x.Item] { // its records need not be read
		return false
	}
	return p.now.failed(x) && (p.then == nil || !p.then.failed(x))
}

// awaits reports whether a step waits for a person now and did not then: its item changed,
// or its date came.
func (p *past) awaits(it *queue.Item, run *queue.Run, i int) bool {
	why := it.BlockedAt(run, i, p.at)
	dateCame := why != nil && why.Code == "date" && !why.Until.IsZero()
	if p.then != nil && !p.changed[it.ID] { // its records need not be read
		return dateCame
	}
	since, waits := p.now.waits(it.ID, run.Name, i)
	if !waits || p.then == nil || dateCame {
		return waits
	}
	before, waited := p.then.waits(it.ID, run.Name, i)
	return !waited || !since.Equal(before)
}

// snapshot reads items as they were at a commit, each once.
type snapshot struct {
	alerts *Alerts
	view   gitstore.View
	items  map[layout.ItemID]*queue.Item
}

func (al *Alerts) snapshot(v gitstore.View) snapshot {
	return snapshot{al, v, map[layout.ItemID]*queue.Item{}}
}

// item is an item as it was; an empty one when it was not there.
func (s *snapshot) item(id layout.ItemID) *queue.Item {
	it := s.items[id]
	if it == nil {
		it = &queue.Item{ID: id}
		if f, err := ledger.ReadRecords(s.view, id); err == nil && !f.Absent() {
			it = s.alerts.index.Summarise(s.view, id, &f, &index.Scanned{}, &queue.Item{})
		}
		s.items[id] = it
	}
	return it
}

func (s *snapshot) failed(x act.Failing) bool {
	return slices.ContainsFunc(ask.Failings(s.item(x.Item)), func(w act.Failing) bool {
		return w.Run == x.Run && w.Step == x.Step && w.Attempt == x.Attempt && w.Kind == x.Kind
	})
}

func (s *snapshot) waits(id layout.ItemID, run string, i int) (since time.Time, is bool) {
	it := s.item(id)
	r := it.Run(run)
	if r == nil || i >= len(r.Steps) || !it.Waits(r, i) {
		return time.Time{}, false
	}
	return r.Steps[i].Since, true
}

// approvals are the steps of a workflow that wait for a person.
func (al *Alerts) approvals(workflow string, p *past) People {
	out := People{Steps: []ask.ItemRow{}}
	al.index.Loaded().Settle(al.ledger.Now())
	for it := range al.index.Loaded().With(queue.Person) {
		for run, i := range it.Steps() {
			if run.Plan.Name != workflow || !it.Waits(run, i) {
				continue
			}
			out.Waiting++
			if !p.awaits(it, run, i) {
				continue
			}
			if out.New++; len(out.Steps) < alertApprovals {
				out.Steps = append(out.Steps, al.ask.PersonRow(it, run, i))
			}
		}
	}
	return out
}

// rejected lists the drops that were set aside after a time, of the collections that a
// workflow is for.
func (al *Alerts) rejected(workflow string, after time.Time) ([]inbox.Rejection, error) {
	all, err := al.ask.Rejections()
	return slices.DeleteFunc(all, func(r inbox.Rejection) bool {
		collection, _, _ := strings.Cut(r.Drop, "/")
		return !r.Time.After(after) || al.settings.Current().Settings.Collection(layout.Name(collection)).Workflow != workflow
	}), err
}
