package attempt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"sync/atomic"

	"bagpipe/engine/inbox"
	"bagpipe/engine/intake/recognition"
	"bagpipe/engine/ledger"
	"bagpipe/engine/recognise"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"

	"golang.org/x/sync/errgroup"
)

// The rules are: the children of an attempt are all planned and digested before the
// first of them is registered. Then, some hundred at a time, their content is moved
// from scratch to their items' folders, synced, and each is committed, register
// completed; the attempt's end comes after all of them. Each of these commits finds the
// attempt in progress, so that one that lost its claim registers nothing.
//
// A child's identifier follows from the parent, the run, the step and its name. After a
// crash, or a failure halfway, the step runs again, finds those that are registered and
// registers the rest. One whose content is another now fails the step: what was
// registered stays as it is.
//
//	items/3/f/a/9/ID/.children.WORKFLOW.N.STEP.ATTEMPT   identifiers, one a line
//
// is in the parent's folder from before the first move until all are committed. What a
// crash left of children that are not committed is removed by the next attempt, which
// finds them there (sweep).

const (
	childrenPrefix = ".children."

	// maxChildren bounds what one attempt makes: an archive may name millions of files.
	maxChildren = 100_000
	// maxGenerations bounds children of children, as an archive may hold itself.
	maxGenerations = 8
	// childrenAtOnce share their syncs and a group of commits.
	childrenAtOnce = 256
)

// child is a file or folder in scratch on its way to being an item.
type child struct {
	steps.Child
	id        layout.ItemID
	taken     inbox.Taken
	admission recognition.Admission
	sum       inbox.Sum
	there     bool // registered by an attempt before
}

// children are the items that one attempt's result makes.
type children struct {
	rooms
	attempt *claimed
	parent  layout.Manifest
	scratch string
}

// multiply registers the children of the attempt's result, and notes how many they
// are. Another attempt may call it again after a crash or an error at any point of it.
func (w *Work) multiply(ctx context.Context) error {
	if len(w.result.Children) == 0 {
		return nil
	}
	cs := &children{rooms: w.a.rooms, attempt: w.attempt, scratch: w.scratch}
	if err := cs.sweep(ctx); err != nil {
		return err
	}
	planned, err := cs.plan(ctx, w.result.Children)
	if err != nil {
		return err
	}
	var fresh []*child
	before := 0
	for i := range planned {
		switch {
		case !planned[i].there:
			fresh = append(fresh, &planned[i])
		case !w.attempt.told[planned[i].id]:
			before++
		}
	}
	w.attempt.Children += before
	if err := cs.register(ctx, fresh); err != nil {
		return err
	}
	if before > 0 {
		fmt.Fprintf(w.log, "%d of %d children had been registered before\n", before, len(planned))
	}
	return nil
}

// readParent reads the manifest of the children's parent.
func (cs *children) readParent() error {
	v, err := cs.ledger.Store.Tip()
	if err != nil {
		return err
	}
	data, err := cs.ledger.Recent(v, cs.attempt.Item).ReadFile(layout.ItemDir(cs.attempt.Item) + "/" + layout.ManifestJSON)
	if err != nil {
		return err
	}
	cs.parent, err = layout.DecodeManifest(data)
	return err
}

func generation(m layout.Manifest) int {
	if m.Parent == nil {
		return 0
	}
	return m.Parent.Generation
}

// plan recognises and digests all children, before anything is changed.
func (cs *children) plan(ctx context.Context, handed []steps.Child) ([]child, error) {
	if err := cs.readParent(); err != nil {
		return nil, err
	}
	if n := generation(cs.parent) + 1; n > maxGenerations {
		return nil, steps.ContentFailure("it is the child of a child, and so on, %d deep; children of it would be deeper than %d", n-1, maxGenerations)
	}
	if len(handed) > maxChildren {
		return nil, steps.ContentFailure("%d children; a step makes at most %d", len(handed), maxChildren)
	}
	if err := cs.folder.Space.Low(); err != nil {
		return nil, &steps.Later{Reason: err.Error()}
	}
	planned, seen := make([]child, len(handed)), make(map[layout.ItemID]bool, len(handed))
	for i, c := range handed {
		planned[i] = child{Child: c, id: layout.ChildID(cs.attempt.Item, cs.attempt.Workflow, cs.attempt.Step, c.Name)}
		if c.Name == "" || seen[planned[i].id] {
			return nil, steps.SystemFailure("the robot made child %q twice", layout.EncodePath(c.Name))
		}
		seen[planned[i].id] = true
	}
	errs := make([]error, len(planned))
	var planning errgroup.Group
	planning.SetLimit(2 * childrenPlanned)
	for i := range planned {
		planning.Go(func() error { errs[i] = cs.planChild(ctx, &planned[i]); return nil })
	}
	_ = planning.Wait()
	for i, err := range errs { // the first in order is told
		if err != nil {
			return nil, fmt.Errorf("child %s: %w", layout.EncodePath(planned[i].Name), err)
		}
	}
	return planned, nil
}

// childrenPlanned bounds the files open while children are digested.
const childrenPlanned = 8

