package attempt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/recognise"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// checkBytes refuses to let a robot at an item whose bytes are elsewhere.
func (a *Attempts) checkBytes(ctx context.Context, rec *ledger.Record) error {
	why, err := a.folder.Missing(ctx, rec.Manifest, rec.Execution)
	if err != nil {
		return steps.SystemFailure("look for the item's bytes: %w", err)
	}
	if why != "" {
		return steps.SystemFailure("%s, then the step can be tried again", why)
	}
	return nil
}

// verifySource fails an item whose source is not what was taken in: a copy that went on
// after its drop had settled, a robot or a person wrote into it.
func (a *Attempts) verifySource(ctx context.Context, m layout.Manifest, inventory []byte) error {
	if m.Source.Place != nil {
		return placeLater(ctx, a, m)
	}
	change, err := a.folder.SourceChanged(ctx, m, inventory)
	if err != nil {
		return steps.SystemFailure("verify the source: %w", err)
	}
	if change == "" {
		return nil
	}
	return steps.ContentFailure("%s", folder.ChangeText(m, change))
}

// checkChoice wants a route's result to name steps of those it chooses from.
func checkChoice(s *state.Step, res steps.Result) error {
	if s.Choose == nil && res.Choose != nil {
		return steps.SystemFailure("its result chooses steps, and the step has no choose in its definition")
	}
	if s.Choose != nil && res.Choose == nil && res.Status != steps.Skipped {
		return steps.SystemFailure("its result does not say, under choose, which of %s are done", strings.Join(s.Choose, ", "))
	}
	for _, name := range res.Choose {
		if !slices.Contains(s.Choose, string(name)) {
			return steps.SystemFailure("its result chooses %q; it may choose from %s", name, strings.Join(s.Choose, ", "))
		}
	}
	return nil
}

// checkOpen refuses to begin a step of an item whose content is being replaced, or of
// a workflow that is over with a version before: its claim must be taken already.
func (a *Attempts) checkOpen(rec *ledger.Record, workflow string, step layout.Name) error {
	m := rec.Manifest
	illegal := &state.IllegalError{Event: "claim", Item: m.Item, Workflow: workflow, Step: step}
	if a.folder.HasVersionDir(m.Item, m.Version) {
		if p := m.Source.Place; p != nil && a.PlaceMoved != nil { // of a scan that was killed: the next look ends it
			a.PlaceMoved(*p)
		}
		illegal.Reason = fmt.Sprintf("version %d of the item is being taken in", m.Version+1)
		return illegal
	}
	if why := ledger.OfBefore(rec, workflow); why != nil {
		illegal.Reason, illegal.Remedies = why.Text, why.Remedies
		return illegal
	}
	return nil
}

// openPlace lets the robot see an object that stays in a catalog. One that is not as it was
// catalogued is looked at again first, and the step waits.
func (w *Work) openPlace(ctx context.Context, c *steps.Call) (err error) {
	m := *c.Decoded
	if m.Source.Place == nil || w.plan.Starts != "" {
		return nil
	}
	w.attempt.placed = m
	if err := w.checkPlace(ctx); err != nil {
		return err
	}
	if w.attempt.opened, err = w.a.folder.OpenPlace(ctx, m, w.scratch, c.Limits); err != nil {
		return orBarred(w, steps.ContentFailure("open %s: %w", m.Source.Place.Path, err))
	}
	o := w.attempt.opened
	c.Place, c.Source, c.Content, c.Beside = o.Place, o.Source, o.Content, o.Beside
	return nil
}

// checkPlace answers a *steps.Later where the object in place is not as it was catalogued, as
// what a robot made of it is of no state that is recorded, and a *goneError where it is gone.
func (w *Work) checkPlace(ctx context.Context) error {
	if w.attempt.placed.Source.Place == nil {
		return nil
	}
	return placeLater(ctx, w.a, w.attempt.placed)
}

// orBarred answers a *steps.Later for the failure of a step that may not read its object in place: that is no fault of the
// object, and whoever runs the workspace mends it.
func orBarred(w *Work, failure error) error {
	if failure == nil || w.attempt.placed.Source.Place == nil {
		return failure
	}
	if barred := w.a.folder.Barred(w.attempt.placed); barred != "" {
		return &steps.Later{Reason: barred}
	}
	return failure
}

