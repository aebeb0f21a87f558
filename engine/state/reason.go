package state

import (
	"fmt"
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"

	"bagpipe/layout"
)

// The reasons that follow from what else is known of a step; an index keeps their
// code alone.

// requires are reasons of one prerequisite that were told lately: most steps of most items wait for
// the step before them.
var (
	requires [256]atomic.Pointer[Reason]
	seed     = maphash.MakeSeed()
)

// RequiresReason says which prerequisites are open. It may be shared, and is never changed.
func RequiresReason(open []string) *Reason {
	if len(open) != 1 {
		return requiresAll(open)
	}
	told := &requires[maphash.String(seed, open[0])%uint64(len(requires))]
	r := told.Load()
	if r == nil || r.Steps[0] != open[0] {
		r = requiresAll(open)
		told.Store(r)
	}
	return r
}

func requiresAll(open []string) *Reason {
	return &Reason{Code: "requires", Text: "waits for " + strings.Join(open, ", "), Steps: open}
}

// Every step of every item that is looked at asks for these.
var (
	completedReason = Reason{Code: "done", Text: "is completed"}
	skippedReason   = Reason{Code: "done", Text: "is skipped"}
)

// DoneReason says that the step was done. It is shared, and never changed.
func DoneReason(s Status) *Reason {
	switch s {
	case Completed:
		return &completedReason
	case Skipped:
		return &skippedReason
	}
	return &Reason{Code: "done", Text: "is " + string(s)}
}

// FailedReason says that the step failed for good.
func FailedReason() *Reason {
	return &Reason{Code: "failed", Text: "failed; it needs a person: fix the cause, then retry"}
}

// RunningReason says who is at work on the step.
func RunningReason(runner string, k layout.AttemptKey) *Reason {
	return &Reason{Code: "running", Text: fmt.Sprintf("is in progress by %s, attempt %s", runner, k)}
}

// WorkflowFailedReason says that another step failed.
func WorkflowFailedReason() *Reason {
	return &Reason{Code: "failed", Text: "the workflow has a failed step"}
}

// ManualReason says that a person is asked.
func ManualReason() *Reason { return &Reason{Code: "manual", Text: "waits for a person"} }

// DateReason says from when on the step can start.
func DateReason(t time.Time) *Reason {
	return &Reason{Code: "date", Text: "waits until " + layout.FormatTime(t), Until: t}
}

// RetryReason says when the step is tried again, and after what.
func RetryReason(t time.Time, message string) *Reason {
	return &Reason{Code: "retry", Text: "is tried again at " + layout.FormatTime(t) + ": " + message, Until: t}
}
