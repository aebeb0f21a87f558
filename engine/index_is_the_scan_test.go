package engine_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/act"
	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"

	"pgregory.net/rapid"
)

// derivation is a workspace in which anything happens, an engine that looks on all
// the while, and the items so far.
type derivation struct {
	*site
	onlooker *engine.Engine
	drop     string
	items    []layout.ItemID
	pushes   int
}

const derivedFlow = `schema: 1
name: flow
steps:
  - name: register
  - name: check
    robot: noop
  - name: sign
    manual: true
    requires: [register]
  - name: wait
    robot: noop
    requires: [register]
    notBefore: metadata.from
  - name: all
    robot: noop
    requires: [check]
    onBatchComplete: true
  - name: last
    robot: noop
    requires: [all, sign, wait]
`

// TestIndexIsAlwaysTheScan: after any transitions, pushes, joins, restarts, and with
// any checkpoint, what the engines hold is what a scan of everything finds; and a run
// leaves nothing ready behind.
func TestIndexIsAlwaysTheScan(t *testing.T) {
	few(t, "12")
	rapid.Check(t, func(rt *rapid.T) {
		d := &derivation{site: newSite(t), drop: filepath.Join(t.TempDir(), "drop.txt")}
		d.must(os.WriteFile(d.drop, []byte("x"), 0o644))
		d.must(os.MkdirAll(filepath.Join(d.root, layout.QueuesDir), 0o755))
		d.must(os.WriteFile(filepath.Join(d.root, "workflows", "flow.yaml"), []byte(derivedFlow), 0o644))
		d.must(os.WriteFile(filepath.Join(d.root, "queues", "q.yaml"), []byte("schema: 1\nname: q\nwhere: metadata.a = 1 and execution.milestones.x < now\n"), 0o644))
		d.items = append(d.items, d.item)
		var err error
		d.onlooker, err = engine.Open(context.Background(), d.root, d.options())
		d.must(err)
		defer func() { d.must(d.onlooker.Close()) }()
		d.must(d.onlooker.Index.Load(context.Background()))
		for range rapid.IntRange(3, 10).Draw(rt, "events") {
			what := rapid.SampledFrom([]string{"add", "add", "run", "act", "act", "act", "push", "merge", "save", "damage", "disable", "close"}).Draw(rt, "what")
			d.happen(rt, what)
			d.must(d.onlooker.Ask.Refresh(context.Background()))
			d.same(rt, d.onlooker, "the engine that looked on, after "+what)
			d.do(func(e *engine.Engine) {
				d.must(e.Index.Load(context.Background()))
				d.same(rt, e, "one that was started after "+what)
			})
		}
	})
}

// few lets rapid check fewer cases, as each is a workspace.
func few(t *testing.T, n string) {
	f := flag.Lookup("rapid.checks")
	was := f.Value.String()
	if err := f.Value.Set(n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(was) })
}

func (d *derivation) same(t *rapid.T, e *engine.Engine, who string) {
	v, err := e.Index.VerifyIndex(context.Background())
	d.must(err)
	if len(v.Differences) > 0 {
		t.Fatalf("%s holds %d items otherwise:\n%s", who, v.Items, strings.Join(v.Differences, "\n"))
	}
}

func (d *derivation) happen(t *rapid.T, what string) {
	ctx := context.Background()
	item := rapid.SampledFrom(d.items).Draw(t, "item")
	refused := func(_ any, err error) {
		var illegal *state.IllegalError
		if err != nil && !ledger.IsRefused(err) && !errors.As(err, &illegal) && !strings.Contains(err.Error(), "has no ") {
			d.t.Fatal(err)
		}
	}
	switch what {
	case "add":
		d.do(func(e *engine.Engine) {
			got, err := e.Intake.Add(ctx, d.drop, intake.AddOptions{Workflow: "flow", Batch: layout.Name(rapid.SampledFrom([]string{"", "b"}).Draw(t, "batch"))})
			if err == nil {
				d.items = append(d.items, got.Item)
			} else if !strings.Contains(err.Error(), "was closed") {
				d.t.Fatal(err)
			}
		})
	case "run":
		d.do(func(e *engine.Engine) {
			_, err := e.Run(ctx, engine.RunOptions{Parallel: 2})
			d.must(err)
			rows, err := e.Ask.Queue(ask.QueueAsk{})
			d.must(err)
			for _, r := range rows {
				if !r.Person && r.Why == "" {
					t.Fatalf("the run left %s of %s", r.Step, r.Item)
				}
			}
		})
	case "act":
		ref := ledger.StepRef{Item: item, Step: layout.Name(rapid.SampledFrom([]string{"check", "sign", "wait", "all", "step1"}).Draw(t, "step"))}
		which := rapid.IntRange(0, 5).Draw(t, "act")
		d.do(func(e *engine.Engine) {
			switch which {
			case 0:
				refused(nil, e.Act.Hold(ctx, item, "so"))
			case 1:
				refused(nil, e.Act.Release(ctx, item, ""))
			case 2:
				refused(e.Act.Decide(ctx, ref, state.Completed, "by hand"))
			case 3:
				refused(e.Act.Decide(ctx, ref, state.Failed, "broken"))
			case 4:
				refused(e.Act.Retry(ctx, ref, ""))
			case 5:
				refused(e.Act.Reset(ctx, act.SeenStep{StepRef: ref}, true, ""))
			}
		})
	case "push", "merge":
		d.push(t, item, what == "merge")
	case "disable":
		to := rapid.SampledFrom([]state.ControlStatus{state.StepDisabled, state.StepEnabled}).Draw(t, "to")
		d.do(func(e *engine.Engine) {
			d.must(e.Index.Load(ctx))
			refused(e.Act.SetStep(ctx, state.Ref{Workflow: "flow", Step: "check"}, to, ""))
		})
	case "close":
		d.do(func(e *engine.Engine) {
			if err := e.Act.CloseBatch(ctx, "b"); err != nil && !fault.Is(err, fault.NotFound) {
				d.t.Fatal(err)
			}
		})
	case "save":
		d.must(d.onlooker.Index.SaveIndex())
	case "damage":
		d.must(d.onlooker.Index.SaveIndex())
		d.damage(t)
	}
}

