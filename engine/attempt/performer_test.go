package attempt

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// A robot's panic is its step's failure; the step's log holds the stack.
func TestARobotsPanicFailsItsStep(t *testing.T) {
	wild := steps.Func(func(context.Context, *steps.Call) (steps.Result, error) { panic("oh") })
	p := local{robots: map[layout.Name]steps.Builtin{"wild": {Robot: wild}}}
	var log bytes.Buffer
	c := &steps.Call{Means: steps.Means{Slog: slog.New(slog.DiscardHandler), Log: &log}}
	_, err := p.Perform(t.Context(), &state.Step{How: state.How{Robot: "wild"}}, c)
	if err == nil || err.Error() != "the robot panicked: oh" || steps.KindOf(err) != steps.System || !strings.Contains(log.String(), "performer_test.go") {
		t.Errorf("%v\n%s", err, &log)
	}
	var unavailable *steps.Unavailable
	if _, err := p.Perform(t.Context(), &state.Step{How: state.How{Robot: "tame"}}, c); !errors.As(err, &unavailable) {
		t.Errorf("a robot that this version has not: %v", err)
	}
}
