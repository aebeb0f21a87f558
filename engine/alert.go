package engine

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

	"bagpipe/engine/gitstore"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/gofrs/flock"
)

// The rules are: a workflow's alert is told, as one digest, of the failures that
// came to wait for a person, and of the steps that were disabled or stopped a run,
// since it was told last. What was told is remembered as the commit at which it was
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
	alertLook     = 2 * time.Second // how often a run looks for news
	alertExamples = 5
)

// Digest is what an alert is told, as JSON: a command reads it from standard
// input, a webhook gets it by POST.
type Digest struct {
	Workspace string         `json:"workspace"`
	Workflow  string         `json:"workflow"`
	At        time.Time      `json:"at"`
	New       int            `json:"new"`     // failures since the last digest
	Waiting   int            `json:"waiting"` // failures in all
	Groups    []FailureGroup `json:"groups"`  // of all, those with news first
	Steps     []StepControl  `json:"steps"`   // disabled, or that stopped a run, since the last digest
}

// news says what is new in it.
func (d *Digest) news() string {
	var what []string
	for _, of := range []struct {
		n         int
		one, many string
	}{{d.New, "1 failure", "failures"}, {len(d.Steps), "1 step out of the flow", "steps out of the flow"}} {
		switch of.n {
		case 0:
		case 1:
			what = append(what, of.one)
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

// alerts is what a run knows of its alerts. One goroutine uses it at a time.
type alerts struct {
	turn sync.Mutex           // held while digests are made and handed over
	next map[string]time.Time // by workflow: not before, as the last try went wrong
	base map[string]told      // by workflow: as on disk, but where nothing was new since
	seen gitstore.Hash        // the tip at which nothing was new
}

// alarm tells the run's alerts what is new, now and then.
func (r *run) alarm(ctx context.Context) {
	tick := time.NewTicker(alertLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := r.e.tellAlerts(ctx, false); err != nil && ctx.Err() == nil {
			r.tellGrave(err.Error())
		}
	}
}

// lastAlarm tells what is new at the end of a run.
func (r *run) lastAlarm(ctx context.Context) {
	if err := r.e.tellAlerts(ctx, true); err != nil {
		r.report(Report{Note: err.Error(), Grave: true})
	}
}

// tellAlerts tells every alert whose turn it is; all of them with now.
func (e *Engine) tellAlerts(ctx context.Context, now bool) (err error) {
	flows := e.alerting()
	if len(flows) == 0 {
		return nil
	}
	e.alerts.turn.Lock()
	defer e.alerts.turn.Unlock()
	if e.alerts.next == nil {
		e.alerts.next, e.alerts.base = map[string]time.Time{}, map[string]told{}
	}
	v, err := e.indexed(ctx)
	if err != nil || e.alerts.seen == v.Commit() {
		return err
	}
	lock := flock.New(e.path(alertsLock))
	if ok, err := lock.TryLock(); err != nil || !ok {
		return err // another engine is telling
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	known := e.readTold()
	var errs []error
	quiet := true
	for _, f := range flows {
		due, err := e.tellAlert(ctx, v, f, known, now)
		errs = append(errs, err)
		quiet = quiet && !due && err == nil
	}
	if quiet {
		e.alerts.seen = v.Commit()
	}
	return errors.Join(errs...)
}

// indexed is a commit that the index is not behind of: an edit without a change
// waits for all that were made before it to be in the index.
func (e *Engine) indexed(ctx context.Context) (gitstore.View, error) {
	v, err := e.store.Tip()
	if err != nil || v.Commit() == e.alerts.seen {
		return v, err
	}
	hash, err := e.store.Commit(ctx, func(gitstore.Reader) (*gitstore.Change, error) { return nil, nil })
	if err != nil {
		return v, err
	}
	return e.store.At(hash)
}

// alerting lists the definitions in force that have an alert, by name.
func (e *Engine) alerting() (flows []*state.Definition) {
	for _, f := range e.current().workflows {
		if f.def.Alert != nil {
			flows = append(flows, f.def)
		}
	}
	slices.SortFunc(flows, func(a, b *state.Definition) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return flows
}

// tellAlert tells one alert what is new, unless it is too early: then due is true.
func (e *Engine) tellAlert(ctx context.Context, v gitstore.View, d *state.Definition, known map[string]told, now bool) (due bool, err error) {
	was, at := known[d.Name], e.o.Now()
	every := time.Duration(d.Alert.Every)
	if every <= 0 {
		every = alertEvery
	}
	if !now && (at.Sub(was.At) < every || at.Before(e.alerts.next[d.Name])) {
		return true, nil
	}
	if b := e.alerts.base[d.Name]; b.At.Equal(was.At) && b.Commit != "" {
		was = b // so that what changed since need not be looked for again
	}
	digest, err := e.digest(ctx, v, d.Name, was)
	if err != nil {
		return false, err
	}
	if digest.New == 0 && len(digest.Steps) == 0 {
		e.alerts.base[d.Name] = told{Commit: v.Commit().String(), At: was.At}
		return false, nil
	}
	if err := e.handOver(ctx, d.Alert, digest); err != nil {
		e.alerts.next[d.Name] = at.Add(min(every, alertAgain))
		return true, fmt.Errorf("the alert of workflow %s was not told of %s, and is tried again: %w", d.Name, digest.news(), err)
	}
	known[d.Name] = told{Commit: v.Commit().String(), At: at}
	return false, e.writeTold(known)
}

// digest collects what waits in a workflow, and what of it is new since it was
// told last.
func (e *Engine) digest(ctx context.Context, v gitstore.View, workflow string, was told) (Digest, error) {
	d := Digest{Workspace: e.root, Workflow: workflow, At: e.o.Now(), Groups: e.failuresOf(workflow), Steps: []StepControl{}}
	isNew, before, err := e.newSince(ctx, v, was)
	if err != nil {
		return d, err
	}
	fresh := map[string]int{}
	for i := range d.Groups {
		g := &d.Groups[i]
		d.Waiting += g.Count
		for _, x := range g.members {
			if isNew(x) {
				fresh[g.ID]++
				d.New++
			}
		}
	}
	slices.SortStableFunc(d.Groups, func(a, b FailureGroup) int { return fresh[b.ID] - fresh[a.ID] })
	d.Steps = e.stepControls(func(c StepControl) bool {
		return c.ref.Workflow == workflow && c.Status != state.StepEnabled && !before.Since(c.ref).Equal(c.At)
	})
	return d, nil
}

// failuresOf are the groups of a workflow, and the records that cannot be read of
// the collections it is for.
func (e *Engine) failuresOf(workflow string) []FailureGroup {
	return slices.DeleteFunc(e.Failures(FailureFilter{}), func(g FailureGroup) bool {
		if g.Kind != recordKind {
			return g.Workflow != workflow
		}
		return e.current().settings.collection(g.members[0].collection).Workflow != workflow
	})
}

// newSince answers what waits at v and did not at the commit told last, and gives
// the controls of then. Everything is new where that commit is not to be found. What
// came to wait after v is left for the next digest.
func (e *Engine) newSince(ctx context.Context, v gitstore.View, was told) (func(failing) bool, *state.Controls, error) {
	now := e.waitsAt(v)
	hash, err := gitstore.ParseHash(was.Commit)
	if err != nil {
		return now, &state.Controls{}, nil
	}
	old, err := e.store.At(hash)
	if err != nil {
		return now, &state.Controls{}, nil
	}
	changed := map[layout.ItemID]bool{}
	err = e.store.Diff(ctx, hash, v.Commit(), func(c gitstore.FileChange) error {
		if id, _, ok := layout.ItemOfPath(c.Path); ok {
			changed[id] = true
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	before, err := e.controlsAt(old)
	if err != nil {
		before = &state.Controls{}
	}
	then := e.waitsAt(old)
	return func(x failing) bool { return changed[x.item] && now(x) && !then(x) }, before, nil
}

// waitsAt answers whether something waits at a commit, as it does now.
func (e *Engine) waitsAt(v gitstore.View) func(failing) bool {
	read := map[layout.ItemID][]failing{}
	return func(x failing) bool {
		waits, there := read[x.item]
		if !there {
			waits = failings(e.itemAt(v, x.item))
			read[x.item] = waits
		}
		return slices.ContainsFunc(waits, func(w failing) bool {
			return w.run == x.run && w.step == x.step && w.attempt == x.attempt && w.kind == x.kind
		})
	}
}

// itemAt is an item as it was; an empty one when it was not there.
func (e *Engine) itemAt(v gitstore.View, id layout.ItemID) *queue.Item {
	f, err := readRecords(v, id)
	if err != nil || f.absent() {
		return &queue.Item{ID: id}
	}
	return e.summarise(v, id, &files{f.manifest, f.execution}, &scanned{}, &queue.Item{})
}

func (e *Engine) readTold() map[string]told {
	known := map[string]told{}
	data, err := os.ReadFile(e.path(alertsFile))
	if err != nil || json.Unmarshal(data, &known) != nil || known == nil {
		return map[string]told{} // absent or damaged: told again
	}
	return known
}

func (e *Engine) writeTold(known map[string]told) error {
	data, err := layout.EncodeJSON(known)
	if err != nil {
		return err
	}
	return disk.WriteFile(e.path(alertsFile), data, 0o666)
}
