package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/engine"
	"bagpipe/engine/intake"
	"bagpipe/layout"
	"bagpipe/steps"
)

// newWorkspace is the engine of a new workspace with a fixed clock, and its folder.
func newWorkspace(t *testing.T) (*engine.Engine, string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "w")
	o := fixedOptions(&fixedClock{})
	if err := engine.Init(t.Context(), root, o); err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), root, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e, root
}

// A bag that is not valid fails, and its report is there all the same.
func TestAFailedStepsReportIsKept(t *testing.T) {
	ctx := t.Context()
	e, root := newWorkspace(t)
	drop := filepath.Join(t.TempDir(), "bag")
	if err := os.MkdirAll(filepath.Join(drop, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(drop, "bagit.txt"), []byte("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := e.Intake.Add(ctx, drop, intake.AddOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(ctx, engine.RunOptions{}); err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(root, layout.ItemDir(got.Item), "derived", "validate", "report.json")
	if data, err := os.ReadFile(report); err != nil || len(data) == 0 {
		t.Errorf("%q, %v", data, err)
	}
}

// stopped is a robot that could not do its work, and says how far it came.
func stopped(_ context.Context, c *steps.Call) (steps.Result, error) {
	err := os.WriteFile(filepath.Join(c.Scratch, "report"), []byte("half"), 0o644)
	return steps.Result{Outputs: []steps.Output{{From: "report", To: layout.RelPath(layout.DerivedDir + "/" + string(c.Step))}}}, errors.Join(err, steps.SystemFailure("half of it is not done"))
}

// What a robot derived is there also where the fault is the machine's: which files were not looked at, for one.
func TestAReportOfAFaultOfTheMachineIsKept(t *testing.T) {
	p := newPolicy(t, "  - {name: look, robot: trial}\n", 1)
	o := p.options()
	o.Robots["trial"] = steps.Builtin{Robot: steps.Func(stopped)}
	e, err := engine.Open(p.ctx, p.root, o)
	p.must(err)
	defer func() { p.must(e.Close()) }()
	if _, err := e.Run(p.ctx, engine.RunOptions{Parallel: 1}); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(p.root, "items/*/*/*/*/*/derived/look"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q, %v", found, err)
	}
	if data, err := os.ReadFile(found[0]); err != nil || string(data) != "half" {
		t.Errorf("%q, %v", data, err)
	}
}
