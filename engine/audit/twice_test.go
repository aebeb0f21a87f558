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