// push changes an item's metadata in the clone, and may do so on a branch of its own
// that is joined before.
func (d *derivation) push(t *rapid.T, item layout.ItemID, merge bool) {
	d.pushes++
	file := layout.ItemDir(item) + "/" + layout.ManifestJSON
	git(d.t, d.clone, "pull", "-q", "--no-edit", "origin")
	if merge {
		git(d.t, d.clone, "checkout", "-q", "-b", fmt.Sprint("side-", d.pushes))
	}
	data, err := os.ReadFile(filepath.Join(d.clone, file))
	d.must(err)
	from := time.Now().Add(time.Duration(rapid.SampledFrom([]int{-3600, 3600}).Draw(t, "from")) * time.Second)
	m, err := layout.DecodeManifest(data)
	d.must(err)
	m.Metadata = map[string]any{"a": 1, "from": layout.FormatTime(from), "n": d.pushes}
	data, err = m.Encode(data)
	d.must(err)
	d.must(os.WriteFile(filepath.Join(d.clone, file), data, 0o644))
	git(d.t, d.clone, "commit", "-qam", "describe")
	if merge {
		branch := strings.TrimSpace(git(d.t, d.clone, "rev-parse", "--abbrev-ref", "origin/HEAD"))
		git(d.t, d.clone, "checkout", "-q", strings.TrimPrefix(branch, "origin/"))
		git(d.t, d.clone, "commit", "-q", "--allow-empty", "-m", "meanwhile")
		git(d.t, d.clone, "merge", "-q", "--no-edit", fmt.Sprint("side-", d.pushes))
	}
	git(d.t, d.clone, "push", "-q", "origin", "HEAD")
}

// damage cuts a checkpoint off, turns a bit of it, or puts another repository's in its
// place.
func (d *derivation) damage(t *rapid.T) {
	files, err := filepath.Glob(filepath.Join(d.root, layout.IndexDir, "*.checkpoint"))
	d.must(err)
	for _, f := range files {
		data, err := os.ReadFile(f)
		d.must(err)
		if len(data) == 0 { // cut off there before, and not written anew since
			continue
		}
		switch at := rapid.IntRange(0, len(data)-1).Draw(t, "at"); rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			data = data[:at]
		case 1:
			data[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case 2:
			data = foreignCheckpoint(d)
		}
		d.must(os.WriteFile(f, data, 0o644))
	}
}

// foreignCheckpoint is a sound one of a tree that is not in the repository.
func foreignCheckpoint(d *derivation) []byte {
	root := filepath.Join(d.t.TempDir(), "other")
	ctx := context.Background()
	d.must(engine.Init(ctx, root, d.options()))
	e, err := engine.Open(ctx, root, d.options())
	d.must(err)
	_, err = e.Intake.Add(ctx, d.drop, intake.AddOptions{Workflow: "accession"})
	d.must(err)
	d.must(e.Index.Load(ctx))
	d.must(e.Index.SaveIndex())
	d.must(e.Close())
	files, _ := filepath.Glob(filepath.Join(root, layout.IndexDir, "*.checkpoint"))
	if len(files) != 1 {
		d.t.Fatalf("%d checkpoints", len(files))
	}
	data, err := os.ReadFile(files[0])
	d.must(err)
	return data
}
