package ledger

import (
	"errors"
	"syscall"

	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
)

// MustStop tells the errors after which this engine may not act any more: the
// branch was rewritten, or may not be durable, or others take the engine for dead.
func MustStop(err error) bool {
	var diverged *gitstore.DivergedError
	var unsure *gitstore.UnsureError
	return errors.As(err, &diverged) || errors.As(err, &unsure) || errors.Is(err, claim.ErrLost)
}

// writeError says that the history cannot be written: no item can go on.
type writeError struct{ cause error }

func (w *writeError) Error() string { return w.cause.Error() }

func (w *writeError) Unwrap() error { return w.cause }

// ofStore tells an error of the store from a refusal of one change.
func ofStore(err, refusal error) error {
	if err == nil || refusal != nil || gitstore.IsPath(err) {
		return err
	}
	return &writeError{err}
}

// StopsAll reports whether an error stops more than one drop, item or step.
func StopsAll(err error) bool {
	var write *writeError
	return MustStop(err) || errors.As(err, &write) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
