package remote

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// departing is an attempt whose preparing takes as long as the test says.
type departing struct {
	lending
	preparing, goOn chan struct{}
	busy            atomic.Bool
	left            atomic.Int32
	leftBusy        atomic.Bool
}

func (w *departing) Prepare(context.Context) (*steps.Call, *state.Step, error) {
	w.busy.Store(true)
	defer w.busy.Store(false)
	close(w.preparing)
	<-w.goOn
	return &steps.Call{}, &state.Step{}, nil
}

func (w *departing) Leave() {
	w.left.Add(1)
	w.leftBusy.Store(w.busy.Load())
}

// An engine that stops lets go of its loans: of one that is being prepared after that, and of one that is
// claimed meanwhile at once.
func TestLoansAreLetGoOf(t *testing.T) {
	r, l, _ := lentOne(t)
	r.rooms.Guests = noGuests{}
	r.rooms.Robots = map[layout.Name]steps.Builtin{"noop": {Fileless: true}}
	w := &departing{preparing: make(chan struct{}), goOn: make(chan struct{})}
	l.work, l.robot, l.asked = w, "noop", asked{offer: "1", quick: true}
	go r.laden(l)
	<-w.preparing
	left := make(chan struct{})
	go func() { r.leave(); close(left) }()
	for closing := false; !closing; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		closing = r.closing
		r.mu.Unlock()
	}
	late := &departing{}
	later := &loan{ref: l.ref, work: late}
	later.ref.Key.N++
	r.mu.Lock()
	if takeUp(r, later) || r.loans[later.ref] != nil || late.left.Load() != 1 {
		t.Error("a loan that is made meanwhile is taken up")
	}
	close(w.goOn)
	<-left
	if w.left.Load() != 1 || w.leftBusy.Load() {
		t.Errorf("let go of %d times, while it was prepared: %v", w.left.Load(), w.leftBusy.Load())
	}
}
