package attempt_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/attempt"
	"bagpipe/engine/state"
)

// A fault of Bagpipe's own, here a panic where a step's outputs are published,
// fails the workflow and no step; the item goes on once a person says so.
func TestAnInternalErrorFailsTheWorkflowAndNoStep(t *testing.T) {
	p := newReaders(t, "", "", 1)
	p.do(func(e *engine.Engine) {
		entry, ok, _ := e.Index.Loaded().Take(time.Now(), nil)
		if !ok {
			t.Fatal("nothing is ready")
		}
		var ended *attempt.Work
		w, ok := e.Attempt.Claimed(p.ctx, entry, func(w *attempt.Work) { // as a run does
			ended = w
			e.Index.Loaded().Return(w.Entry)
		})
		if !ok {
			t.Fatal(w.Err)
		}
		if w.EndInPanic(p.ctx, "index out of range"); w.Err != nil || ended != w || w.Outcome != attempt.Internal {
			t.Fatalf("%v; it is told of as a fault of its own: %t", w.Err, w.Outcome == attempt.Internal)
		}
		d, err := e.Ask.Show(context.Background(), entry.Item.ID)
		p.must(err)
		flow := d.Workflows[0]
		if flow.Status != state.Failed || flow.Steps[1].Status != state.Waiting || flow.Ended.IsZero() || !strings.Contains(flow.Why, "internal error: index out of range") {
			t.Errorf("%+v", flow)
		}
		if _, ok, _ := e.Index.Loaded().Take(time.Now(), nil); ok {
			t.Error("something of the workflow could start")
		}
		if _, err := e.Act.Activate(p.ctx, entry.Item.ID, "flow", "mended"); err != nil {
			t.Fatal(err)
		}
		if again, ok, _ := e.Index.Loaded().Take(time.Now(), nil); !ok || again.Step != entry.Step {
			t.Errorf("after that %+v, %v", again, ok)
		}
	})
}
