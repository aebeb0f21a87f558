package engine

import (
	"context"
	"log/slog"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/attempt"
	"bagpipe/engine/claim"
	"bagpipe/engine/folder"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/steps"
)

// A fault of Bagpipe's own, here a panic where a step's outputs are published,
// fails the workflow and no step; the item goes on once a person says so.
func TestAnInternalErrorFailsTheWorkflowAndNoStep(t *testing.T) {
	ctx := context.Background()
	root := filepath.Join(t.TempDir(), "w")
	o := Options{Now: time.Now, Random: rand.New(rand.NewSource(1)), Robots: steps.Builtins(),
		Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}, Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()}}
	if err := Init(ctx, root, o); err != nil {
		t.Fatal(err)
	}
	e, err := Open(ctx, root, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	drop := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(drop, []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	item, err := e.Intake.Add(ctx, drop, intake.AddOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Index.Load(ctx); err != nil {
		t.Fatal(err)
	}
	entry, ok, _ := e.Index.Loaded().Take(time.Now(), nil)
	if !ok {
		t.Fatal("nothing is ready")
	}
	r := &run{e: e, internal: map[itemRun]bool{}}
	w := &attempt.Work{e: e, ctx: ctx, Entry: queue.Entry{Item: entry.Item, Run: entry.Run, Step: entry.Step, N: entry.N}, done: r.ended}
	if !w.claim(ctx) {
		t.Fatal(w.Err)
	}
	w.plan = w.planStep()
	w.ran = true
	w.started = time.Now()
	w.Err = w.guard(func() error { panic("index out of range") })
	w.finish()
	if w.Err != nil {
		t.Fatal(w.Err)
	}
	r.conclude()
	if f := r.summary.Failed; len(f) != 1 || f[0].Workflow != "accession.1" || f[0].Step != "" || f[0].Kind != "internal" || f[0].Message != "internal error: index out of range" {
		t.Errorf("the run says that this failed: %+v", f)
	}
	later := &run{e: e}
	if later.conclude(); len(later.summary.Failed) != 0 || later.summary.Before != 1 {
		t.Errorf("another run says %+v", later.summary)
	}
	d, err := e.Ask.Show(item.Item)
	if err != nil {
		t.Fatal(err)
	}
	flow := d.Workflows[0]
	if flow.Status != state.Failed || flow.Steps[1].Status != state.Waiting || flow.Ended.IsZero() || !strings.Contains(flow.Why, "internal error: index out of range") {
		t.Errorf("%+v", flow)
	}
	if _, ok, _ := e.Index.Loaded().Take(time.Now(), nil); ok {
		t.Error("something of the workflow could start")
	}
	if _, err := e.Act.Activate(ctx, item.Item, "accession", "mended"); err != nil {
		t.Fatal(err)
	}
	if again, ok, _ := e.Index.Loaded().Take(time.Now(), nil); !ok || again.Step != entry.Step {
		t.Errorf("after that %+v, %v", again, ok)
	}
}

// A robot's panic is its step's failure.
func TestARobotsPanicFailsItsStep(t *testing.T) {
	w := &attempt.Work{e: &Engine{O: Options{}}, attempt: &folder.Attempt{}}
	w.e.Ledger.Log = discard()
	_, err := w.callRobot(context.Background(), steps.Func(func(context.Context, *steps.Call) (steps.Result, error) { panic("oh") }), &steps.Call{})
	if err == nil || err.Error() != "the robot panicked: oh" || steps.KindOf(err) != steps.System {
		t.Errorf("%v", err)
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
