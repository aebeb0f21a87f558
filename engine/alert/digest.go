package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/act"
	"bagpipe/engine/ask"
	"bagpipe/engine/control"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/inbox"
	"bagpipe/engine/index"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/gofrs/flock"
)

// The rules are: a workflow's alert is told, as one digest, of what came to wait for a
// person since it was told last: failures, approvals, steps that were disabled or stopped
// a run, steps that have been tried again in vain for an hour, and rejected drops of the
// collections whose workflow it is. What was told is remembered as the commit at which it was
// looked at: new is what waits now and did not wait there. It is told when
// something is new and the last digest is old enough, and at the end of a run. A
// digest that cannot be handed over is reported, counts as not told, and is tried
// again; the work does not wait for it. alerts.json may be deleted: then all that
// waits is told once more. Of several engines on one host one tells, the holder of
// alerts.lock.

const (
	alertsFile    = layout.StateDir + "/alerts.json"
	alertsLock    = layout.StateDir + "/alerts.lock"
	alertEvery    = 15 * time.Minute // where the definition names none
	alertAgain    = time.Minute      // after one that could not be handed over
	alertTimeout  = 30 * time.Second
	AlertLook     = 2 * time.Second // how often a run looks for news
	alertExamples = 5
	// alertApprovals is how many steps that wait for a person are listed.
	alertApprovals = 50
)

// Digest is what an alert is told, as JSON: a command reads it from standard
// input, a webhook gets it by POST.
type Digest struct {
	Workspace string             `json:"workspace"`
	Workflow  string             `json:"workflow"`
	At        time.Time          `json:"at"`
	New       int                `json:"new"`     // failures since the last digest
	Waiting   int                `json:"waiting"` // failures in all
	Groups    []ask.FailureGroup `json:"groups"`  // of all, those with news first
	Steps     []ask.StepControl  `json:"steps"`   // disabled, or that stopped a run, since the last digest

	Approvals People            `json:"approvals"`
	Rejected  []inbox.Rejection `json:"rejected"`   // drops that were set aside since the last digest
	Later     []ask.TriedLater  `json:"triedLater"` // steps that came to be tried again for longer than ask.OverdueAfter since then
}

// People are the steps that wait for a person.
type People struct {
	New     int           `json:"new"`     // since the last digest
	Waiting int           `json:"waiting"` // in all
	Steps   []ask.ItemRow `json:"steps"`   // the first of the new ones
}

// news says what is new in it; empty: nothing.
func (d *Digest) news() string {
	var what []string
	for _, of := range []struct {
		n         int
		one, many string
	}{{d.New, "failure", "failures"}, {len(d.Steps), "step out of the flow", "steps out of the flow"}, {d.Approvals.New, "approval", "approvals"},
		{len(d.Rejected), "rejected drop", "rejected drops"}, {len(d.Later), "step that is tried again in vain", "steps that are tried again in vain"}} {
		switch of.n {
		case 0:
		case 1:
			what = append(what, "1 "+of.one)
		default:
			what = append(what, fmt.Sprintf("%d %s", of.n, of.many))
		}
	}
	return strings.Join(what, " and ")
}

// told is what is remembered of one workflow's alert.
type told struct {
	Commit string    `json:"commit"` // up to which it was told
	At     time.Time `json:"at"`
}

// Alerts is what a run knows of its alerts. One goroutine uses it at a time.
type Alerts struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	control  *control.Panel
	index    *index.Keeper
	ask      *ask.Answers

	turn sync.Mutex           // held while digests are made and handed over
	next map[string]time.Time // by workflow: not before, as the last try went wrong
	base map[string]told      // by workflow: as on disk, but where nothing was new since
	seen gitstore.Hash        // the tip at which nothing was new
	// again is when it is looked anew at that tip: for drops that were rejected, and
	// what has been tried again for too long.
	again time.Time
}

