package state

import (
	"fmt"
	"strings"
	"time"

	"bagpipe/layout"
)

// The reasons that follow from what else is known of a step; an index keeps their
// code alone.

// RequiresReason says which prerequisites are open.
func RequiresReason(open []string) *Reason {
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
