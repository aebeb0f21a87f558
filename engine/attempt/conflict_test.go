package attempt

import (
	"testing"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Of two attempts at work when a folder came to stand, the one is named whose step it is named after.
func TestAConflictNamesTheStepOfTheFolder(t *testing.T) {
	began := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	step := func(key layout.AttemptKey, took time.Duration) *state.StepRecord {
		a := state.Attempt{State: state.InProgress, Started: began}
		if took > 0 {
			a.State, a.Ended = state.Completed, began.Add(took)
		}
		return &state.StepRecord{Attempts: map[layout.AttemptKey]state.Attempt{key: a}}
	}
	now := &state.Execution{Workflows: map[string]*state.Workflow{
		"other.1": {Steps: map[layout.Name]*state.StepRecord{"slow": step(layout.AttemptKey{N: 2, Engine: "aaaaaaaa"}, 2*time.Second)}},
		"side.1": {Steps: map[layout.Name]*state.StepRecord{
			"idle": step(layout.AttemptKey{N: 2, Engine: "aaaaaaaa"}, time.Second),
			"slow": step(layout.AttemptKey{N: 1, Engine: "aaaaaaaa"}, 0),
		}},
	}}
	g := &given{execution: (&state.Execution{Item: "26d0ab4c54865f2"}).Encode()}
	own := layout.AttemptRef{Workflow: "side.1", Step: "slow"}
	for to, want := range map[layout.RelPath]string{
		"derived/slow/page": "slow of attempt 2-aaaaaaaa",
		"derived/slower":    "idle of attempt 2-aaaaaaaa", // the first that ended
		"content":           "idle of attempt 2-aaaaaaaa",
	} {
		if got := g.endedSince(now, own, to, began.Add(time.Second/2)); got != want {
			t.Errorf("%s: %s, want %s", to, got, want)
		}
	}
}
