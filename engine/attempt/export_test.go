package attempt

import (
	"context"
	"os"
	"strings"

	"bagpipe/engine/queue"
	"bagpipe/layout"
	"bagpipe/steps"
)

// What bounds children, and how their journals are named.
const (
	ChildrenPrefix = childrenPrefix
	MaxChildren    = maxChildren
	MaxGenerations = maxGenerations
	ChildrenAtOnce = childrenAtOnce
)

// Begin claims a step that was taken from the queue.
func (at *Attempts) Begin(ctx context.Context, entry queue.Entry) error {
	_, err := at.begin(ctx, entry)
	return err
}

// Claimed claims a step that was taken from the queue, and plans what its robot does.
func (at *Attempts) Claimed(ctx context.Context, entry queue.Entry, done func(*Work)) (*Work, bool) {
	w := at.NewWork(ctx, entry, false, nil, done)
	if !w.claim(ctx) {
		return w, false
	}
	w.plan, w.ran, w.started = w.planStep(), true, at.ledger.Now()
	return w, true
}

// Call does what the step's robot does.
func (w *Work) Call() (err error) {
	w.result, err = w.call(w.ctx)
	return err
}

// EndInPanic ends the attempt as if its outputs' publishing had panicked.
func (w *Work) EndInPanic(cause any) {
	w.Err = w.guard(func() error { panic(cause) })
	w.finish()
}

// Lose gives the attempt up, as whoever takes its engine for dead does.
func (w *Work) Lose() error {
	a := w.attempt
	return w.e.abandon(w.ctx, a.Item, a.Workflow, a.Step, a.Key, "a test")
}

func (w *Work) Release()                        { w.release() }
func (w *Work) Publish() error                  { return w.publish() }
func (w *Work) Multiply() error                 { return w.multiply() }
func (w *Work) Children() []steps.Child         { return w.result.Children }
func (w *Work) HandOver(children []steps.Child) { w.result.Children = children }

// PutOut puts the outputs alone in their place.
func (w *Work) PutOut() error { return w.e.folder.Publish(w.attempt, w.scratch, w.result) }

// Planned are the children of an attempt, of which none is registered.
type Planned struct {
	w      *Work
	parent layout.Manifest
	all    []*child
}

// Plan plans the children that the robot handed over.
func (w *Work) Plan() (*Planned, error) {
	parent, err := w.e.parentOf(w.attempt)
	if err != nil {
		return nil, err
	}
	children, err := w.planChildren(parent)
	p := &Planned{w: w, parent: parent}
	for i := range children {
		p.all = append(p.all, &children[i])
	}
	return p, err
}

// Register registers the first n of them.
func (p *Planned) Register(n int) error { return p.w.registerChildren(p.parent, p.all[:n]) }

// Note writes the journal of all of them.
func (p *Planned) Note() error {
	var ids []string
	for _, c := range p.all {
		ids = append(ids, string(c.id))
	}
	return os.WriteFile(p.w.e.childrenJournal(p.w.attempt), []byte(strings.Join(ids, "\n")+"\n"), 0o644)
}

// Move moves the content of all of them.
func (p *Planned) Move() error { return p.w.e.moveChildren(p.all) }

// Commit commits one of them.
func (p *Planned) Commit(i int) error {
	return p.w.e.commitChild(p.w.ctx, p.parent, p.all[i], &fence{a: p.w.attempt})
}

// Len counts them.
func (p *Planned) Len() int { return len(p.all) }
