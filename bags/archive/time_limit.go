package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bagpipe/bags/files"
)

// errTime is why a context ended, where the limit on time did it.
var errTime = errors.New("the time limit has passed")

// clock gives a context that ends when the archive has had its time.
func (l Limits) clock(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, l.Time, fmt.Errorf("%w: %s", errTime, l.Time.Round(time.Second)))
}

// overTime turns the end of a clock's context into a broken rule.
func overTime(ctx context.Context, archive string, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errTime) && errors.Is(err, context.DeadlineExceeded) {
		return &files.Error{Archive: archive, Rule: files.RuleTime, Detail: cause.Error(), Err: err}
	}
	return err
}
