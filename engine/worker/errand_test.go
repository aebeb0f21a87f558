package worker

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/steps"
)

// said is a link on which the engine always gives one answer.
type said struct{ reply []byte }

func (s said) Ask(context.Context, string, []byte) ([]byte, error) { return s.reply, nil }
func (s said) Listen(func([]byte)) error                           { return nil }
func (s said) Gone() <-chan struct{}                               { return nil }
func (s said) Pull(context.Context, string, time.Duration) (Pulled, bool, error) {
	return nil, false, nil
}

// fetching is an errand of a worker whose engine serves bytes as h does.
func fetching(t *testing.T, h http.HandlerFunc) *errand {
	t.Helper()
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	w := &Worker{o: Options{Config: &Config{Folder: t.TempDir()}, Key: wire.Key{Name: "w"}, Log: slog.New(slog.DiscardHandler), Now: time.Now}, http: server.Client(), cache: newCache("", 0)}
	w.welcome.Transfer = server.URL + "/"
	return &errand{w: w, a: &attempt{held: wire.Held{Item: "3fa9c0d2e1b7a45", Workflow: "far.1", Step: "ocr", Attempt: "1-5c1e9a70"}}, dir: t.TempDir()}
}

// Bytes that are not those announced are fetched again, thrice, and then the step fails, by the system, naming the
// file; small ones come together first.
func TestWrongBytesAreFetchedThrice(t *testing.T) {
	right := map[string][]byte{"source/a/small": []byte("small"), "source/a/large": bytes.Repeat([]byte("large"), smallFile)}
	for name, c := range map[string]struct {
		wrong int64 // how many answers are not the file's
		fails bool
	}{"twice": {2, false}, "always": {1000, true}} {
		t.Run(name, func(t *testing.T) {
			for path, data := range right {
				var asked atomic.Int64
				e := fetching(t, func(w http.ResponseWriter, q *http.Request) {
					if strings.HasSuffix(q.URL.Path, "/bundle") {
						return // nothing comes together
					}
					if asked.Add(1) <= c.wrong {
						data := bytes.Clone(right[q.URL.Query().Get("p")])
						data[0]++
						_, _ = w.Write(data)
						return
					}
					_, _ = w.Write(right[q.URL.Query().Get("p")])
				})
				sum := sha256.Sum256(data)
				call := wire.Call{Sent: wire.Sent{Files: []wire.File{{Path: path, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}}}}
				err := e.fetch(t.Context(), call, filepath.Join(e.dir, "item"), filepath.Join(e.dir, "scratch"))
				if asked.Load() != 3 {
					t.Errorf("%s was asked for %d times", path, asked.Load())
				}
				if c.fails && (err == nil || steps.KindOf(err) != steps.System || !strings.Contains(err.Error(), path)) {
					t.Errorf("%s: %v", path, err)
				}
				if got, rerr := os.ReadFile(filepath.Join(e.dir, "item", path)); !c.fails && (err != nil || rerr != nil || !bytes.Equal(got, data)) {
					t.Errorf("%s: %v, %d bytes: %v", path, err, len(got), rerr)
				}
			}
		})
	}
}

// A file that is cut off goes on where it ended.
func TestAFileThatIsCutOffGoesOn(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 1<<20)
	var served atomic.Int64
	e := fetching(t, func(w http.ResponseWriter, q *http.Request) {
		from := int64(0)
		if n, _ := fmt.Sscanf(q.Header.Get("Range"), "bytes=%d-", &from); n == 1 {
			w.WriteHeader(http.StatusPartialContent)
		} else {
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		}
		till := int64(len(data))
		if from == 0 {
			till = till * 9 / 10
		}
		n, _ := w.Write(data[from:till])
		served.Add(int64(n))
		if from == 0 {
			panic(http.ErrAbortHandler)
		}
	})
	sum := sha256.Sum256(data)
	call := wire.Call{Sent: wire.Sent{Files: []wire.File{{Path: "source/film", Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}}}}
	if err := e.fetch(t.Context(), call, filepath.Join(e.dir, "item"), filepath.Join(e.dir, "scratch")); err != nil {
		t.Fatal(err)
	}
	if again := served.Load() - int64(len(data)); again > 16<<20/10 {
		t.Errorf("%d bytes came again", again)
	}
}

