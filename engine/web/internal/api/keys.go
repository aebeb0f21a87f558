package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/state"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
)

// keysLast is for how long an answer is kept.
const keysLast = 24 * time.Hour

// keys are the calls with an Idempotency-Key that were answered. The lock guards all.
type keys struct {
	mu     sync.Mutex
	loaded bool
	calls  map[string]*keyedCall // by the digest of who calls and the key
}

type keyedCall struct {
	body   string // its digest
	at     time.Time
	done   bool
	status int
	kind   string
	answer []byte
}

// keyed answers a POST with a key that was answered before as it was then.
func (a *API) keyed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		if key == "" || r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			write(w, &Problem{Status: http.StatusRequestEntityTooLarge, Title: "Request Entity Too Large", Detail: err.Error(), Code: "invalid"})
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		name := digest(desk.Who(r.Context()).Email, key)
		call := &keyedCall{body: digest(r.URL.Path, string(body)), at: a.d.Now()}
		before, err := a.begin(r.Context(), name, call)
		switch {
		case err != nil:
			write(w, problemOf(a.d, err))
		case before == nil:
			a.answer(w, r.WithContext(desk.Answering(r.Context(), name+" "+call.body)), next, name, call)
		case before.body != call.body:
			write(w, &Problem{Status: http.StatusUnprocessableEntity, Title: "Unprocessable Entity", Detail: "this Idempotency-Key came with another call before", Code: "key-used"})
		case !before.done:
			write(w, &Problem{Status: http.StatusConflict, Title: "Conflict", Detail: "the call with this Idempotency-Key is being answered", Code: "busy"})
		default:
			w.Header().Set("Content-Type", before.kind)
			w.Header().Set("Idempotency-Replayed", "true")
			w.WriteHeader(before.status)
			_, _ = w.Write(before.answer) // who asked is gone
		}
	})
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

// begin notes a call, unless it came before: then it gives that one.
func (a *API) begin(ctx context.Context, name string, call *keyedCall) (*keyedCall, error) {
	a.keys.mu.Lock()
	defer a.keys.mu.Unlock()
	if !a.keys.loaded {
		if err := a.load(ctx); err != nil {
			return nil, err
		}
		a.keys.loaded = true
	}
	now := a.d.Now()
	if before := a.keys.calls[name]; before != nil && now.Sub(before.at) < keysLast {
		copied := *before
		return &copied, nil
	}
	maps.DeleteFunc(a.keys.calls, func(_ string, c *keyedCall) bool { return now.Sub(c.at) >= keysLast })
	a.keys.calls[name] = call
	return nil, nil
}

// load reads the calls of the last day from the history: an earlier process may have answered
// them. Of a call that made several commits, the last counts, but of one that claimed attempts all. The lock is
// held.
func (a *API) load(ctx context.Context) error {
	a.keys.calls = map[string]*keyedCall{}
	granted := map[string][]wire.Leased{}
	for c, err := range a.d.Ask.History(ctx, "", 0) {
		if err != nil {
			return err
		}
		if a.d.Now().Sub(c.When) >= keysLast {
			break
		}
		line := desk.LineOf(c)
		name, body, ok := strings.Cut(line.Trailers[ledger.RequestTrailer], " ")
		if !ok {
			continue
		}
		body, what, _ := strings.Cut(body, " ")
		if what == claimed {
			granted[name] = append(granted[name], leased(a.d.Lender, line))
		}
		if a.keys.calls[name] != nil {
			continue
		}
		call := &keyedCall{body: body, at: c.When, done: true, status: http.StatusOK, kind: "application/json"}
		a.keys.calls[name] = call
		if err := call.say(line, what); err != nil {
			return err
		}
	}
	for name, all := range granted {
		slices.Reverse(all)
		if err := a.keys.calls[name].answerWith(claimAnswer{all}); err != nil {
			return err
		}
	}
	return nil
}