// TellAlerts tells every alert whose turn it is; all of them with now.
func (al *Alerts) TellAlerts(ctx context.Context, now bool) (err error) {
	flows := al.alerting()
	if len(flows) == 0 {
		return nil
	}
	al.turn.Lock()
	defer al.turn.Unlock()
	if al.next == nil {
		al.next, al.base = map[string]time.Time{}, map[string]told{}
	}
	v, err := al.indexed(ctx)
	if err != nil || !now && al.seen == v.Commit() && al.ledger.Now().Before(al.again) {
		return err
	}
	lock := flock.New(al.ledger.Path(alertsLock))
	if ok, err := lock.TryLock(); err != nil || !ok {
		return err // another engine is telling
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	known := al.readTold()
	var errs []error
	quiet := true
	for _, f := range flows {
		due, err := al.tellAlert(ctx, v, f, known, now)
		errs = append(errs, err)
		quiet = quiet && !due && err == nil
	}
	if quiet {
		al.seen, al.again = v.Commit(), al.ledger.Now().Add(alertAgain)
	}
	return errors.Join(errs...)
}

// indexed is a commit that the index is not behind of: an edit without a change
// waits for all that were made before it to be in the index.
func (al *Alerts) indexed(ctx context.Context) (gitstore.View, error) {
	v, err := al.ledger.Store.Tip()
	if err != nil || v.Commit() == al.seen {
		return v, err
	}
	hash, err := al.ledger.Store.Commit(ctx, func(gitstore.Reader) (*gitstore.Change, error) { return nil, nil })
	if err != nil {
		return v, err
	}
	return al.ledger.Store.At(hash)
}

// alerting lists the definitions in force that have an alert, by name.
func (al *Alerts) alerting() (flows []*state.Definition) {
	for _, f := range al.settings.Current().Workflows {
		if f.Def.Alert != nil {
			flows = append(flows, f.Def)
		}
	}
	slices.SortFunc(flows, func(a, b *state.Definition) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return flows
}

// tellAlert tells one alert what is new, unless it is too early: then due is true.
func (al *Alerts) tellAlert(ctx context.Context, v gitstore.View, d *state.Definition, known map[string]told, now bool) (due bool, err error) {
	was, at := known[d.Name], al.ledger.Now()
	every := time.Duration(d.Alert.Every)
	if every <= 0 {
		every = alertEvery
	}
	if !now && (at.Sub(was.At) < every || at.Before(al.next[d.Name])) {
		return true, nil
	}
	if b := al.base[d.Name]; b.At.Equal(was.At) && b.Commit != "" {
		was = b // so that what changed since need not be looked for again
	}
	digest, err := al.digest(ctx, v, d.Name, was)
	if err != nil {
		return false, err
	}
	if digest.news() == "" {
		al.base[d.Name] = told{Commit: v.Commit().String(), At: was.At}
		return false, nil
	}
	if err := al.handOver(ctx, d.Alert, digest); err != nil {
		al.next[d.Name] = at.Add(min(every, alertAgain))
		return true, fmt.Errorf("the alert of workflow %s was not told of %s, and is tried again: %w", d.Name, digest.news(), err)
	}
	known[d.Name] = told{Commit: v.Commit().String(), At: digest.At}
	return false, al.writeTold(known)
}

// digest collects what waits in a workflow, and what of it is new since it was
// told last.
func (al *Alerts) digest(ctx context.Context, v gitstore.View, workflow string, was told) (Digest, error) {
	d := Digest{Workspace: al.ledger.Root, Workflow: workflow, At: al.ledger.Now(), Groups: al.failuresOf(workflow), Steps: []ask.StepControl{}}
	past, err := al.pastOf(ctx, v, was)
	if err != nil {
		return d, err
	}
	fresh := map[string]int{}
	for i := range d.Groups {
		g := &d.Groups[i]
		d.Waiting += g.Count
		for _, x := range g.Members {
			if past.isNew(x) {
				fresh[g.ID]++
				d.New++
			}
		}
	}
	slices.SortStableFunc(d.Groups, func(a, b ask.FailureGroup) int { return fresh[b.ID] - fresh[a.ID] })
	d.Steps = al.ask.StepControls(func(c ask.StepControl) bool {
		return c.Ref.Workflow == workflow && c.Status != state.StepEnabled && !past.controls.Since(c.Ref).Equal(c.At)
	})
	d.Approvals = al.approvals(workflow, past)
	d.Later = slices.DeleteFunc(al.ask.Overdue(), func(l ask.TriedLater) bool {
		of, _, _ := strings.Cut(l.Step, "/")
		return of != workflow || !l.Since.Add(ask.OverdueAfter).After(was.At)
	})
	d.Rejected, err = al.rejected(workflow, was.At)
	for _, r := range d.Rejected { // their times are finer
		if r.Time.After(d.At) && r.Time.Sub(d.At) < ledger.Resolution {
			d.At = r.Time
		}
	}
	return d, err
}

// failuresOf are the groups of a workflow, and the records that cannot be read of
// the collections it is for.
func (al *Alerts) failuresOf(workflow string) []ask.FailureGroup {
	return slices.DeleteFunc(al.ask.Failures(ask.FailureFilter{}), func(g ask.FailureGroup) bool {
		if g.Kind != act.RecordKind {
			return g.Workflow != workflow
		}
		return al.settings.Current().Settings.Collection(g.Members[0].Collection).Workflow != workflow
	})
}

func (al *Alerts) readTold() map[string]told {
	known := map[string]told{}
	data, err := os.ReadFile(al.ledger.Path(alertsFile))
	if err != nil || json.Unmarshal(data, &known) != nil || known == nil {
		return map[string]told{} // absent or damaged: told again
	}
	return known
}

func (al *Alerts) writeTold(known map[string]told) error {
	data, err := layout.EncodeJSON(known)
	if err != nil {
		return err
	}
	return disk.WriteFile(al.ledger.Path(alertsFile), data, 0o666)
}
