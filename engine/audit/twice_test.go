package audit

import (
	"fmt"
	"slices"
	"testing"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// The steps of an item that were completed twice are told in the order of their names.
func TestStepsCompletedTwiceAreToldInOrder(t *testing.T) {
	steps := map[layout.Name]*state.StepRecord{}
	for i := range 12 {
		steps[layout.Name(fmt.Sprintf("step-%02d", i))] = &state.StepRecord{Attempts: map[layout.AttemptKey]state.Attempt{
			{N: 1, Engine: "aaaaaaaa"}: {State: state.Completed}, {N: 2, Engine: "bbbbbbbb"}: {State: state.Completed}}}
	}
	said := completedTwice(&state.Execution{Workflows: map[string]*state.Workflow{"accession.1": {Steps: steps}}})
	if len(said) != len(steps) || !slices.IsSorted(said) {
		t.Errorf("%q", said)
	}
}

// A person may write of a workflow that is not there.
func TestAMoveOfNoWorkflowIsNoEvent(t *testing.T) {
	y := &state.Execution{Intents: map[layout.IntentKey]state.Intent{"k": {Kind: state.MigrateIntent, Workflow: "none.1", Digest: "sha256:00"}}}
	_, err := eventOf(differ(&state.Execution{}, y), &state.Execution{}, y, func(string) *state.Definition { return &state.Definition{} })
	if err == nil {
		t.Error("an event is told of a workflow that is not there")
	}
}
