package attempt

import (
	"bytes"
	"context"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// The rules are: a cancel is an intent in the item's record, and names the attempt. The
// engine whose attempt it is sees it come in with a commit, ends the robot's context, and
// commits the attempt as failed. A cancel that came before the attempt was watched for is
// found when the robot's call is made; one that came after the robot's end, when its
// outputs are published. One that comes later is too late.

// cancelledError is how an attempt ends that a person cancelled.
type cancelledError struct{ intent state.Intent }

func (e *cancelledError) Error() string { return e.intent.CancelText() }

// cancels are the attempts of this engine that can be cancelled.
type cancels struct {
	mu      sync.Mutex // guards running, and what is in it
	running map[layout.AttemptRef]*cancelling
}

// cancelling is one attempt that was claimed.
type cancelling struct {
	why error                   // nil: it was not cancelled
	end context.CancelCauseFunc // of its robot's context; nil before it runs
}

// watch lets the attempt be cancelled, until forget.
func (c *cancels) watch(ref layout.AttemptRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		c.running = map[layout.AttemptRef]*cancelling{}
	}
	c.running[ref] = &cancelling{}
}

func (c *cancels) forget(ref layout.AttemptRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, ref)
}

// bind gives a context that ends with ctx, and with a cancelledError when the attempt is
// cancelled, or was.
func (c *cancels) bind(ctx context.Context, ref layout.AttemptRef) (context.Context, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.running[ref]; r != nil {
		if r.end = end; r.why != nil {
			end(r.why)
		}
	}
	return ctx, end
}

// of lists the running attempts at an item's steps.
func (c *cancels) of(id layout.ItemID) (refs []layout.AttemptRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref := range c.running {
		if ref.Item == id {
			refs = append(refs, ref)
		}
	}
	return refs
}

func (c *cancels) cancel(ref layout.AttemptRef, why state.Intent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.running[ref]
	if r == nil || r.why != nil {
		return
	}
	if r.why = (&cancelledError{why}); r.end != nil {
		r.end(r.why)
	}
}

// cancelMark is in every record with a cancel, and in few others: the others are not decoded.
var cancelMark = []byte(`"` + state.CancelIntent + `"`)

// noIntents is how the record of an item begins of which nobody has asked anything, as of most: the rest need not be
// searched at each of its commits.
var noIntents = []byte("{\n  \"intents\": {},\n")

// NoteCancels ends the attempts of this engine that were cancelled; an observer.
func (a *Attempts) NoteCancels(advance gitstore.Advance) {
	for _, c := range advance.Changes {
		if c.Deleted || bytes.HasPrefix(c.Data, noIntents) || !bytes.Contains(c.Data, cancelMark) {
			continue
		}
		id, rest, ok := layout.ItemOfPath(c.Path)
		if !ok || rest != layout.ExecutionJSON {
			continue
		}
		refs := a.cancels.of(id)
		if len(refs) == 0 {
			continue
		}
		x, err := state.Decode(c.Data)
		if err != nil {
			continue // the guard tells of it
		}
		for _, ref := range refs {
			if in, is := state.Cancelled(x, ref.Workflow, ref.Step, ref.Key); is {
				a.cancels.cancel(ref, in)
			}
		}
	}
}