// verifyCatalogued verifies the source, and holds what was inventoried of an object in place against the digest that it was catalogued
// with: a push may have its record name the place of another object, and where times alone tell of changes, its bytes may be others.
func verifyCatalogued(ctx context.Context, w *Work, m layout.Manifest) error {
	ofOutput := slices.ContainsFunc(w.result.Outputs, func(o steps.Output) bool { return o.To == layout.ContentDir })
	if err := w.a.verifySource(ctx, m, nil); err != nil || m.Source.Place == nil || ofOutput {
		return err
	}
	why, err := w.attempt.opened.NotCatalogued(m, w.result.Inventory)
	if err != nil {
		return steps.SystemFailure("look at the object in place: %w", err)
	}
	if why == "" {
		return nil
	}
	p := m.Source.Place
	if w.a.PlaceMoved != nil {
		w.a.PlaceMoved(*p)
	}
	return steps.SystemFailure("%s in catalog %s %s; once that object is there, or the record's place is put right, the step can be tried again", p.Path, p.Catalog, why)
}

func placeLater(ctx context.Context, a *Attempts, m layout.Manifest) error {
	if gone := a.folder.PlaceGone(m); gone != "" {
		if a.PlaceMoved != nil {
			a.PlaceMoved(*m.Source.Place)
		}
		return &goneError{gone}
	}
	why, err := a.folder.PlaceChanged(ctx, m)
	if err != nil {
		if path, _, e := a.folder.PlaceOf(m); e == nil {
			if _, barred := os.Lstat(path); barred != nil && !errors.Is(barred, fs.ErrNotExist) { // the root, or a folder above the object
				return &steps.Later{Reason: fmt.Sprintf("%s in catalog %s cannot be reached: %v; is its root there, and may it be read?", m.Source.Place.Path, m.Source.Place.Catalog, errors.Unwrap(barred))}
			}
		}
		return steps.SystemFailure("look at the object in place: %w", err)
	}
	if why == "" {
		return nil
	}
	p := m.Source.Place
	if a.PlaceMoved != nil {
		a.PlaceMoved(*p)
	}
	then := "; a scan takes note of what changed or moved"
	if why == folder.NotThere {
		then = a.folder.WhyNotThere(m)
	}
	return &steps.Later{Reason: p.Path + " in catalog " + string(p.Catalog) + " " + why + then}
}

// goneError fails a step whose object is gone from its catalog, or whose catalog was removed.
type goneError struct{ text string }

func (g *goneError) Error() string { return g.text + "; once it is back the step can be tried again" }

// goneTries is how often a step is tried again whose object is gone: it may be on its way elsewhere.
const goneTries = 5

// retrying is how often a step that failed so is tried again by itself, and the pause after the
// failures-th failure in a row.
func retrying(a *Attempts, s *state.Step, failure error, failures int) (retries int, pause time.Duration) {
	var gone *goneError
	if errors.As(failure, &gone) {
		return max(s.Retries, goneTries), a.settings.Current().Settings.LaterPause()
	}
	return s.Retries, a.backoff(s, failures)
}

// qualities is what attempts find of the quality of objects.
type qualities struct{ rooms }

// of checks the content of a call by the rules in force.
func (a qualities) of(c *steps.Call, m layout.Manifest) func(context.Context) ([]steps.Check, error) {
	return func(ctx context.Context) (all []steps.Check, err error) {
		name, err := layout.DecodePath(m.Source.Name)
		if err != nil {
			return nil, err
		}
		now := a.settings.Current()
		if len(now.Book.Broken) > 0 {
			return nil, &steps.Later{Reason: fmt.Sprintf("%v; until that is put right, nobody knows which checks the rules ask for", now.Book.Broken[0])}
		}
		is := recognise.Candidate{Path: c.Content, Name: name, Collection: m.Collection}
		if len(c.Beside) > 0 {
			is.Path, is.Files = filepath.Dir(c.Place), append([]string{filepath.Base(c.Place)}, c.Beside...)
		}
		checked, err := now.Book.Quality(ctx, recognise.Subject{Candidate: is, Manifest: c.Manifest},
			recognise.Options{Limits: now.Settings.ArchiveLimits()}, a.ledger.Now())
		for _, one := range checked {
			all = append(all, steps.Check(one))
		}
		return all, err
	}
}

