package packed

import (
	"slices"
	"strings"
	"time"

	"bagpipe/engine/state"
)

// codes of reasons in a packed step.
const (
	CodeNone = iota
	codeManual
	CodeDate
	CodeRetry
	codeRequires
	codeHeld
	codeDone
	codeFailed
	codeRunning
	codeStopped  // the workflow has a failed step
	codeRaw      // written out
	codeChildren // written out: its children are not done
	codeBatch    // written out: the others of its batch are not there
	codeForeign  // written out: steps of another workflow are not done
	codeDateless // written out: its date is none, so that it waits for a person
)

// codeOf is the code of a reason from which, and the rest of the item, the reason
// follows.
func codeOf(it *Item, run *Run, i int, why *state.Reason) int {
	if why == nil {
		return CodeNone
	}
	code := codeRaw
	switch why.Code {
	case "manual":
		code = codeManual
	case "date":
		if why.Until.IsZero() {
			return codeDateless
		}
		code = CodeDate
	case "retry":
		code = CodeRetry
	case "requires":
		if len(why.Steps) > 0 && !slices.ContainsFunc(why.Steps, func(s string) bool { return !strings.Contains(s, "/") }) {
			return codeForeign
		}
		code = codeRequires
	case ChildrenCode:
		return codeChildren
	case BatchCode:
		return codeBatch
	case "held":
		code = codeHeld
	case "done":
		code = codeDone
	case "running":
		code = codeRunning
	case "failed":
		if code = codeFailed; run.Steps[i].Status != state.Failed {
			code = codeStopped
		}
	}
	if code != codeRaw && !sameReason(why, derive(code, it, run, i, why.Until)) {
		return codeRaw
	}
	return code
}

// derive makes the reason that a code stands for.
func derive(code int, it *Item, run *Run, i int, until time.Time) *state.Reason {
	s := &run.Steps[i]
	switch code {
	case codeManual:
		return state.ManualReason()
	case CodeDate:
		return state.DateReason(until)
	case CodeRetry:
		return state.RetryReason(until, s.Message)
	case codeRequires:
		var open []string
		for _, p := range run.Plan.Prerequisites(i) {
			if st := run.Steps[p].Status; st != state.Completed && st != state.Skipped && !(st == state.Failed && run.Plan.Steps[p].Tolerated()) {
				open = append(open, run.Plan.Steps[p].Name)
			}
		}
		return state.RequiresReason(open)
	case codeHeld:
		return &state.Reason{Code: "held", Text: "is held " + it.HeldBy}
	case codeDone:
		return state.DoneReason(s.Status)
	case codeFailed:
		return state.FailedReason()
	case codeRunning:
		return state.RunningReason(s.Runner, s.Current)
	case codeStopped:
		return state.WorkflowFailedReason()
	}
	return nil
}

func sameReason(a, b *state.Reason) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	return a.Code == b.Code && a.Text == b.Text && a.Until.Equal(b.Until) && slices.Equal(a.Steps, b.Steps)
}
