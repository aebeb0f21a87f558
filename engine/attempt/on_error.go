package attempt

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"bagpipe/engine/control"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// The rules are: where a step says continueOnFailure: ask, its program onError is asked once
// the failure is final and committed, after the threshold, and before anything that needs the
// step. If it says continue, the step is skipped, by that program and with its reason: the
// failed attempt stays as it is, and what needs the step goes on. Whatever else it says, or
// if it fails or takes too long, the failure stands; so it does where the engine dies meanwhile.

const onErrorMost = time.Minute

// failedBriefly is what onError is told of a failure on standard input.
type failedBriefly struct {
	Item       layout.ItemID `json:"item"`
	Label      string        `json:"label"`
	Collection layout.Name   `json:"collection"`
	Workflow   string        `json:"workflow"`
	Step       layout.Name   `json:"step"`
	Attempt    string        `json:"attempt"`
	Attempts   int           `json:"attempts"`
	Kind       string        `json:"kind"`
	Message    string        `json:"message"`
	Text       string        `json:"text"`
}

// askOnError asks whether the item goes on after a failure.
func (w *Work) askOnError(ctx context.Context) error {
	ref := w.attempt.AttemptRef
	if w.plan.ContinueOnFailure != state.ContinueAsk || w.attempt.started.IsZero() {
		return nil
	}
	_, rec, err := w.a.ledger.ReadTip(ref.Item, ref.Workflow)
	if err != nil {
		return err
	}
	_, s := rec.Execution.Find(ref.Workflow, ref.Step)
	if s == nil || s.Status != state.Failed {
		return nil
	}
	key, at, _ := s.Current()
	if _, cancelled := state.Cancelled(rec.Execution, ref.Workflow, ref.Step, ref.Key); key != ref.Key || cancelled || w.a.control.Tripped(control.RefOf(ref.Workflow, ref.Step)) {
		return nil
	}
	it := w.Entry.Item
	goes, why := onError(ctx, w.a.rooms, w.plan, failedBriefly{Item: ref.Item, Label: it.Label, Collection: it.Collection, Workflow: ref.Workflow, Step: ref.Step,
		Attempt: ref.Key.String(), Attempts: len(s.Attempts), Kind: at.Kind, Message: at.Message, Text: at.Text})
	if !goes {
		w.warn("a failure stands", "onError", why)
		return nil
	}
	who := w.attempt.robot(w.a.ledger)
	who.Agent = fmt.Sprintf(state.OnErrorBy+"%s <%s>", ref.Step, who.Author.Email)
	message := ledger.Clip(ledger.Printable("passed over by onError: "+cmp.Or(why, "continue")), ledger.MaxMessage)
	_, err = w.a.ledger.Step(ctx, ref.Item, ref.Workflow, who, message, func(rec *ledger.Record) (state.Event, error) {
		return state.Decide{Workflow: ref.Workflow, Step: ref.Step, Attempt: rec.Execution.NextKey(ref.Step, w.a.ledger.ID), State: state.Skipped,
			At: w.a.ledger.Now(), By: who.Agent, Message: message}, nil
	}, nil)
	if ledger.IsRefused(err) {
		return nil // a person was faster
	}
	return err
}

// onError runs the program, and gives its answer: the first word of the last line that it
// prints is continue or stop, and the rest is why.
func onError(ctx context.Context, r rooms, plan *state.Step, about failedBriefly) (goes bool, why string) {
	input, err := layout.EncodeJSON(about)
	if err != nil {
		return false, err.Error()
	}
	most := cmp.Or(time.Duration(plan.Timeout), onErrorMost)
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	argv := r.folder.ProgramPath(plan.OnError)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = r.ledger.Path(layout.ItemDir(about.Item))
	cmd.Env = append(steps.Environment(nil, plan.Env), "BAGPIPE_ITEM="+string(about.Item), "BAGPIPE_LABEL="+about.Label, "BAGPIPE_COLLECTION="+string(about.Collection),
		"BAGPIPE_WORKFLOW="+about.Workflow, "BAGPIPE_STEP="+string(about.Step), "BAGPIPE_ATTEMPT="+about.Attempt, "BAGPIPE_ITEM_DIR="+cmd.Dir)
	cmd.Stdin = bytes.NewReader(input)
	last, err := steps.RunProgram(ctx, cmd, &bytes.Buffer{})
	switch {
	case ctx.Err() != nil:
		return false, "it took longer than " + most.String()
	case err != nil:
		return false, fmt.Sprintf("%v: %s", err, last)
	}
	answer, why, _ := strings.Cut(last, " ")
	return answer == "continue", cmp.Or(strings.TrimSpace(why), last)
}
