package attempt

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"sync/atomic"

	"bagpipe/engine/folder"
	"bagpipe/engine/inbox"
	"bagpipe/engine/intake/recognition"
	"bagpipe/engine/ledger"
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
// finds them there (sweepChildren).

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

// multiply registers the children of the attempt's result, and notes how many they
// are. It may be called again, by another attempt, after a crash or an error at any
// point of it.
func (w *Work) multiply() error {
	if len(w.result.Children) == 0 {
		return nil
	}
	parent, err := w.e.parentOf(w.attempt)
	if err != nil {
		return err
	}
	if err := w.e.sweepChildren(w.ctx, w.attempt); err != nil {
		return err
	}
	children, err := w.planChildren(parent)
	if err != nil {
		return err
	}
	var fresh []*child
	for i := range children {
		if !children[i].there {
			fresh = append(fresh, &children[i])
		}
	}
	w.attempt.Children = len(children) - len(fresh)
	if err := w.registerChildren(parent, fresh); err != nil {
		return err
	}
	if n := len(children) - len(fresh); n > 0 && w.log != nil {
		fmt.Fprintf(w.log, "%d of %d children had been registered before\n", n, len(children))
	}
	return nil
}

// parentOf reads who the children's parent is.
func (at *Attempts) parentOf(a *folder.Attempt) (layout.Manifest, error) {
	v, err := at.ledger.Store.Tip()
	if err != nil {
		return layout.Manifest{}, err
	}
	data, err := at.ledger.Recent(v, a.Item).ReadFile(layout.ItemDir(a.Item) + "/" + layout.ManifestJSON)
	if err != nil {
		return layout.Manifest{}, err
	}
	return layout.DecodeManifest(data)
}

func generation(m layout.Manifest) int {
	if m.Parent == nil {
		return 0
	}
	return m.Parent.Generation
}

// planChildren recognises and digests all children, before anything is changed.
func (w *Work) planChildren(parent layout.Manifest) ([]child, error) {
	handed := w.result.Children
	if n := generation(parent) + 1; n > maxGenerations {
		return nil, steps.ContentFailure("it is the child of a child, and so on, %d deep; children of it would be deeper than %d", n-1, maxGenerations)
	}
	if len(handed) > maxChildren {
		return nil, steps.ContentFailure("%d children; a step makes at most %d", len(handed), maxChildren)
	}
	if err := w.e.folder.Space.Low(); err != nil {
		return nil, &steps.Later{Reason: err.Error()}
	}
	children, seen := make([]child, len(handed)), make(map[layout.ItemID]bool, len(handed))
	for i, c := range handed {
		children[i] = child{Child: c, id: layout.ChildID(w.attempt.Item, w.attempt.Workflow, w.attempt.Step, c.Name)}
		if c.Name == "" || seen[children[i].id] {
			return nil, steps.SystemFailure("the robot made child %q twice", layout.EncodePath(c.Name))
		}
		seen[children[i].id] = true
	}
	errs := make([]error, len(children))
	var planning errgroup.Group
	planning.SetLimit(2 * childrenPlanned)
	for i := range children {
		planning.Go(func() error { errs[i] = w.planChild(parent, &children[i]); return nil })
	}
	_ = planning.Wait()        // the errors are told in order
	for i, err := range errs { // the first in order is told
		if err != nil {
			return nil, fmt.Errorf("child %s: %w", layout.EncodePath(children[i].Name), err)
		}
	}
	return children, nil
}

// childrenPlanned bounds the files open while children are digested.
const childrenPlanned = 8

func (w *Work) planChild(parent layout.Manifest, c *child) (err error) {
	from, err := layout.ParseRelPath(string(c.From))
	if err != nil {
		return steps.SystemFailure("%w", err)
	}
	c.taken = inbox.Taken{
		ID: c.id, Path: filepath.Join(w.scratch, filepath.FromSlash(string(from))), Name: path.Base(string(from)),
		Collection: layout.Name(cmp.Or(string(c.Collection), string(parent.Collection))),
		Ticket:     inbox.Ticket{Chosen: c.Collection != "", Workflow: c.Workflow, Lane: layout.Name(cmp.Or(string(c.Lane), string(parent.Lane)))},
	}
	e := w.e
	if c.Collection != "" && c.Collection != parent.Collection {
		if err := e.settings.CheckCollection(c.Collection); err != nil {
			return steps.SystemFailure("%w", err)
		}
	}
	if c.Lane != "" {
		if err := e.settings.Current().Settings.CheckLane(string(c.Lane)); err != nil {
			return steps.SystemFailure("%w", err)
		}
	}
	refused := ""
	if c.admission, refused, err = e.recognition.Plan(w.ctx, c.taken); err != nil {
		return err
	}
	if refused != "" {
		return steps.SystemFailure("%s", refused)
	}
	var bad *inbox.BadError
	if c.sum, err = inbox.Digest(w.ctx, c.taken.Path); errors.As(err, &bad) {
		return steps.SystemFailure("%w", err)
	}
	if err != nil {
		return err
	}
	return w.findChild(c)
}

// findChild looks whether a child is registered, and is what it was.
func (w *Work) findChild(c *child) error {
	e, a := w.e, w.attempt
	if err := e.guard.Look(w.ctx, c.id); err != nil {
		return err
	}
	v, err := e.ledger.Store.Tip()
	if err != nil {
		return err
	}
	data, err := ledger.ReadOptional(v, layout.ItemDir(c.id)+"/"+layout.ManifestJSON)
	if err != nil || data == nil {
		return err
	}
	m, err := layout.DecodeManifest(data)
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

// registerChildren makes items of those that are none yet.
func (w *Work) registerChildren(parent layout.Manifest, fresh []*child) error {
	if len(fresh) == 0 {
		return nil
	}
	journal := w.e.childrenJournal(w.attempt)
	var ids bytes.Buffer
	for _, c := range fresh {
		ids.WriteString(string(c.id) + "\n")
	}
	if err := disk.WriteFile(journal, ids.Bytes(), 0o666); err != nil {
		return fmt.Errorf("note the children: %w", err)
	}
	fence := &fence{a: w.attempt}
	for at := 0; at < len(fresh); at += childrenAtOnce {
		part := fresh[at:min(at+childrenAtOnce, len(fresh))]
		if err := w.e.folder.Space.Low(); err != nil {
			return &steps.Later{Reason: err.Error()}
		}
		if err := w.e.moveChildren(part); err != nil {
			return err
		}
		var made atomic.Int64
		var committing errgroup.Group
		for _, c := range part {
			committing.Go(func() error {
				err := w.e.commitChild(w.ctx, parent, c, fence)
				if err == nil {
					made.Add(1)
				}
				return err
			})
		}
		err := committing.Wait()
		w.attempt.Children += int(made.Load())
		if err != nil {
			return err
		}
	}
	return removeJournal(journal)
}

// moveChildren puts the content of children in its place, durably.
func (at *Attempts) moveChildren(part []*child) error {
	var moving errgroup.Group
	moving.SetLimit(childrenPlanned)
	for _, c := range part {
		moving.Go(func() error { return at.moveChild(c) })
	}
	if err := moving.Wait(); err != nil {
		return err
	}
	if err := disk.SyncFS(at.ledger.Path(layout.ItemsDir)); err != nil {
		return fmt.Errorf("sync the children: %w", err)
	}
	return nil
}

func (at *Attempts) childrenJournal(a *folder.Attempt) string {
	return filepath.Join(at.ledger.Path(layout.ItemDir(a.Item)), childrenPrefix+a.Workflow+"."+string(a.Step)+"."+a.Key.String())
}
