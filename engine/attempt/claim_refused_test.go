package attempt_test

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// readers is a workspace of items whose first step is to read them.
type readers struct {
	t    *testing.T
	ctx  context.Context
	root string
	seed int64
}

func newReaders(t *testing.T, policy, settings string, items int) *readers {
	t.Helper()
	p := &readers{t: t, ctx: context.Background(), root: filepath.Join(t.TempDir(), "w")}
	p.must(engine.Init(p.ctx, p.root, p.options()))
	flow := "schema: 1\nname: flow\nsteps:\n  - name: register\n  - name: read\n    robot: noop\n" + policy
	p.must(os.WriteFile(filepath.Join(p.root, "workflows", "flow.yaml"), []byte(flow), 0o644))
	p.must(os.WriteFile(filepath.Join(p.root, "bagpipe.yaml"), []byte("schema: 1\n"+settings), 0o644))
	drop := filepath.Join(t.TempDir(), "a.txt")
	p.must(os.WriteFile(drop, []byte("a"), 0o644))
	p.do(func(e *engine.Engine) {
		for i := range items {
			_, err := e.Intake.Add(p.ctx, drop, intake.AddOptions{Workflow: "flow", Label: fmt.Sprintf("item-%d", i+1)})
			p.must(err)
		}
	})
	return p
}

func (p *readers) options() engine.Options {
	p.seed++
	return engine.Options{Now: time.Now, Random: rand.New(rand.NewSource(p.seed)), Robots: steps.Builtins(), ID: layout.EngineID(fmt.Sprintf("%08x", p.seed)),
		Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}, Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()}}
}

func (p *readers) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// do opens an engine with its index for f.
func (p *readers) do(f func(*engine.Engine)) {
	p.t.Helper()
	e, err := engine.Open(p.ctx, p.root, p.options())
	p.must(err)
	defer func() { p.must(e.Close()) }()
	p.must(e.Index.Load(p.ctx))
	f(e)
}

// take hands out the ready step of an item, as a run does, and gives what claims it.
func (p *readers) take(e *engine.Engine, label string) (claim func() error) {
	p.t.Helper()
	e.Index.Loaded().Only(func(entry queue.Entry) (bool, time.Time) { return entry.Item.Label == label, time.Time{} })
	entry, ok, _ := e.Index.Loaded().Take(e.Ledger.Now(), nil)
	if !ok {
		p.t.Fatalf("nothing of %s is ready", label)
	}
	return func() error { return e.Attempt.Begin(p.ctx, entry) }
}

// Two engines look at the same states, and each takes a step that a limit lets
// through once: the second one's claim finds the first one's, and is refused.
func TestTwoEnginesDoNotPassALimit(t *testing.T) {
	for name, c := range map[string]struct{ policy, settings string }{
		"of a step":          {"    limit: 1\n", ""},
		"of a workflow":      {"inFlight: 1\n", ""},
		"of all workflows":   {"", "limits: {inFlight: 1}\n"},
		"of each collection": {"", "defaults: {inFlight: 1}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newReaders(t, c.policy, c.settings, 2)
			p.do(func(a *engine.Engine) {
				p.do(func(b *engine.Engine) {
					first, second := p.take(a, "item-1"), p.take(b, "item-2")
					p.must(first())
					if err := second(); !ledger.IsRefused(err) {
						t.Errorf("the second claim: %v", err)
					}
				})
			})
		})
	}
}

// A step is disabled by one engine; another, which has not seen that yet, claims it no
// more.
func TestNoClaimAfterAStepIsDisabled(t *testing.T) {
	p := newReaders(t, "", "", 1)
	p.do(func(a *engine.Engine) {
		claim := p.take(a, "item-1")
		p.do(func(b *engine.Engine) {
			_, err := b.Act.SetStep(p.ctx, state.Ref{Workflow: "flow", Step: "read"}, state.StepDisabled, "the scanner is broken")
			p.must(err)
		})
		if err := claim(); !ledger.IsRefused(err) {
			t.Errorf("the claim: %v", err)
		}
	})
}
