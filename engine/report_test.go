package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"bagpipe/engine"
	"bagpipe/engine/intake"
	"bagpipe/layout"
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
