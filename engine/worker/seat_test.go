package worker

import (
	"context"
	"errors"
	"testing"

	"bagpipe/layout"
)

// A robot with instances runs no more often side by side, and takes no slot while it waits: others have it.
func TestInstancesBoundARobot(t *testing.T) {
	w := &Worker{slots: make(chan struct{}, 2), each: map[string]chan struct{}{"ocr": make(chan struct{}, 1)}}
	seat := func(robot layout.Name, free bool) (leave func()) {
		t.Helper()
		ctx := t.Context()
		if !free {
			ended, end := context.WithCancelCause(ctx)
			end(errLost)
			ctx = ended
		}
		leave, err := w.seat(ctx, robot)
		if free && err != nil || !free && !errors.Is(err, errLost) {
			t.Fatalf("%s: %v", robot, err)
		}
		return leave
	}
	first := seat("ocr", true)
	seat("ocr", false)
	other := seat("noop", true)
	seat("noop", false)
	first()
	second := seat("ocr", true)
	second()
	other()
	if len(w.slots) != 0 || len(w.each["ocr"]) != 0 {
		t.Errorf("%d slots and %d instances are taken", len(w.slots), len(w.each["ocr"]))
	}
}
