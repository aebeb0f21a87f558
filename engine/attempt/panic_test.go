package attempt

import (
	"context"
	"log/slog"
	"testing"

	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/steps"
)

// A robot's panic is its step's failure.
func TestARobotsPanicFailsItsStep(t *testing.T) {
	at := &Attempts{ledger: &ledger.Ledger{Options: ledger.Options{Log: slog.New(slog.DiscardHandler)}}}
	w := &Work{e: at, attempt: &folder.Attempt{}}
	_, err := w.callRobot(context.Background(), steps.Func(func(context.Context, *steps.Call) (steps.Result, error) { panic("oh") }), &steps.Call{})
	if err == nil || err.Error() != "the robot panicked: oh" || steps.KindOf(err) != steps.System {
		t.Errorf("%v", err)
	}
}
