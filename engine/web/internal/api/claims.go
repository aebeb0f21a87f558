package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/queue"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// claimBody says what is claimed.
type claimBody struct {
	Most int    `json:"most,omitempty" minimum:"1" maximum:"100" doc:"attempts; 1 where it is not said"`
	Wait string `json:"wait,omitempty" doc:"for the first, as in 30s; at most a minute"`
}

type claimNamed struct {
	NamePath
	Key  string `header:"Idempotency-Key"`
	Body claimBody
}

type claimStep struct {
	Workflow string `path:"workflow"`
	Step     string `path:"step"`
	Key      string `header:"Idempotency-Key"`
	Body     claimBody
}

// claimAnswer is what was granted; none where nothing was ready.
type claimAnswer struct {
	Attempts []wire.Leased `json:"attempts"`
}

// AttemptPath names an attempt.
type AttemptPath struct {
	Item     string `path:"item"`
	Workflow string `path:"workflow"`
	Step     string `path:"step"`
	Attempt  string `path:"attempt"`
}

func (p AttemptPath) held() wire.Held {
	return wire.Held{Item: layout.ItemID(p.Item), Workflow: p.Workflow, Step: layout.Name(p.Step), Attempt: p.Attempt}
}

type keepIn struct {
	AttemptPath
	Body struct {
		Note    string `json:"note,omitempty" maxLength:"4000"`
		Percent *int   `json:"percent,omitempty" minimum:"0" maximum:"100"`
	}
}

type keepAnswer struct {
	Lease   string  `json:"lease"`
	Seconds float64 `json:"leaseSeconds"`
}

type endIn struct {
	AttemptPath
	Key  string `header:"Idempotency-Key"`
	Body wire.Ended
}

type endAnswer struct {
	Attempt string `json:"attempt"`
	Ended   bool   `json:"ended"`
}

type attemptFileIn struct {
	AttemptPath
	Path string `path:"path" doc:"as given"`
}

const attemptPath = "attempts/{item}/{workflow}/{step}/{attempt}"

// Made reports whether a request brings bytes that a robot made, or a submission, which may be
// many.
func Made(path, method string) bool {
	return method == http.MethodPut && strings.HasPrefix(path, Root+"attempts/") && strings.Contains(path, "/made/") ||
		method != http.MethodGet && strings.HasPrefix(path, Root+"submissions/")
}

// registerClaims registers what programs call that do steps.
func (a *API) registerClaims() {
	post(a, http.MethodPost, "queues/{name}/claims", "Claim steps of a queue that programs do", func(ctx context.Context, in *claimNamed) (claimAnswer, error) {
		return a.claim(ctx, in.Name, in.Body)
	})
	post(a, http.MethodPost, "queues/{workflow}/{step}/claims", "Claim a step that programs do", func(ctx context.Context, in *claimStep) (claimAnswer, error) {
		return a.claim(ctx, in.Workflow+"/"+in.Step, in.Body)
	})
	post(a, http.MethodGet, attemptPath, "The robot's inputs", func(ctx context.Context, in *AttemptPath) (wire.Given, error) {
		l, account, err := a.d.Lends(ctx)
		if errors.Is(err, desk.ErrForbidden) { // whoever may look has no attempt
			err = fault.New(fault.NotFound, "this account claimed no such attempt")
		}
		if err != nil {
			return wire.Given{}, err
		}
		return l.Given(ctx, account, in.held())
	})
	post(a, http.MethodPut, attemptPath, "Keep an attempt, and tell how far it has come", a.keep)
	post(a, http.MethodPost, attemptPath+"/end", "End an attempt", func(ctx context.Context, in *endIn) (endAnswer, error) {
		l, account, err := a.d.Lends(ctx)
		if err == nil {
			err = l.End(ctx, account, desk.RequestFor(ctx, attemptEnded), in.held(), in.Body)
		}
		return endAnswer{in.Attempt, err == nil}, err
	})
	stream(a, attemptPath+"/files/{path}", "The bytes of a file that the robot is given", []string{"application/octet-stream"}, func(ctx huma.Context, in *attemptFileIn) error {
		l, account, err := a.d.Lends(ctx.Context())
		if errors.Is(err, desk.ErrForbidden) {
			err = fault.New(fault.NotFound, "this account claimed no such attempt")
		}
		if err != nil {
			return err
		}
		r, w := humago.Unwrap(ctx)
		desk.Patient(w)
		return l.ServeFile(w, r, account, in.held(), r.PathValue("path"))
	})
	a.mux.HandleFunc("PUT "+Root+attemptPath+"/made/{path}", a.put)
	describePut(a, attemptPath+"/made/{path}", "Send a file that the robot made", "item", "workflow", "step", "attempt", "path")
}

