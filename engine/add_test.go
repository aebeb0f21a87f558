package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/intake"
)

// Many paths are taken in as groups, and stand in the queue in the order in which they
// were given; one that is not there is told of in its place and keeps none of the others.
func TestAddAllKeepsTheOrder(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	root := filepath.Join(dir, "w")
	o := fixedOptions(&fixedClock{})
	o.Now = time.Now
	if err := engine.Init(ctx, root, o); err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(ctx, root, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var paths []string
	for i := range 150 {
		path := filepath.Join(dir, fmt.Sprintf("%03d", i*7%150))
		paths = append(paths, path)
		if i == 100 {
			continue
		}
		if err := os.WriteFile(path, []byte(path), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var told, want []string
	err = e.Intake.AddAll(ctx, paths, intake.AddOptions{}, func(a intake.Admitted, err error) {
		if err != nil {
			told = append(told, "failed: "+err.Error())
			return
		}
		told = append(told, a.Label)
	})
	if err != nil || len(told) != len(paths) {
		t.Fatalf("told of %d: %v", len(told), err)
	}
	for i, path := range paths {
		if i == 100 {
			if !strings.Contains(told[i], "there is no such file") {
				t.Errorf("told %q", told[i])
			}
			continue
		}
		want = append(want, filepath.Base(path))
		if told[i] != filepath.Base(path) {
			t.Errorf("told of %s in the place of %s", told[i], path)
		}
	}
	if err := e.Index.Load(ctx); err != nil {
		t.Fatal(err)
	}
	rows, err := e.Ask.Items(ask.Filter{}, ask.Page{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, r.Label)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the items stand as\n%v, not\n%v", got, want)
	}
	if err := e.Intake.AddAll(ctx, paths, intake.AddOptions{Workflow: "none"}, func(intake.Admitted, error) { t.Error("told") }); err == nil {
		t.Error("a workflow that is not there was taken")
	}
}
