package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// lending is an attempt whose end is committed as the test says.
type lending struct {
	dir    string
	answer error
	before func() // it is committed
	ends   int
	given  int // back
}

func (w *lending) Prepare(context.Context) (*steps.Call, *state.Step, error) {
	return &steps.Call{}, &state.Step{}, nil
}
func (w *lending) Again(ctx context.Context) (*steps.Call, *state.Step, error) { return w.Prepare(ctx) }
func (w *lending) Scratch() string                                             { return w.dir }
func (w *lending) GiveUp(context.Context, string) error                        { w.given++; return nil }
func (w *lending) LostBefore() int                                             { return 0 }
func (w *lending) Leave()                                                      {}

func (w *lending) End(context.Context, steps.Result, error, string) error {
	if w.before != nil {
		w.before()
	}
	w.ends++
	return w.answer
}

// lentOne is a remote with one loan.
func lentOne(t *testing.T) (*Remote, *loan, *lending) {
	t.Helper()
	r := New(Rooms{Now: time.Now, Log: slog.New(slog.DiscardHandler), Nudge: func() {}, Room: func() error { return nil }}, Place{Secret: make([]byte, 32)})
	w := &lending{dir: t.TempDir()}
	id, err := layout.NewItemID(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ref := layout.AttemptRef{Item: id, Workflow: "far.1", Step: "derive", Key: layout.AttemptKey{N: 1, Engine: "5c1e9a70"}}
	l := &loan{ref: ref, held: wire.HeldOf(ref, r.nonce(ref)), worker: "w", work: w, lease: time.Minute, expires: time.Now().Add(time.Minute)}
	r.enter(l)
	return r, l, w
}

// Until what an engine before lent is taken up, nobody is told that an attempt is not theirs.
func TestNoAttemptIsLostWhileAttemptsAreTakenUp(t *testing.T) {
	r, l, _ := lentOne(t)
	other := l.ref
	other.Key.N++
	held := func() error {
		_, err := Claimants{r}.held("x", wire.HeldOf(other, ""))
		return err
	}
	if err := held(); !fault.Is(err, fault.Busy) {
		t.Errorf("before: %v", err)
	}
	r.resuming = false
	if err := held(); !fault.Is(err, fault.Refused) {
		t.Errorf("after: %v", err)
	}
}

func (l *loan) ask(r *Remote, method, what string, body io.Reader) int {
	q := httptest.NewRequest(method, "/"+l.held.Path()+"/"+what, body)
	q.Header.Set("Authorization", "Bearer "+l.held.Nonce)
	a := httptest.NewRecorder()
	r.Handler().ServeHTTP(a, q)
	return a.Code
}

func endOf(t *testing.T, files ...wire.File) io.Reader {
	t.Helper()
	end := wire.EndOf(steps.Result{}, nil)
	end.Files = files
	data, err := wire.EncodeDocument(end)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(data)
}

// tell tells an end over HTTPS, or as a message of the worker of this name.
func (l *loan) tell(t *testing.T, r *Remote, as layout.Name, end io.Reader) int {
	t.Helper()
	if as == "" {
		return l.ask(r, http.MethodPost, "end", end)
	}
	data, err := io.ReadAll(end)
	if err == nil {
		data, err = wire.Encode(wire.Ending{Head: wire.Now(), Held: l.held, End: data})
	}
	var taken wire.Taken
	if err == nil {
		err = wire.Decode(r.Answer(as, wire.VerbEnd, data), &taken)
	}
	if err != nil {
		t.Fatal(err)
	}
	return taken.Code
}

// An end is acknowledged when it is committed, and only then: one that the history refuses is told to be too
// late, and one that could not be committed is to be told again, to the next engine. It is so over HTTPS and as a message.
func TestAnEndIsAcknowledgedWhenItIsCommitted(t *testing.T) {
	for _, as := range []layout.Name{"", "w"} {
		r, l, w := lentOne(t)
		w.answer = errors.New("no space left")
		for range 2 {
			if code := l.tell(t, r, as, endOf(t)); code != http.StatusServiceUnavailable && code != http.StatusConflict {
				t.Errorf("an end that was not committed is answered %d", code)
			}
		}
		if w.ends != 1 || r.loans[l.ref] != l {
			t.Errorf("%d ends, loan %v: the attempt is the next engine's", w.ends, r.loans[l.ref])
		}
		r, l, w = lentOne(t)
		w.answer = fault.New(fault.Refused, "another attempt stands in its place")
		for range 2 {
			if code := l.tell(t, r, as, endOf(t)); code != http.StatusGone {
				t.Errorf("an end that the history refused is answered %d", code)
			}
		}
		r, l, w = lentOne(t)
		for range 2 {
			if code := l.tell(t, r, as, endOf(t)); code != http.StatusNoContent {
				t.Errorf("an end that was committed is answered %d", code)
			}
		}
		if w.ends != 1 {
			t.Errorf("it was committed %d times", w.ends)
		}
	}
}

// A worker ends its own attempts alone, whatever it knows of those of others.
func TestAnEndOfAnothersAttemptIsRefused(t *testing.T) {
	r, l, w := lentOne(t)
	r.place.Broker, r.rooms.Guests, r.rooms.Report, r.rooms.Alarm = &noBroker{}, noGuests{}, func(string) {}, func(string) {}
	if welcome := (gate{r}).hello("liar", wire.Hello{Head: wire.Now(), Name: "liar", Engine: "5c1e9a71", Slots: 1}); welcome.Refused != "" {
		t.Fatal(welcome.Refused)
	}
	if code := l.tell(t, r, "liar", endOf(t)); code != http.StatusGone || w.ends != 0 || r.workers["liar"].suspect == "" {
		t.Errorf("it is answered %d, %d ends; suspended: %q", code, w.ends, r.workers["liar"].suspect)
	}
	guess := &loan{ref: l.ref, held: l.held}
	guess.held.Nonce = "guessed"
	if code := guess.tell(t, r, "w", endOf(t)); code != http.StatusGone || w.ends != 0 {
		t.Errorf("without its nonce it is answered %d, %d ends", code, w.ends)
	}
}

// What comes with an end is verified as what came before it: it is written below scratch alone, and nowhere while the disk is full.
func TestBytesThatComeWithAnEnd(t *testing.T) {
	small := wire.Carried("made/small", []byte("small"), true)
	wrong := small
	wrong.SHA256 = strings.Repeat("0", 64)
	out := wire.Carried("made/../../out", []byte("out"), false)
	for name, c := range map[string]struct {
		file wire.File
		full bool
		code int
		ends int
	}{
		"as announced":  {small, false, http.StatusNoContent, 1},
		"empty":         {wire.Carried("made/empty", nil, false), false, http.StatusNoContent, 1},
		"other bytes":   {wrong, false, http.StatusUnprocessableEntity, 0},
		"leads out":     {out, false, http.StatusNoContent, 1}, // as failed
		"no room":       {small, true, http.StatusInsufficientStorage, 0},
		"never came":    {wire.File{Path: "made/none", Size: 5, SHA256: small.SHA256}, false, http.StatusUnprocessableEntity, 0},
		"came in parts": {wire.File{Path: "parts", Size: 5, SHA256: small.SHA256}, false, http.StatusNoContent, 1},
	} {
		r, l, w := lentOne(t)
		r.place.Broker, r.rooms.Alarm = &noBroker{}, func(string) {}
		if err := os.WriteFile(filepath.Join(w.dir, "parts"), []byte("small"), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.full {
			r.rooms.Room = func() error { return errors.New("paused: 3 MB are free") }
		}
		if code := l.tell(t, r, "w", endOf(t, c.file)); code != c.code || w.ends != c.ends {
			t.Errorf("%s: answered %d, %d ends; want %d and %d", name, code, w.ends, c.code, c.ends)
		}
		if _, err := os.Lstat(filepath.Join(w.dir, "../out")); err == nil {
			t.Errorf("%s: it was written outside", name)
		}
		data, err := os.ReadFile(filepath.Join(w.dir, "made/small"))
		if c.code == http.StatusNoContent && c.file.Path == small.Path && (err != nil || string(data) != "small") {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

// An attempt whose robot was never called has no scratch folder, and is given back all the same.
func TestAnAttemptIsGivenBackBeforeItsCall(t *testing.T) {
	r, l, w := lentOne(t)
	w.dir = filepath.Join(w.dir, "none")
	data, err := wire.EncodeDocument(wire.End{Head: wire.Now(), How: wire.Returned, Text: "draining"})
	if err != nil {
		t.Fatal(err)
	}
	if code := l.tell(t, r, "w", bytes.NewReader(data)); code != http.StatusNoContent || w.ends != 0 || w.given != 1 {
		t.Errorf("answered %d; ended %d times, given back %d", code, w.ends, w.given)
	}
}

// What was verified is what is published: a part that comes late, or twice, changes nothing from the end on.
func TestALatePartChangesNothingThatWasVerified(t *testing.T) {
	r, l, w := lentOne(t)
	if code := l.ask(r, http.MethodPut, "made?offset=0&p=x", bytes.NewReader([]byte("hello"))); code != http.StatusNoContent {
		t.Fatalf("a part is answered %d", code)
	}
	slow, feed := io.Pipe()
	stuck := make(chan int, 1)
	go func() { stuck <- l.ask(r, http.MethodPut, "made?offset=0&p=y", slow) }()
	if _, err := feed.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; {
		if got, _ := os.ReadFile(filepath.Join(w.dir, "y")); string(got) == "half" {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal("the first half was not written")
		}
	}
	w.before = func() {
		if code := l.ask(r, http.MethodPut, "made?offset=0&p=x", bytes.NewReader([]byte("HELLO"))); code != http.StatusConflict {
			t.Errorf("a part that came twice is answered %d", code)
		}
		if _, err := feed.Write([]byte("more")); err != nil {
			t.Error(err)
		}
		_ = feed.Close()
		if code := <-stuck; code != http.StatusConflict {
			t.Errorf("the rest of a slow part is answered %d", code)
		}
	}
	told := wire.File{Path: "x", Size: 5, SHA256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}
	if code := l.ask(r, http.MethodPost, "end", endOf(t, told)); code != http.StatusNoContent {
		t.Errorf("the end is answered %d", code)
	}
	for name, want := range map[string]string{"x": "hello", "y": "half"} {
		if got, err := os.ReadFile(filepath.Join(w.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q: %v", name, got, err)
		}
	}
}
