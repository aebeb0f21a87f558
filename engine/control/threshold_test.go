package control

import (
	"testing"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
)

// Once a stop is in force the failures before it count no longer, so that it must be known by then,
// and not when the run is told of it: what asked in between would begin.
func TestAStopIsKnownAsSoonAsItIsInForce(t *testing.T) {
	pa := New(&ledger.Ledger{Options: ledger.Options{ID: "aaaaaaaa"}}, func() {}, nil)
	earlier, read, scan := state.Ref{Workflow: "flow", Step: "earlier"}, state.Ref{Workflow: "flow", Step: "read"}, state.Ref{Workflow: "flow", Step: "scan"}
	stop := func(at int64) state.Control { return state.Control{Status: state.StepStopped, At: time.UnixMilli(at)} }
	put := func(steps map[state.Ref]state.Control) {
		pa.now.Store(&inForce{controls: &state.Controls{Steps: steps}})
	}
	put(map[state.Ref]state.Control{earlier: stop(1)})
	pa.Watch(func() {})
	elsewhere := stop(2)
	elsewhere.Engine = "bbbbbbbb"
	put(map[state.Ref]state.Control{earlier: stop(1), read: stop(2), scan: elsewhere})
	for ref, want := range map[state.Ref]bool{earlier: false, read: true, scan: false} {
		if got := pa.Tripped(ref); got != want {
			t.Errorf("%s stops the run: %v", ref, got)
		}
	}
}
