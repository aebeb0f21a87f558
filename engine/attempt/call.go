package attempt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"bagpipe/engine/folder"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/mounted"
	"bagpipe/engine/queue"
	"bagpipe/engine/runner"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// call prepares the attempt's scratch folder and calls the step's robot.
func (w *Work) call(ctx context.Context, aside runner.Aside) (_ steps.Result, err error) {
	c, err := prepare(ctx, w, w.bare(), seldom(w))
	if err != nil {
		return steps.Result{}, err
	}
	c.Rounds, c.Aside = w.a.folder.Rounds, func(wait func() error) error { return aside(ctx, wait) }
	if w.plan.Starts != "" {
		return w.startNext(ctx, c)
	}
	stop := steps.TellBytes(c)
	defer stop()
	told := func() {}
	if w.plan.Command != nil && w.scratch != "" { // the bytes of a built-in robot are shown alone
		told = notes{w.a.ledger, w.attempt, w.scratch, w.warn}.start(ctx)
	}
	res, err := w.perform(ctx, c)
	told()
	if changed := w.checkPlace(ctx); changed != nil {
		return steps.Result{}, changed
	}
	return res, orBarred(w, err)
}

// bytesHere puts off a step of an item that another site admitted, and whose bytes have not
// come from there.
func bytesHere(r rooms, id layout.ItemID) error {
	if r.ledger.Site.Name == "" {
		return nil // it does nothing of another site's
	}
	_, rec, err := r.ledger.ReadTip(id, "")
	if err != nil {
		return err
	}
	from := state.Admitter(rec.Execution)
	if r.ledger.Site.Mine(from) || r.folder.HasBytes(id) {
		return nil
	}
	return &steps.Later{Reason: fmt.Sprintf("%s, but at site %s", folder.NotHere, from)}
}

// AwaitsBytes reports whether a step was put off for the item's bytes, and still would be: to claim it again each time that it is
// due would say nothing new, two commits a minute.
func AwaitsBytes(a *Attempts, entry queue.Entry) bool {
	run := entry.Item.Run(entry.Run)
	return run != nil && folder.AwaitsBytes(run.Steps[entry.N].Message, a.ledger.Path(layout.ItemDir(entry.Item.ID)))
}

// prepare makes the scratch folder, unless the robot is bare, or seldom needs it and makes it then,
// and gives the robot's view of the item; the inputs are kept where the step says so.
func prepare(ctx context.Context, w *Work, bare, seldom bool) (c *steps.Call, err error) {
	if w.writing, err = w.a.folder.Begin(); err != nil {
		return nil, err
	}
	if !bare {
		w.scratch = w.a.folder.ScratchDir(w.attempt.AttemptRef)
	}
	if err := bytesHere(w.a.rooms, w.attempt.Item); err != nil {
		return nil, err
	}
	if c, err = w.a.newCall(ctx, w); err != nil {
		return nil, err
	}
	if !bare && (!seldom || c.Decoded.Source.Place != nil) {
		if err := w.a.folder.Spares.Take(w.scratch); err != nil {
			return nil, err
		}
	}
	if err := w.openPlace(ctx, c); err != nil {
		return nil, err
	}
	if err := w.verifyDeposited(ctx, c); err != nil {
		return nil, err
	}
	index := w.a.index.Loaded()
	if err := errors.Join(childrenFailed(index, w.Entry), tellOthers(w.a.ledger, index, w.Entry.Item, w.plan, w.scratch)); err != nil {
		return nil, err
	}
	return c, keepInputs(w.plan, c)
}

// guard turns a panic of f into an InternalError, with the stack in the step's log.
func (w *Work) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &InternalError{Cause: p}
			logPanic(w.a.ledger.Log, w.log, w.attempt.Item, w.attempt.Step, p)
		}
	}()
	return f()
}

// verifyDeposited verifies the source of an item that is deposited, or cleaned up.
func (w *Work) verifyDeposited(ctx context.Context, c *steps.Call) error {
	if !w.a.Deposits(w.plan) {
		return nil
	}
	return w.a.verifySource(ctx, *c.Decoded, c.Inventory)
}