// say words the answer to a call from a commit that it made.
func (k *keyedCall) say(line desk.Line, what string) error {
	switch what {
	case "many":
		p := Problem{Status: http.StatusConflict, Title: "Conflict", Code: "interrupted",
			Detail: "this call changed several items before the server was restarted, which does not know any more whether that was all; the log names them"}
		k.status, k.kind = p.Status, p.ContentType("")
		return k.answerWith(p)
	case attemptEnded:
		return k.answerWith(endAnswer{line.Trailers["Bagpipe-Attempt"], true})
	}
	return k.answerWith(answerFrom(line))
}

func (k *keyedCall) answerWith(what any) error {
	data, err := json.Marshal(what)
	k.answer = append(data, '\n')
	return err
}

// The calls whose answers are read from their commits in ways of their own.
const claimed, attemptEnded = "claimed", "ended"

// leased is the attempt that a commit granted; without an engine its lease is not known.
func leased(by desk.Lender, line desk.Line) wire.Leased {
	of := line.Trailers
	h := wire.Held{Item: layout.ItemID(of["Bagpipe-Item"]), Workflow: of["Bagpipe-Workflow"], Step: layout.Name(of["Bagpipe-Step"]), Attempt: of["Bagpipe-Attempt"]}
	if by == nil {
		return wire.Leased{Item: h.Item, Workflow: h.Workflow, Step: h.Step, Attempt: h.Attempt}
	}
	return by.Leased(h)
}

// answerFrom is the answer to the call that made a commit.
func answerFrom(line desk.Line) any {
	of := line.Trailers
	item, to := layout.ItemID(of["Bagpipe-Item"]), of["Bagpipe-To"]
	switch {
	case of["Bagpipe-Delivery"] != "": // ITEM-vVERSION-TARGET
		parts := strings.SplitN(of["Bagpipe-Delivery"], "-", 3)
		return desk.Decided{Item: item, Target: layout.Name(parts[len(parts)-1]), State: to}
	case of["Bagpipe-Schedule"] != "":
		return desk.Switched{Schedule: of["Bagpipe-Schedule"], Changed: true}
	case of["Bagpipe-Disposal"] != "": // dispose: SAYS KEY
		says := strings.Fields(line.Subject)
		return desk.Said{Proposal: of["Bagpipe-Disposal"], Says: says[min(1, len(says)-1)]}
	case of["Bagpipe-Batch"] != "" && item == "":
		return batchClosed(layout.Name(of["Bagpipe-Batch"]))
	}
	return desk.Did{Item: item, Workflow: of["Bagpipe-Workflow"], Step: layout.Name(of["Bagpipe-Step"]), From: state.Status(of["Bagpipe-From"]), To: state.Status(to)}
}

// answer answers a call, and keeps the answer. One that failed, or was refused before anything
// was tried, is forgotten: it may come again, mended.
func (a *API) answer(w http.ResponseWriter, r *http.Request, next http.Handler, name string, call *keyedCall) {
	kept := &keeping{ResponseWriter: w, status: http.StatusOK}
	defer func() {
		a.keys.mu.Lock()
		defer a.keys.mu.Unlock()
		if p := recover(); p != nil || mendable(kept.status) {
			delete(a.keys.calls, name)
			if p != nil {
				panic(p)
			}
			return
		}
		call.done, call.status, call.kind, call.answer = true, kept.status, w.Header().Get("Content-Type"), kept.data.Bytes()
	}()
	next.ServeHTTP(kept, r)
}

// mendable reports whether a call that was answered so may come again with its key: it failed,
// or was not understood or allowed, and changed nothing.
func mendable(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return status >= http.StatusInternalServerError
}

// keeping keeps an answer while it is sent.
type keeping struct {
	http.ResponseWriter
	status int
	data   bytes.Buffer
}

// WriteHeader notes the status.
func (k *keeping) WriteHeader(status int) {
	k.status = status
	k.ResponseWriter.WriteHeader(status)
}

// Write keeps what is written.
func (k *keeping) Write(data []byte) (int, error) {
	k.data.Write(data)
	return k.ResponseWriter.Write(data)
}

// Unwrap is the writer below, for its deadlines.
func (k *keeping) Unwrap() http.ResponseWriter { return k.ResponseWriter }
