package act

import (
	"errors"
	"fmt"
	"io/fs"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// NotRunningError is a step that cannot have come any further, as it does not run.
type NotRunningError struct {
	Step layout.Name
	Why  string
}

func (e *NotRunningError) Error() string { return fmt.Sprintf("step %s %s", e.Step, e.Why) }

// Progress tells how far a step that runs has come, in place of its robot or from
// within it; percent is -1 when it is not known. attempt, when it is not "", must
// be the one that runs. Nothing is committed.
func (ac *Acts) Progress(ref ledger.StepRef, attempt, note string, percent int) error {
	_, rec, err := ac.ledger.ReadTip(ref.Item, "")
	if err != nil {
		return err
	}
	if ref.Workflow, err = ac.ledger.Instance(rec, ref); err != nil {
		return err
	}
	_, s := rec.Execution.Find(ref.Workflow, ref.Step)
	if s == nil || s.Status != state.InProgress {
		return &NotRunningError{ref.Step, "is not in progress"}
	}
	k, _, _ := s.Current()
	if attempt != "" && attempt != k.String() {
		return &NotRunningError{ref.Step, fmt.Sprintf("is in progress by attempt %s, not by %s", k, attempt)}
	}
	a := layout.AttemptRef{Item: ref.Item, Workflow: ref.Workflow, Step: ref.Step, Key: k}
	err = steps.TellProgress(ac.folder.ScratchDir(a), steps.Progress{Note: note, Percent: percent})
	if errors.Is(err, fs.ErrNotExist) {
		return &NotRunningError{ref.Step, "is claimed and has not begun here"}
	}
	return err
}