// claim waits for the first attempt, and takes what else is ready at once.
func (a *API) claim(ctx context.Context, which string, body claimBody) (out claimAnswer, err error) {
	out.Attempts = []wire.Leased{}
	l, account, err := a.d.Lends(ctx)
	if err != nil {
		return out, err
	}
	q, err := a.d.Ask.AskedQueue(which)
	if err != nil {
		return out, err
	}
	if q.Condition() != nil {
		return out, fault.New(fault.Invalid, "queue "+which+" has a condition on items; steps are claimed of queues without one")
	}
	wait := time.Duration(0)
	if body.Wait != "" {
		if wait, err = desk.Duration(body.Wait); err != nil {
			return out, err
		}
	}
	const atLeast = time.Second // the engine looks at its queue
	wait = min(max(wait, atLeast), longestWait)
	for len(out.Attempts) < max(body.Most, 1) {
		waiting, cancel := context.WithTimeout(ctx, wait)
		one, ok, err := l.Claim(waiting, account, desk.RequestFor(ctx, claimed), func(id queue.StepID) bool { return q.Wants(id) })
		cancel()
		if err != nil && len(out.Attempts) == 0 {
			return out, err
		}
		if err != nil || !ok {
			break // what was granted is told; the rest comes with the next call
		}
		out.Attempts, wait = append(out.Attempts, one), 100*time.Millisecond
	}
	return out, nil
}

func (a *API) keep(ctx context.Context, in *keepIn) (keepAnswer, error) {
	l, account, err := a.d.Lends(ctx)
	if err != nil {
		return keepAnswer{}, err
	}
	t := wire.Told{Held: in.held(), Note: in.Body.Note, Percent: -1}
	if in.Body.Percent != nil {
		t.Percent = *in.Body.Percent
	}
	lease, err := l.Keep(account, t)
	return keepAnswer{lease.String(), lease.Seconds()}, err
}

// put takes a part of a file that a robot made.
func (a *API) put(w http.ResponseWriter, r *http.Request) {
	l, account, err := a.d.Lends(r.Context())
	offset := int64(0)
	if err == nil {
		offset, err = offsetOf(r)
	}
	if err == nil {
		in := AttemptPath{r.PathValue("item"), r.PathValue("workflow"), r.PathValue("step"), r.PathValue("attempt")}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(partTime)) // a writer of tests has none
		err = l.Put(r.Context(), account, in.held(), r.PathValue("path"), offset, r.Header.Get("Content-Digest"), http.MaxBytesReader(w, r.Body, mostPart))
	}
	if err != nil {
		write(w, problemOf(a.d, err))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// mostPart and partTime bound a part of a file.
const mostPart, partTime = 64 << 20, 10 * time.Minute

// offsetOf is where in its file a part belongs.
func offsetOf(r *http.Request) (offset int64, err error) {
	if text := r.URL.Query().Get("offset"); text != "" {
		if offset, err = strconv.ParseInt(text, 10, 64); err != nil || offset < 0 {
			return 0, fault.New(fault.Invalid, "offset: expected a number from 0")
		}
	}
	return offset, nil
}

// describePut puts the call into the document, whose body is no JSON.
func describePut(a *API, path, summary string, names ...string) {
	op := a.operation(http.MethodPut, path, summary+", or a part of at most 64 MiB of it")
	for _, name := range names {
		op.Parameters = append(op.Parameters, &huma.Param{Name: name, In: "path", Required: true, Schema: &huma.Schema{Type: "string"}})
	}
	op.Parameters = append(op.Parameters, &huma.Param{Name: "offset", In: "query", Schema: &huma.Schema{Type: "string"}},
		&huma.Param{Name: "Content-Digest", In: "header", Required: true, Schema: &huma.Schema{Type: "string"}})
	op.Responses["204"] = &huma.Response{Description: "No Content"}
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: "string", Format: "binary"}}}}
	a.huma.OpenAPI().AddOperation(&op)
}
