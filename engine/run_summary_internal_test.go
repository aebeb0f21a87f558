package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bagpipe/engine/attempt"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/steps"
)

// A workflow that failed by a fault of Bagpipe's own is a failure of the run that met it,
// and of no step; to another run it is one of before.
func TestARunTellsOfAnInternalError(t *testing.T) {
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(t.TempDir(), "w")
	o := Options{Now: time.Now, Random: rand.New(rand.NewSource(1)), Robots: steps.Builtins(),
		Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}, Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()}}
	must(Init(ctx, root, o))
	e, err := Open(ctx, root, o)
	must(err)
	defer e.Close()
	drop := filepath.Join(t.TempDir(), "a.txt")
	must(os.WriteFile(drop, []byte("a"), 0o644))
	item, err := e.Intake.Add(ctx, drop, intake.AddOptions{})
	must(err)
	must(e.Index.Load(ctx))
	entry, ok, _ := e.Index.Loaded().Take(time.Now(), nil)
	if !ok {
		t.Fatal("nothing is ready")
	}
	r, err := e.newRun(ctx, RunOptions{})
	must(err)
	w := e.Attempt.NewWork(entry, nil, func(*attempt.Work) {})
	if !w.ForPool(ctx).Claim() {
		t.Fatal(w.Err)
	}
	claimed := e.Index.Loaded().Item(item.Item).Runs[0].Steps[entry.N].Current
	key, err := e.Ledger.IntentKey()
	must(err)
	lost, err := e.Ledger.IntentKey()
	must(err)
	const text = "internal error: index out of range"
	_, err = e.Ledger.Step(ctx, item.Item, entry.Run, e.Ledger.ByEngine(), text, func(*ledger.Record) (state.Event, error) {
		return state.Internal{Key: key, LostKey: lost, Workflow: entry.Run, Step: entry.Step, Attempt: claimed, At: e.Ledger.Now(), By: e.Ledger.ByEngine().Agent, Text: text}, nil
	}, nil)
	must(err)
	w.Outcome = attempt.Internal
	r.ended(w)
	r.conclude(ctx)
	if f := r.summary.Failed; len(f) != 1 || f[0].Workflow != "accession.1" || f[0].Step != "" || f[0].Kind != "internal" || f[0].Message != text {
		t.Errorf("the run says that this failed: %+v", f)
	}
	later, err := e.newRun(ctx, RunOptions{})
	must(err)
	if later.conclude(ctx); len(later.summary.Failed) != 0 || later.summary.Before != 1 {
		t.Errorf("another run says %+v", later.summary)
	}
}

// What was cancelled since the run ends tells nothing that its end does not.
func TestACancellationIsNoMishapOfARunThatEnds(t *testing.T) {
	var told []string
	a := newAccount(RunOptions{Report: func(r Report) { told = append(told, r.Note) }}, func() int { return 0 }, func() {})
	a.broken(fmt.Errorf("take: %w", context.Canceled))
	a.halt(errors.New("paused"))
	a.broken(fmt.Errorf("take b: %w", context.Canceled))
	if len(told) != 1 || len(a.summary.Mishaps) != 1 || a.fault == nil {
		t.Errorf("told: %q, mishaps: %q", told, a.summary.Mishaps)
	}
}
