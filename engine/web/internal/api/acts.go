package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"bagpipe/engine/act"
	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/engine/web/access"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
)

type actIn struct {
	ItemPath
	Match string `header:"If-Match"`
	Key   string `header:"Idempotency-Key"`
	Body  ActBody
}

// ActBody is an act.
type ActBody struct {
	Act        string   `json:"act" enum:"complete,skip,fail,retry,reset,cancel,hold,release,start,deactivate,activate,migrate"`
	Workflow   string   `json:"workflow,omitempty"`
	Step       string   `json:"step,omitempty"`
	Message    string   `json:"message,omitempty" maxLength:"4000"`
	Milestones []string `json:"milestones,omitempty"`
	After      bool     `json:"after,omitempty" doc:"reset: also the steps that need it"`
}

// wanted reads an act.
func (b *ActBody) wanted() (desk.Wanted, error) {
	w := desk.Wanted{Act: b.Act, Workflow: b.Workflow, Step: layout.Name(b.Step), Message: b.Message, After: b.After}
	for _, name := range b.Milestones {
		m, err := layout.ParseName(name)
		if err != nil {
			return w, fault.New(fault.Invalid, err.Error())
		}
		w.Milestones = append(w.Milestones, m)
	}
	return w, nil
}

type retryIn struct {
	Group string `path:"group"`
	Key   string `header:"Idempotency-Key"`
	Body  *struct {
		Message string `json:"message,omitempty" maxLength:"4000"`
		DryRun  bool   `json:"dryRun,omitempty"`
	}
}

type closeIn struct {
	NamePath
	Key string `header:"Idempotency-Key"`
}

type stepIn struct {
	Workflow string `path:"workflow"`
	Step     string `path:"step"`
	Body     struct {
		Status  string `json:"status" enum:"enabled,disabled"`
		Message string `json:"message,omitempty" maxLength:"4000"`
	}
}

// stepAnswer is how a step stands over all items.
type stepAnswer struct {
	Step    string              `json:"step"`
	Status  state.ControlStatus `json:"status"`
	Changed bool                `json:"changed"`
}

// registerActs registers what changes something.
func (a *API) registerActs() {
	post(a, http.MethodPost, "items/{id}/acts", "Act on an item", a.act)
	post(a, http.MethodPost, "failures/{group}/retry", "Let a group of failures be tried again", a.retry)
	post(a, http.MethodPost, "batches/{name}/close", "Close a batch", func(ctx context.Context, in *closeIn) (map[string]string, error) {
		acts, err := a.d.Acts(ctx, access.Operator)
		if err == nil {
			err = a.d.Whole(ctx)
		}
		if err == nil {
			err = acts.CloseBatch(ctx, layout.Name(in.Name))
		}
		return batchClosed(layout.Name(in.Name)), err
	})
	post(a, http.MethodPut, "steps/{workflow}/{step}", "Enable or disable a step for all items", func(ctx context.Context, in *stepIn) (stepAnswer, error) {
		out := stepAnswer{Step: in.Workflow + "/" + in.Step, Status: state.ControlStatus(in.Body.Status)}
		acts, err := a.d.Acts(ctx, access.Admin)
		if err == nil {
			err = a.d.Whole(ctx)
		}
		if err != nil {
			return out, err
		}
		ref, err := state.ParseStepRef(out.Step)
		if err != nil {
			return out, fault.New(fault.Invalid, err.Error())
		}
		out.Changed, err = acts.SetStep(ctx, ref, out.Status, in.Body.Message)
		return out, err
	})
}

func batchClosed(name layout.Name) map[string]string {
	return map[string]string{"batch": string(name), "status": "closed"}
}

func (a *API) act(ctx context.Context, in *actIn) (desk.Did, error) {
	id, err := a.d.Object(ctx, in.ID)
	if err != nil {
		return desk.Did{}, err
	}
	w, err := in.Body.wanted()
	if err != nil {
		return desk.Did{}, err
	}
	if in.Match != "*" {
		w.Seen = strings.Trim(strings.TrimPrefix(in.Match, "W/"), `"`)
	}
	did, err := a.d.Do(ctx, id, w)
	if errors.Is(err, ledger.ErrChanged) {
		err = withStatus{err, http.StatusPreconditionFailed, "changed"}
	}
	return did, err
}

func (a *API) retry(ctx context.Context, in *retryIn) ([]act.Retried, error) {
	acts, err := a.d.Acts(desk.AnsweringMany(ctx), access.Operator)
	if err != nil {
		return nil, err
	}
	groups := a.d.Ask.Failures(ask.FailureFilter{Group: in.Group, Within: desk.Within(ctx)})
	if len(groups) != 1 {
		return nil, fault.New(fault.NotFound, fmt.Sprintf("%d groups of failures begin with %q", len(groups), in.Group))
	}
	var message string
	var dryRun bool
	if in.Body != nil {
		message, dryRun = in.Body.Message, in.Body.DryRun
	}
	return acts.RetryFailures(ctx, ask.Members(groups), message, dryRun)
}