// bare reports whether the step needs no scratch folder.
func (w *Work) bare() bool {
	return w.plan.Starts != "" || w.plan.Command == nil && w.a.robots[layout.Name(w.plan.Robot)].Bare
}

// seldom reports whether the robot of w's step makes its scratch folder itself, when it needs one.
func seldom(w *Work) bool {
	return w.plan.Command == nil && w.plan.Starts == "" && w.a.robots[layout.Name(w.plan.Robot)].Seldom
}

// newCall gives the robot's view of the item, by the history that the claim is in.
func (a *Attempts) newCall(ctx context.Context, w *Work) (*steps.Call, error) {
	ref, it := w.attempt, w.Entry.Item
	v, err := a.ledger.Store.Known() // the claim is in it
	if err != nil {
		return nil, err
	}
	rec, err := a.ledger.Read(a.ledger.Recent(v, ref.Item), ref.Item, ref.Workflow)
	if err != nil {
		return nil, err
	}
	defer a.ledger.Decoded.Keep(ref.Item, rec.Committed.Execution, rec.Execution)
	if in, is := state.Cancelled(rec.Execution, ref.Workflow, ref.Step, ref.Key); is { // before it was watched for
		return nil, &cancelledError{in}
	}
	if w.plan.Starts == "" {
		if err := a.checkBytes(ctx, rec); err != nil {
			return nil, err
		}
	}
	dir := layout.ItemDir(ref.Item)
	var inventory []byte
	if rec.Manifest.Inventory != nil {
		if inventory, err = ledger.ReadOptional(v, dir+"/"+layout.InventoryJSON); err != nil {
			return nil, err
		}
	}
	abs := a.ledger.Path(dir)
	if ref.given.places == nil { // a worker may ask again for what it was given
		ref.given.look(abs, ref.Step, rec.Committed.Manifest, rec.Committed.Execution)
	}
	content := filepath.Join(abs, layout.ContentDir)
	if ref.given.places[layout.ContentDir] == nil {
		content = folder.ContentOf(abs)
	}
	set := a.settings.Current().Settings
	store := set.StoreDir(a.ledger.Root)
	own := ownStore(w)
	if own != "" {
		store = settings.Below(a.ledger.Root, own)
	}
	var goals *steps.Goals
	if a.Deposits(w.plan) {
		if goals, err = a.goals(ctx, v, rec.Manifest, store, own); err != nil {
			return nil, err
		}
	}
	c := &steps.Call{
		Item: ref.Item, Collection: it.Collection, Label: it.Label, Workflow: ref.Workflow, Step: ref.Step, Attempt: ref.Key, With: w.plan.With,
		Folders: steps.Folders{Dir: abs, Source: filepath.Join(abs, layout.SourceDir), Content: content, Scratch: w.scratch, Store: store},
		Records: steps.Records{SourceKind: rec.Manifest.Source.Kind, Manifest: rec.Committed.Manifest, Decoded: &rec.Manifest, Inventory: inventory, Execution: rec.Committed.Execution},
		Means: steps.Means{Objects: a.recognition.ObjectsOf(rec.Manifest), Limits: set.ArchiveLimits(), Goals: goals, Target: opener(a.Targets, a.ledger.Root, set, store), Bag: set.Collection(it.Collection).Bag,
			Profiles: set.Profiles(a.ledger.Root, it.Collection), Looks: steps.Looks{Signatures: a.settings.Signatures, Views: set.ViewsDir(a.ledger.Root), LeaveOut: a.settings.Current().Book.LeavesOut()}, Log: w.log, Slog: a.ledger.Log, Now: a.ledger.Now, Version: a.ledger.Version},
	}
	c.Quality = qualities{a.rooms}.of(c, rec.Manifest)
	c.Tags = func(ctx context.Context) (map[string][]string, error) {
		return a.settings.Current().Tags.Of(ctx, rec.Committed.Manifest)
	}
	c.Spent = func(cpu time.Duration) { ref.CPU = cpu }
	c.Idled = func(idle time.Duration) { ref.Idle += idle }
	if a.ledger.Site.Name != "" && rec.Plan != nil {
		ref.Inputs = state.InputsOf(rec.Execution, rec.Plan, ref.Workflow, ref.Step, rec.Manifest.Source.Digest)
	}
	if w.plan.Command == nil && a.robots[layout.Name(w.plan.Robot)].Archives {
		err = a.addArchived(ctx, v, rec, &c.Records)
	}
	return c, err
}