// A worker of a protocol that the engine does not speak any more ends with the reason, and so does one that does
// not speak the engine's.
func TestAnotherProtocolIsAReasonToEnd(t *testing.T) {
	for reply, want := range map[string]string{
		`{"v":1,"refused":"protocol 0; this program speaks 1 to 1"}`: "protocol 0",
		`{"v":2,"lease":1}`: "protocol 2; this program speaks 1 to 1",
	} {
		w := &Worker{o: Options{Config: &Config{Folder: t.TempDir()}, Key: wire.Key{Name: "w"}, Link: said{[]byte(reply)}, Log: slog.New(slog.DiscardHandler), Now: time.Now}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var refused *ErrRefused
		if err := w.hello(ctx); !errors.As(err, &refused) || !strings.Contains(refused.Why, want) {
			t.Errorf("%s: %v", reply, err)
		}
	}
}

// A grant that comes twice is one attempt, and orders that are late, of another's or malformed change nothing.
func TestOrdersThatMakeNoSense(t *testing.T) {
	w := &Worker{o: Options{Config: &Config{}, Log: slog.New(slog.DiscardHandler), Now: time.Now}}
	w.running, w.classes = map[layout.AttemptRef]*attempt{}, map[string]context.CancelFunc{}
	for _, data := range []string{"", "{", `{"v":9}`, `{"v":1,"lost":[{}]}`, `{"v":1,"cancel":[{"item":"x","attempt":"y"}]}`, strings.Repeat("[", 100_000)} {
		w.heardOrders(t.Context(), []byte(data))
	}
	if len(w.running) != 0 || len(w.classes) != 0 || w.draining {
		t.Errorf("%+v", w.state)
	}
}

// ended is a link on which ends are heard.
type ended struct {
	said
	ends []wire.Ending
}

func (l *ended) Ask(_ context.Context, verb string, data []byte) ([]byte, error) {
	var e wire.Ending
	if err := wire.Decode(data, &e); err != nil || verb != wire.VerbEnd {
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	l.ends = append(l.ends, e)
	return wire.Encode(wire.Taken{Problem: wire.Problem{Head: wire.Now()}, Code: http.StatusNoContent})
}

// What is small comes with the grant and goes with the end: the worker asks for nothing over HTTPS, and writes no log
// where nothing was printed.
func TestASmallStepIsTwoMessages(t *testing.T) {
	for name, c := range map[string]struct {
		robot steps.Func
		bare  bool
		files int
		log   string
	}{
		"bare":   {func(context.Context, *steps.Call) (steps.Result, error) { return steps.Result{}, nil }, true, 0, ""},
		"silent": {func(context.Context, *steps.Call) (steps.Result, error) { return steps.Result{}, nil }, false, 0, ""},
		"makes": {func(_ context.Context, c *steps.Call) (steps.Result, error) {
			fmt.Fprint(c.Log, "copied")
			data, err := os.ReadFile(filepath.Join(c.Content, "small"))
			if err == nil {
				err = os.WriteFile(filepath.Join(c.Scratch, "copy"), data, 0o600)
			}
			return steps.Result{Outputs: []steps.Output{{From: "copy", To: "derived/copy"}}}, err
		}, false, 1, "copied"},
	} {
		t.Run(name, func(t *testing.T) {
			e := fetching(t, func(w http.ResponseWriter, q *http.Request) { t.Errorf("it asks for %s", q.URL) })
			link, w := &ended{}, e.w
			w.o.Link, w.room, w.telling, w.slots = link, newRoom(1), make(chan struct{}, 1), make(chan struct{}, 1)
			w.running, w.each = map[layout.AttemptRef]*attempt{}, map[string]chan struct{}{}
			w.o.Config.Robots, w.o.Builtins = []Robot{{Builtin: "tried"}}, map[layout.Name]steps.Builtin{"tried": {Robot: c.robot}}
			call := wire.Call{Head: wire.Now(), Robot: "tried", Records: wire.Records{Manifest: []byte("{}"), Execution: []byte("{}")},
				Sent: wire.Sent{Bare: c.bare, Source: "source", Content: "content", Files: []wire.File{wire.Carried("content/small", []byte("small"), false), wire.Carried("content/empty", nil, false)}}}
			if !w.room.take(t.Context()) {
				t.Fatal("no room")
			}
			item, err := layout.NewItemID(rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			held := wire.HeldOf(layout.AttemptRef{Item: item, Workflow: "far.1", Step: "copy", Key: layout.AttemptKey{N: 1, Engine: "5c1e9a70"}}, "")
			w.perform(t.Context(), wire.Grant{Head: wire.Now(), Held: held, Call: &call})
			if len(link.ends) != 1 {
				t.Fatalf("%d ends", len(link.ends))
			}
			var end wire.End
			if err := wire.Decode(link.ends[0].End, &end); err != nil || end.How != wire.Done || len(end.Files) != c.files || string(end.Log) != c.log {
				t.Errorf("%+v, %v", end, err)
			}
			for _, f := range end.Files {
				if string(f.Data) != "small" {
					t.Errorf("%+v", f)
				}
			}
			if w.room.taken != 0 || len(w.telling) != 0 {
				t.Errorf("%d have room, %d ends are told", w.room.taken, len(w.telling))
			}
		})
	}
}
