package steps

import (
	"context"
	"time"
)

// noop does nothing, for trials and benchmarks. Its parameters: sleep (a time),
// message, and fail (content or system).
func noop(ctx context.Context, c *Call) (Result, error) {
	sleep, err := durationParam(c.With, "sleep")
	if err != nil {
		return Result{}, err
	}
	message, err := stringParam(c.With, "message")
	if err != nil {
		return Result{}, err
	}
	fail, err := stringParam(c.With, "fail")
	if err != nil {
		return Result{}, err
	}
	if sleep > 0 {
		t := time.NewTimer(sleep)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return Result{}, ctx.Err()
		}
	}
	if message == "" && fail != "" {
		message = "asked to fail"
	}
	switch Kind(fail) {
	case "":
		return Result{Message: message}, nil
	case Content:
		return Result{}, ContentFailure("%s", message)
	case System:
		return Result{}, SystemFailure("%s", message)
	}
	return Result{}, SystemFailure("parameter fail: want content or system, got %q", fail)
}
