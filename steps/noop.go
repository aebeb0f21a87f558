package steps

import (
	"cmp"
	"context"
	"time"
)

// noop does nothing, for trials and benchmarks. Its parameters: sleep (a time),
// message, and fail (content or system).
func noop(ctx context.Context, c *Call) (Result, error) {
	n, err := noopParams(c.With)
	if err != nil {
		return Result{}, err
	}
	if n.sleep > 0 {
		t := time.NewTimer(n.sleep)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return Result{}, ctx.Err()
		}
	}
	switch n.fail {
	case Content:
		return Result{}, ContentFailure("%s", cmp.Or(n.message, "asked to fail"))
	case System:
		return Result{}, SystemFailure("%s", cmp.Or(n.message, "asked to fail"))
	}
	return Result{Message: n.message}, nil
}

type noopDoes struct {
	sleep   time.Duration
	message string
	fail    Kind // empty: it does not
}

func noopParams(with map[string]any) (n noopDoes, err error) {
	if n.sleep, err = durationParam(with, "sleep"); err != nil {
		return n, err
	}
	if n.message, err = stringParam(with, "message"); err != nil {
		return n, err
	}
	fail, err := stringParam(with, "fail")
	if n.fail = Kind(fail); err == nil && fail != "" && n.fail != Content && n.fail != System {
		err = wrongParam("fail", "want content or system, got %q", fail)
	}
	return n, err
}