// note records what an attempt found of the object's quality, with its end: its checks,
// and, of a step that failed for the content and told no check that did, that. Checks that the
// rules ask for and that nobody has made are not reached. done: the step ended well.
func (a qualities) note(c *claimed, done bool, broken string) func(*ledger.Record, map[string][]byte) error {
	return func(rec *ledger.Record, files map[string][]byte) error {
		dir := layout.ItemDir(c.Item) + "/"
		was, err := ledger.ReadOptional(rec.At, dir+layout.QualityJSON)
		if err != nil || was == nil && len(c.checks) == 0 && broken == "" {
			return err
		}
		manifest := rec.Committed.Manifest
		if files[dir+layout.ManifestJSON] != nil {
			manifest = files[dir+layout.ManifestJSON]
		}
		asked := a.settings.Current().Book.QualityChecks(manifest, a.ledger.Now())
		q := layout.Quality{}
		if was != nil {
			if q, err = layout.DecodeQuality(was); err != nil {
				return err
			}
		}
		robot := rec.Plan.Step(c.Step).Robot
		forgot := false
		if robot == "quality" && (done || len(c.checks) > 0 || broken != "") { // it tells all that the rules ask for now
			forgot = q.ForgetRules(c.workflow(), string(c.Step))
		}
		decided := ledger.NoteDecisions(&q, rec.Execution) // that came by a push
		mended := done && c.toldOfItself(q)
		if !forgot && !decided && len(c.checks) == 0 && !mended && (broken == "" || len(asked) == 0 && was == nil) {
			return nil
		}
		if was == nil {
			if err := a.noteFailed(&q, rec, c.AttemptRef); err != nil {
				return err
			}
		}
		q.Item, q.Version = c.Item, rec.Manifest.Version
		for _, one := range asked {
			if !q.Has(one.Rule, one.ID) {
				q.Note(one.ID, layout.QualityCheck{Level: one.Level, Result: one.Result, Rule: one.Rule})
			}
		}
		c.noteIn(&q, robot, broken, mended, a.ledger)
		return ledger.PutQuality(q, manifest, files)
	}
}

// workflow is that of the step, without the instance's number.
func (c *claimed) workflow() string {
	name, _ := state.Instance(c.Workflow)
	return name
}

// toldOfItself reports whether a check under the step's own name stands, of an attempt that failed.
func (c *claimed) toldOfItself(q layout.Quality) bool {
	for id, was := range q.Checks {
		if path.Base(id) == string(c.Step) && was.Rule == "" && was.MadeBy(c.workflow(), string(c.Step)) {
			return !slices.ContainsFunc(c.checks, func(one steps.Check) bool { return one.ID == string(c.Step) })
		}
	}
	return false
}

// noteIn adds what the attempt found.
func (c *claimed) noteIn(q *layout.Quality, robot, broken string, mended bool, l *ledger.Ledger) {
	made := layout.QualityCheck{At: l.Now(), By: string(c.Step) + "." + c.Key.String(), Workflow: c.workflow()}
	if len(c.checks) > 0 {
		q.ForgetUnlisted(made.Workflow, string(c.Step))
	}
	for _, one := range c.checks {
		of := made
		of.Level, of.Result, of.Text, of.Rule = one.Level, one.Result, ledger.Printable(one.Text), one.Rule
		q.Note(one.ID, of)
	}
	told := slices.ContainsFunc(c.checks, func(one steps.Check) bool { return one.Result == layout.QualityFail })
	of := made
	of.Level, of.Result, of.Text = levelOf(robot), layout.QualityFail, ledger.OneLine(broken, ledger.MaxLabel)
	if mended {
		of.Result = layout.QualityPass
	}
	if mended || broken != "" && !told {
		q.Note(string(c.Step), of)
	}
}

// levelOf is the level of what a step is recorded by that failed for the content.
func levelOf(robot string) string {
	if robot == "unpack" {
		return "total.usable"
	}
	return "data.valid"
}

// noteFailed adds to a new record what failed for the content before anything was asked or told of the object: else it
// would pass over that.
func (a qualities) noteFailed(q *layout.Quality, rec *ledger.Record, now layout.AttemptRef) error {
	for run, w := range rec.Execution.Workflows {
		if ledger.OfBefore(rec, run) != nil {
			continue
		}
		for name, s := range w.Steps {
			if s.Status != state.Failed || run == now.Workflow && name == now.Step {
				continue
			}
			key := slices.MaxFunc(slices.Collect(maps.Keys(s.Attempts)), layout.AttemptKey.Compare)
			last := s.Attempts[key]
			if last.State != state.Failed || last.Kind != state.ContentKind {
				continue
			}
			plan, err := a.ledger.PinnedPlan(rec.At, w.Digest)
			if err != nil {
				return err
			}
			if step := plan.Step(name); step != nil {
				q.Note(string(name), layout.QualityCheck{Level: levelOf(step.Robot), Result: layout.QualityFail, Text: ledger.OneLine(last.Message, ledger.MaxLabel),
					At: last.Ended, By: string(name) + "." + key.String(), Workflow: w.Name})
			}
		}
	}
	return nil
}

// contentText is why a step failed for the content, as its attempt says it; "" where it failed for anything else.
func contentText(err error) string {
	if steps.KindOf(err) != steps.Content {
		return ""
	}
	return ledger.Clip(ledger.Printable(err.Error()), ledger.MaxMessage)
}
