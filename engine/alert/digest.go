package alert

import (
	"bagpipe/engine/control"
	"bagpipe/engine/settings"
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
	"bagpipe/engine/gitstore"
	"bagpipe/engine/index"
	"bagpipe/engine/ledger"
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
	AlertLook     = 2 * time.Second // how often a run looks for news
	alertExamples = 5
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
	if err != nil || al.seen == v.Commit() {
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
		al.seen = v.Commit()
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
	if digest.New == 0 && len(digest.Steps) == 0 {
		al.base[d.Name] = told{Commit: v.Commit().String(), At: was.At}
		return false, nil
	}
	if err := al.handOver(ctx, d.Alert, digest); err != nil {
		al.next[d.Name] = at.Add(min(every, alertAgain))
		return true, fmt.Errorf("the alert of workflow %s was not told of %s, and is tried again: %w", d.Name, digest.news(), err)
	}
	known[d.Name] = told{Commit: v.Commit().String(), At: at}
	return false, al.writeTold(known)
}

// digest collects what waits in a workflow, and what of it is new since it was
// told last.
func (al *Alerts) digest(ctx context.Context, v gitstore.View, workflow string, was told) (Digest, error) {
	d := Digest{Workspace: al.ledger.Root, Workflow: workflow, At: al.ledger.Now(), Groups: al.failuresOf(workflow), Steps: []ask.StepControl{}}
	isNew, before, err := al.newSince(ctx, v, was)
	if err != nil {
		return d, err
	}
	fresh := map[string]int{}
	for i := range d.Groups {
		g := &d.Groups[i]
		d.Waiting += g.Count
		for _, x := range g.Members {
			if isNew(x) {
				fresh[g.ID]++
				d.New++
			}
		}
	}
	slices.SortStableFunc(d.Groups, func(a, b ask.FailureGroup) int { return fresh[b.ID] - fresh[a.ID] })
	d.Steps = al.ask.StepControls(func(c ask.StepControl) bool {
		return c.Ref.Workflow == workflow && c.Status != state.StepEnabled && !before.Since(c.Ref).Equal(c.At)
	})
	return d, nil
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

// newSince answers what waits at v and did not at the commit told last, and gives
// the controls of then. Everything is new where that commit is not to be found. What
// came to wait after v is left for the next digest.
func (al *Alerts) newSince(ctx context.Context, v gitstore.View, was told) (func(act.Failing) bool, *state.Controls, error) {
	now := al.waitsAt(v)
	hash, err := gitstore.ParseHash(was.Commit)
	if err != nil {
		return now, &state.Controls{}, nil
	}
	old, err := al.ledger.Store.At(hash)
	if err != nil {
		return now, &state.Controls{}, nil
	}
	changed := map[layout.ItemID]bool{}
	err = al.ledger.Store.Diff(ctx, hash, v.Commit(), func(c gitstore.FileChange) error {
		if id, _, ok := layout.ItemOfPath(c.Path); ok {
			changed[id] = true
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	before, err := al.control.ControlsAt(old)
	if err != nil {
		before = &state.Controls{}
	}
	then := al.waitsAt(old)
	return func(x act.Failing) bool { return changed[x.Item] && now(x) && !then(x) }, before, nil
}

// waitsAt answers whether something waits at a commit, as it does now.
func (al *Alerts) waitsAt(v gitstore.View) func(act.Failing) bool {
	read := map[layout.ItemID][]act.Failing{}
	return func(x act.Failing) bool {
		waits, there := read[x.Item]
		if !there {
			waits = ask.Failings(al.itemAt(v, x.Item))
			read[x.Item] = waits
		}
		return slices.ContainsFunc(waits, func(w act.Failing) bool {
			return w.Run == x.Run && w.Step == x.Step && w.Attempt == x.Attempt && w.Kind == x.Kind
		})
	}
}

// itemAt is an item as it was; an empty one when it was not there.
func (al *Alerts) itemAt(v gitstore.View, id layout.ItemID) *queue.Item {
	f, err := ledger.ReadRecords(v, id)
	if err != nil || f.Absent() {
		return &queue.Item{ID: id}
	}
	return al.index.Summarise(v, id, &ledger.Files{Manifest: f.Manifest, Execution: f.Execution}, &index.Scanned{}, &queue.Item{})
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
