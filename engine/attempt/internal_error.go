package attempt

import (
	"fmt"
	"runtime/debug"
)

// InternalError is a panic in Bagpipe itself. It fails the item's workflow and no
// step: the step's robot is not to blame.
type InternalError struct{ Cause any }

func (e *InternalError) Error() string { return fmt.Sprintf("internal error: %v", e.Cause) }

// guard turns a panic into an InternalError, with the stack in the step's log.
func (w *Work) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &InternalError{Cause: p}
			w.logPanic(p)
		}
	}()
	return f()
}

func (w *Work) logPanic(p any) {
	stack := debug.Stack()
	w.e.ledger.Log.Error("panic", "item", w.attempt.Item, "step", w.attempt.Step, "cause", p, "stack", string(stack))
	if w.log != nil {
		fmt.Fprintf(w.log, "panic: %v\n%s", p, stack)
	}
}
