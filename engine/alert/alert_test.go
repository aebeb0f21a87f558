package alert_test

import (
	"context"
	"encoding/json"
	"io"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/alert"
	"bagpipe/engine/ask"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// pager is a webhook that keeps what it was told.
type pager struct {
	digests []alert.Digest
	broken  bool
}

func (p *pager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	var d alert.Digest
	if err != nil || json.Unmarshal(data, &d) != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "not a digest", http.StatusBadRequest)
		return
	}
	if p.broken {
		http.Error(w, "the pager is\noff", http.StatusServiceUnavailable)
		return
	}
	p.digests = append(p.digests, d)
}

func TestWhatAnAlertWasNotToldOf(t *testing.T) {
	for want, d := range map[string]alert.Digest{
		"2 failures":                            {New: 2},
		"1 step out of the flow":                {Steps: make([]ask.StepControl, 1)},
		"1 failure and 3 steps out of the flow": {New: 1, Steps: make([]ask.StepControl, 3)},
	} {
		if got := d.News(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A redirection is followed only where the digest goes with it.
func TestRedirectedAlerts(t *testing.T) {
	p := &pager{}
	mux := http.NewServeMux()
	mux.Handle("/hook", p)
	mux.HandleFunc("/login", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/moved", http.RedirectHandler("/hook", http.StatusPermanentRedirect))
	mux.Handle("/closed", http.RedirectHandler("/login", http.StatusFound))
	mux.Handle("/round", http.RedirectHandler("/round", http.StatusTemporaryRedirect))
	server := httptest.NewServer(mux)
	defer server.Close()
	for path, want := range map[string]string{"/moved": "", "/closed": "302 Found", "/round": "307 Temporary Redirect"} {
		err := alert.Post(context.Background(), server.URL+path, []byte("{}"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	if len(p.digests) != 1 {
		t.Errorf("%d digests arrived, want 1", len(p.digests))
	}
}

// An alert is told once of what is new, not before its time, not again after a
// restart, and again after it could not be told.
func TestAlerts(t *testing.T) {
	ctx := context.Background()
	p := &pager{}
	server := httptest.NewServer(p)
	defer server.Close()
	root := filepath.Join(t.TempDir(), "w")
	var seconds atomic.Int64
	now := func() time.Time { return time.Date(2026, 11, 20, 10, 0, int(seconds.Load()), 0, time.UTC) }
	o := engine.Options{Now: now, Random: rand.New(rand.NewSource(1)), Robots: steps.Builtins(), Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"},
		Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(engine.Init(ctx, root, o))
	must(os.WriteFile(filepath.Join(root, "workflows", "flow.yaml"), []byte("schema: 1\nname: flow\nalert: {url: \""+server.URL+"\", every: 10m}\nsteps:\n  - name: register\n  - name: look\n    robot: noop\n"), 0o644))
	settings, err := os.ReadFile(filepath.Join(root, layout.SettingsFile))
	must(err)
	must(os.WriteFile(filepath.Join(root, layout.SettingsFile), []byte(strings.Replace(string(settings), "workflow: accession", "workflow: flow", 1)), 0o644))
	drop := filepath.Join(t.TempDir(), "a.txt")
	must(os.WriteFile(drop, []byte("a"), 0o644))
	e, err := engine.Open(ctx, root, o)
	must(err)
	defer func() { must(e.Close()) }()
	var ids []layout.ItemID
	for range 4 {
		a, err := e.Intake.Add(ctx, drop, intake.AddOptions{Workflow: "flow"})
		must(err)
		ids = append(ids, a.Item)
	}
	must(e.Index.Load(ctx))
	fail := func(id layout.ItemID) {
		t.Helper()
		seconds.Add(1)
		_, err := e.Act.Decide(ctx, ledger.StepRef{Item: id, Step: "look"}, state.Failed, "torn")
		must(err)
	}
	told := func(n, fresh, waiting int) {
		t.Helper()
		must(e.Alert.TellAlerts(ctx, false))
		if len(p.digests) != n {
			t.Fatalf("%d digests, want %d", len(p.digests), n)
		}
		if n > 0 && (p.digests[n-1].New != fresh || p.digests[n-1].Waiting != waiting) {
			t.Errorf("%d new of %d, want %d of %d", p.digests[n-1].New, p.digests[n-1].Waiting, fresh, waiting)
		}
	}
	told(0, 0, 0)
	fail(ids[0])
	told(1, 1, 1)
	if g := p.digests[0].Groups; len(g) != 1 || g[0].Message != "torn" || g[0].Examples[0].Item != ids[0] {
		t.Errorf("%+v", g)
	}
	fail(ids[1])
	fail(ids[2])
	told(1, 1, 1) // too early
	seconds.Add(601)
	told(2, 2, 3)
	seconds.Add(601)
	told(2, 2, 3) // nothing new

	// One that cannot be told is tried again.
	p.broken = true
	fail(ids[3])
	if err := e.Alert.TellAlerts(ctx, true); err == nil || !strings.Contains(err.Error(), "was not told of 1 failure, and is tried again: ") || !strings.Contains(err.Error(), "503 Service Unavailable: the pager is") {
		t.Errorf("a broken pager: %v", err)
	}
	p.broken = false
	told(2, 2, 3) // a minute later, not at once
	seconds.Add(61)
	told(3, 1, 4)

	// A step that is disabled is told of; who starts anew tells nothing again.
	_, err = e.Ledger.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		c, err := e.Control.ControlsAt(r)
		if err != nil {
			return nil, err
		}
		ref := state.Ref{Workflow: "flow", Step: "look"}
		c.Set(ref, state.Control{Status: state.StepDisabled, At: now(), By: "x", Text: "why"})
		return e.Control.ControlChange(c, ref, c.Steps[ref], e.Ledger.ByEngine())
	})
	must(err)
	seconds.Add(601)
	told(4, 0, 4)
	if s := p.digests[3].Steps; len(s) != 1 || s[0].Step != "flow/look" {
		t.Errorf("%+v", s)
	}
	must(e.Close())
	e, err = engine.Open(ctx, root, o)
	must(err)
	must(e.Index.Load(ctx))
	seconds.Add(601)
	told(4, 0, 4)
	// Retried and failed again is new.
	_, err = e.Act.Retry(ctx, ledger.StepRef{Item: ids[0], Step: "look"}, "")
	must(err)
	fail(ids[0])
	told(5, 1, 4)
	// Without what is remembered all that waits is told once more.
	must(os.Remove(filepath.Join(root, alert.AlertsFile)))
	e.Alert.LookAgain()
	told(6, 4, 4)

	// A drop that is rejected in the thousandth of a second in which it is told of is not told of again.
	kept := filepath.Join(root, "rejected", "default")
	must(os.MkdirAll(kept, 0o755))
	seconds.Add(601)
	data, err := json.Marshal(map[string]any{"schema": 1, "drop": "default/bad", "reason": "no", "rule": "no-links", "time": now().Add(152 * time.Microsecond), "where": "rejected/default/bad"})
	must(err)
	must(os.WriteFile(filepath.Join(kept, "bad"), nil, 0o644))
	must(os.WriteFile(filepath.Join(kept, "bad.reason.json"), data, 0o644))
	e.Alert.LookAgain()
	told(7, 0, 4)
	if r := p.digests[6].Rejected; len(r) != 1 {
		t.Errorf("%+v", r)
	}
	seconds.Add(601)
	e.Alert.LookAgain()
	told(7, 0, 4)
}
