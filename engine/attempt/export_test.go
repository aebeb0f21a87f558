package attempt

import (
	"context"
	"os"
	"strings"

	"bagpipe/engine/queue"
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
func (a *Attempts) Begin(ctx context.Context, entry queue.Entry) error {
	_, err := a.begin(ctx, entry, here(a.ledger), true)
	return err
}

// Claimed claims a step that was taken from the queue, and plans what its robot does.
func (a *Attempts) Claimed(ctx context.Context, entry queue.Entry, done func(*Work)) (*Work, bool) {
	w := a.NewWork(entry, func() bool { return true }, done)
	if !w.claim(ctx) {
		return w, false
	}
	w.attempt.started = a.ledger.Now()
	return w, true
}

// Call does what the step's robot does.
func (w *Work) Call(ctx context.Context) (err error) {
	w.result, err = w.call(ctx, nil)
	return err
}

// EndInPanic ends the attempt as if its outputs' publishing had panicked.
func (w *Work) EndInPanic(ctx context.Context, cause any) {
	w.Err = w.guard(func() error { panic(cause) })
	w.finish(ctx)
}

// Lose gives the attempt up, as whoever takes its engine for dead does.
func (w *Work) Lose(ctx context.Context) error {
	return abandon(ctx, w.a.ledger, w.attempt.AttemptRef, "a test")
}

func (w *Work) Release()                           { w.release() }
func (w *Work) Publish(ctx context.Context) error  { return w.publish(ctx) }
func (w *Work) Multiply(ctx context.Context) error { return w.multiply(ctx) }
func (w *Work) Children() []steps.Child            { return w.result.Children }
func (w *Work) HandOver(children []steps.Child)    { w.result.Children = children }

// PutOut puts the outputs alone in their place.
func (w *Work) PutOut() error {
	return w.a.folder.Publish(w.attempt.AttemptRef, w.scratch, w.writing, w.result)
}

// Planned are the children of an attempt, of which none is registered.
type Planned struct {
	cs  *children
	all []*child
}

// Plan plans the children that the robot handed over.
func (w *Work) Plan(ctx context.Context) (*Planned, error) {
	p := &Planned{cs: &children{rooms: w.a.rooms, attempt: w.attempt, scratch: w.scratch}}
	planned, err := p.cs.plan(ctx, w.result.Children)
	for i := range planned {
		p.all = append(p.all, &planned[i])
	}
	return p, err
}

// Register registers the first n of them.
func (p *Planned) Register(ctx context.Context, n int) error { return p.cs.register(ctx, p.all[:n]) }

// Note writes the journal of all of them.
func (p *Planned) Note() error {
	var ids []string
	for _, c := range p.all {
		ids = append(ids, string(c.id))
	}
	return os.WriteFile(p.cs.journal(), []byte(strings.Join(ids, "\n")+"\n"), 0o644)
}

// Move moves the content of all of them.
func (p *Planned) Move() error { return p.cs.move(p.all) }

// Commit commits one of them.
func (p *Planned) Commit(ctx context.Context, i int) error {
	return p.cs.commit(ctx, p.all[i], &fence{a: p.cs.attempt.AttemptRef})
}

// Len counts them.
func (p *Planned) Len() int { return len(p.all) }