// addArchived gives a call the records that go with a bag.
func (a *Attempts) addArchived(ctx context.Context, v gitstore.Reader, rec *ledger.Record, to *steps.Records) error {
	to.Plans = map[string][]byte{}
	for _, w := range rec.Execution.Workflows {
		plan, err := v.ReadFile(layout.PinnedPath(w.Digest))
		if err != nil {
			return fmt.Errorf("read %s: %w", layout.PinnedPath(w.Digest), err)
		}
		to.Plans[w.Digest] = plan
	}
	if a.Premis != nil {
		to.Premis = func(out io.Writer) error { return a.Premis(ctx, out, rec.Manifest.Item) }
	}
	return nil
}

// checkStore answers a *steps.Later when the store at dir is not the workspace's. own is
// the store as the step's parameters name it; "" is the one of the settings.
func (a *Attempts) checkStore(ctx context.Context, dir, own string) error {
	mark, err := a.ledger.Mark(ctx)
	if err != nil {
		return err
	}
	s := mounted.Store{Dir: dir, Mark: mark, Now: a.ledger.Now, Warn: a.ledger.Warn,
		Oldest: func() (layout.ItemID, bool) { return a.OldestDeposit(own) }}
	return s.Check()
}

// OldestDeposit finds the oldest item that this site deposited in the store named own; "" is that
// of the settings. A deposit that was reset since counts: its milestone stays reached. Where
// records cannot be read, what other sites deposited counts, too: no store is made.
func (a *Attempts) OldestDeposit(own string) (id layout.ItemID, ok bool) {
	v, unread := a.ledger.Store.Tip()
	for it := range a.index.Loaded().Items() {
		for r := range it.Runs {
			step := a.depositedBy(it, &it.Runs[r], own)
			if step != "" && (unread != nil || doneHere(a.ledger, v, it.ID, it.Runs[r].Name, step)) {
				return it.ID, true
			}
		}
	}
	return "", false
}

// depositedBy is the step by which a run deposited in the store; "": none did.
func (a *Attempts) depositedBy(it *queue.Item, run *queue.Run, own string) (step string) {
	for i := range run.Steps {
		planned := &run.Plan.Steps[i]
		if named, _ := planned.With["store"].(string); !a.Deposits(planned) || named != own {
			continue
		}
		if _, reached := it.Milestones[layout.Name(planned.Milestone)]; reached || run.Steps[i].Status == state.Completed {
			return planned.Name
		}
	}
	return ""
}

// doneHere reports whether an engine of this site, not of another that shares the history,
// completed a step.
func doneHere(l *ledger.Ledger, v gitstore.View, id layout.ItemID, run, step string) bool {
	site := l.Site
	if site == (state.Site{}) {
		return true // each store is its own
	}
	rec, err := l.Read(v, id, run)
	if err != nil {
		return true // is told of by the step that works on it
	}
	for _, attempt := range rec.Execution.Workflows[run].Steps[layout.Name(step)].Attempts {
		if attempt.State == state.Completed && site.Mine(state.SiteOf(attempt.Runner)) {
			return true
		}
	}
	return false
}

// Deposits reports whether a robot of the store does the step.
func (a *Attempts) Deposits(s *state.Step) bool {
	return s.Command == nil && a.robots[layout.Name(s.Robot)].Deposits
}

// ownStore is the store of its own that the step deposits in, or, of a step that looks for a deposit, the
// last one before it that does; "": that of the settings.
func ownStore(w *Work) (own string) {
	if own, _ = w.plan.With["store"].(string); slices.Contains(w.a.robots[layout.Name(w.plan.Robot)].Parameters, "store") {
		return own
	}
	if run := w.Entry.Item.Run(w.Entry.Run); run != nil {
		for i := range min(w.Entry.N, len(run.Plan.Steps)) {
			if step := &run.Plan.Steps[i]; slices.Contains(w.a.robots[layout.Name(step.Robot)].Parameters, "store") {
				own, _ = step.With["store"].(string)
			}
		}
	}
	return own
}