// planChild gives a child what a drop has after its take: admission and digest.
func (cs *children) planChild(ctx context.Context, c *child) (err error) {
	from, err := layout.ParseRelPath(string(c.From))
	if err != nil {
		return steps.SystemFailure("%w", err)
	}
	c.taken = inbox.Taken{
		ID: c.id, Path: filepath.Join(cs.scratch, filepath.FromSlash(string(from))), Name: path.Base(string(from)),
		Collection: layout.Name(cmp.Or(string(c.Collection), string(cs.parent.Collection))),
		Ticket:     inbox.Ticket{Chosen: c.Collection != "", Workflow: c.Workflow, Lane: layout.Name(cmp.Or(string(c.Lane), string(cs.parent.Lane)))},
	}
	if c.Collection != "" && c.Collection != cs.parent.Collection {
		if err := cs.settings.CheckCollection(c.Collection); err != nil {
			return steps.SystemFailure("%w", err)
		}
	}
	if c.Lane != "" {
		if err := cs.settings.Current().Settings.CheckLane(string(c.Lane)); err != nil {
			return steps.SystemFailure("%w", err)
		}
	}
	refused := ""
	if c.admission, refused, err = cs.recognition.Plan(ctx, c.taken, cs.above(c)...); err != nil {
		return err
	}
	if refused != "" {
		return steps.SystemFailure("%s", refused)
	}
	var bad *inbox.BadError
	if c.sum, err = inbox.Digest(ctx, c.taken.Path); errors.As(err, &bad) {
		return steps.SystemFailure("%w", err)
	}
	if err != nil {
		return err
	}
	return cs.find(ctx, c)
}

// above gives the folders that a child lay in, as the rules know them.
func (cs *children) above(c *child) (all []recognise.Folder) {
	for _, dir := range c.Above {
		all = append(all, recognise.Folder{Path: dir, Name: filepath.Base(dir)})
	}
	if len(all) > 0 {
		all[len(all)-1].Name = cs.parent.Source.Name
	}
	return all
}

// find notes whether an attempt before registered the child. One with other content now is
// refused.
func (cs *children) find(ctx context.Context, c *child) error {
	a := cs.attempt
	if err := cs.guard.Look(ctx, c.id); err != nil {
		return err
	}
	v, err := cs.ledger.Store.Tip()
	if err != nil {
		return err
	}
	f, err := ledger.StandingOf(cs.ledger, v, c.id)
	if err != nil || f.Manifest == nil {
		return err
	}
	m, err := layout.DecodeManifest(f.Manifest)
	switch {
	case err != nil:
		return err
	case m.Parent == nil || m.Parent.Item != a.Item || m.Parent.Workflow != a.Workflow || m.Parent.Step != a.Step || m.Parent.Name != layout.EncodePath(c.Name):
		return steps.SystemFailure("its identifier %s is another item's already; give it another name", c.id)
	case m.Source.Digest != c.sum.Digest:
		return steps.SystemFailure("it was registered before, as item %s, with other content (%s then, %s now); a step that runs again must make the same children, or name them otherwise",
			c.id, m.Source.Digest, c.sum.Digest)
	}
	c.there = true
	return nil
}

// register makes items of the children that are none yet.
func (cs *children) register(ctx context.Context, fresh []*child) error {
	if len(fresh) == 0 {
		return nil
	}
	var ids bytes.Buffer
	for _, c := range fresh {
		ids.WriteString(string(c.id) + "\n")
	}
	if err := disk.WriteFile(cs.journal(), ids.Bytes(), 0o666); err != nil {
		return fmt.Errorf("note the children: %w", err)
	}
	fence := &fence{a: cs.attempt.AttemptRef}
	for part := range slices.Chunk(fresh, childrenAtOnce) {
		if err := cs.folder.Space.Low(); err != nil {
			return &steps.Later{Reason: err.Error()}
		}
		if err := cs.move(part); err != nil {
			return err
		}
		var made atomic.Int64
		var committing errgroup.Group
		for _, c := range part {
			committing.Go(func() error {
				err := cs.commit(ctx, c, fence)
				if err == nil {
					made.Add(1)
				}
				return err
			})
		}
		err := committing.Wait()
		cs.attempt.Children += int(made.Load())
		if err != nil {
			return err
		}
	}
	return removeJournal(cs.journal())
}

// move puts the content of children in its place, durably.
func (cs *children) move(part []*child) error {
	var moving errgroup.Group
	moving.SetLimit(childrenPlanned)
	for _, c := range part {
		moving.Go(func() error { return cs.moveChild(c) })
	}
	if err := moving.Wait(); err != nil {
		return err
	}
	if err := disk.SyncFS(cs.ledger.Path(layout.ItemsDir)); err != nil {
		return fmt.Errorf("sync the children: %w", err)
	}
	return nil
}

func (cs *children) journal() string {
	a := cs.attempt
	return filepath.Join(cs.ledger.Path(layout.ItemDir(a.Item)), childrenPrefix+a.Workflow+"."+string(a.Step)+"."+a.Key.String())
}
