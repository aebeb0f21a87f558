package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/steps"
)

// The rules are: what the engine answers with 410 is over: the attempt is another's, or has
// ended. What it answers with 5xx, 409 or not at all is asked again, without end, until the
// attempt's context ends.

// errGone says that the attempt is not this worker's any more.
var errGone = errors.New("the engine says that the attempt is not the current one")

// errand is the exchange of one attempt's bytes.
type errand struct {
	w   *Worker
	a   *attempt
	dir string // of the attempt, here
}

// statusError is an answer that is not the one wanted.
type statusError struct {
	code    int
	problem wire.Problem
}

func (s *statusError) Error() string { return fmt.Sprintf("HTTP %d: %s", s.code, s.problem.Text) }

// request asks once. The caller closes the body of the answer.
func (e *errand) request(ctx context.Context, method, what string, body io.Reader, header http.Header) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, method, e.w.greeted().Transfer+e.a.held.Path()+"/"+what, body)
	if err != nil {
		return nil, err
	}
	for key, values := range header {
		q.Header[key] = values
	}
	q.Header.Set("Authorization", "Bearer "+e.a.held.Nonce)
	res, err := e.w.http.Do(q)
	if err != nil {
		return nil, err
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	var why wire.Problem
	_ = json.NewDecoder(io.LimitReader(res.Body, wire.MaxDocument)).Decode(&why) // the code says enough
	return nil, unwanted(res.StatusCode, why)
}

// unwanted is the error of an answer that is not the one wanted.
func unwanted(code int, why wire.Problem) error {
	if code == http.StatusGone {
		return fmt.Errorf("%w: %s", errGone, why.Text)
	}
	return &statusError{code, why}
}

// lasting asks until there is an answer, the attempt is gone, or ctx ends. ask answers with
// done where it must not be asked again.
func lasting(ctx context.Context, ask func() (done bool, err error)) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		done, err := ask()
		if done || errors.Is(err, errGone) {
			return err
		}
		if err == nil {
			wait = 0 // it went on
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
		wait = max(wait, 100*time.Millisecond)
	}
}

// call fetches what the robot is given.
func (e *errand) call(ctx context.Context) (call wire.Call, err error) {
	if e.a.call != nil {
		return *e.a.call, nil
	}
	err = lasting(ctx, func() (bool, error) {
		res, err := e.request(ctx, http.MethodGet, "call", nil, nil)
		if err != nil {
			return false, err
		}
		defer res.Body.Close()
		data, err := io.ReadAll(io.LimitReader(res.Body, wire.MaxDocument+1))
		if err != nil {
			return false, err
		}
		call = wire.Call{}
		return true, wire.Decode(data, &call)
	})
	return call, err
}

// prepare makes the item's folder here, or uses the one that is shared.
func (e *errand) prepare(ctx context.Context, call wire.Call) (*steps.Call, error) {
	if !call.Bare {
		if err := os.MkdirAll(e.dir, 0o700); err != nil {
			return nil, err
		}
	}
	item, scratch := filepath.Join(e.dir, "item"), filepath.Join(e.dir, "scratch")
	folders, err := foldersOf(call)
	if err != nil {
		return nil, err
	}
	if !call.Shared && !call.Bare {
		if err := e.fetch(ctx, call, item, scratch); err != nil {
			return nil, err
		}
		folders = steps.Folders{Dir: item, Scratch: scratch, Source: filepath.Join(item, folders.Source), Content: filepath.Join(item, folders.Content)}
	}
	ref, own := e.a.ref, e.w.o
	c := &steps.Call{Item: ref.Item, Collection: call.Collection, Label: string(call.Label), Workflow: ref.Workflow, Step: ref.Step, Attempt: ref.Key, With: call.With,
		Folders: folders,
		Records: steps.Records{SourceKind: call.SourceKind, Manifest: call.Manifest, Inventory: call.Inventory, Execution: call.Execution},
		Means:   steps.Means{Limits: call.Limits, Slog: own.Log, Now: func() time.Time { return own.Now().UTC().Truncate(time.Millisecond) }, Version: own.Build}}
	for i, profile := range call.Profiles {
		file := filepath.Join(e.dir, fmt.Sprintf("profile-%d.json", i))
		if err := os.WriteFile(file, profile, 0o600); err != nil {
			return nil, err
		}
		c.Profiles = append(c.Profiles, file)
	}
	return c, nil
}

// foldersOf reads the folders of a call.
func foldersOf(call wire.Call) (f steps.Folders, err error) {
	for to, from := range map[*string]string{&f.Dir: call.Dir, &f.Scratch: call.Scratch, &f.Source: call.Source, &f.Content: call.Content, &f.Place: call.Place} {
		p, err := layout.DecodePath(from)
		if err != nil {
			return f, err
		}
		*to = filepath.FromSlash(p)
	}
	for _, coded := range call.Beside {
		name, err := layout.DecodePath(coded)
		if err != nil {
			return f, err
		}
		f.Beside = append(f.Beside, name)
	}
	return f, nil
}

// tell tells how the robot ended, until the engine has it. Files that the engine lacks are
// sent again, mostSends times.
func (e *errand) tell(ctx context.Context, end wire.End) error {
	data, err := wire.EncodeDocument(end)
	if err != nil {
		data, err = wire.EncodeDocument(wire.EndOf(steps.Result{}, err))
	}
	if err != nil {
		return err
	}
	sent := 1
	asMessage := true // else over HTTPS; in turns, as the one or the other may be cut
	return lasting(ctx, func() (bool, error) {
		err := e.post(ctx, data, asMessage)
		asMessage = !asMessage
		var bad *statusError
		if errors.As(err, &bad) && bad.code == http.StatusUnprocessableEntity && len(bad.problem.Want) > 0 {
			if sent++; sent > mostSends {
				failed := wire.EndOf(steps.Result{}, steps.SystemFailure("%s did not reach the engine as it was made, %d times", bad.problem.Want[0], mostSends))
				data, err = wire.EncodeDocument(failed)
				return err != nil, err
			}
			return false, e.sendAgain(ctx, bad.problem.Want)
		}
		if errors.As(err, &bad) && bad.code == http.StatusBadRequest {
			return true, err
		}
		return err == nil, err
	})
}

// post tells an end once, as a message where it is small enough for one.
func (e *errand) post(ctx context.Context, end []byte, asMessage bool) error {
	if asMessage {
		if data, err := wire.EncodeCarrying(wire.Ending{Head: wire.Now(), Held: e.a.held, End: end}); err == nil {
			var taken wire.Taken
			if err := e.w.exchange(ctx, wire.VerbEnd, data, &taken); err != nil || taken.Code == http.StatusNoContent {
				return err
			}
			return unwanted(taken.Code, taken.Problem)
		}
	}
	res, err := e.request(ctx, http.MethodPost, "end", bytes.NewReader(end), nil)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// mostSends is how often a file is sent, or fetched, that does not arrive as it is.
const mostSends = 3
