package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/layout"
)

// noops is a workflow of five steps that do nothing, after the first.
func noops(n int) string {
	var b strings.Builder
	b.WriteString("schema: 1\nname: noops\nsteps:\n  - name: register\n")
	for i := range n {
		fmt.Fprintf(&b, "  - name: step%d\n    robot: noop\n", i+1)
	}
	return b.String()
}

// BenchmarkSteps drives items through five no-op steps each, both transitions of
// each step committed, -j 2, until the item folders have caught up. Beside it,
// as the floor, stands the store alone with as many commits of such records by as
// many callers as the engine has steps under way; the ratio says what the engine
// adds.
func BenchmarkSteps(b *testing.B) {
	const items, each = 2000, 5
	for range b.N {
		ctx := context.Background()
		root := filepath.Join(b.TempDir(), "w")
		o := fixedOptions(&fixedClock{})
		o.Now = time.Now
		if err := engine.Init(ctx, root, o); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "workflows", "noops.yaml"), []byte(noops(each)), 0o644); err != nil {
			b.Fatal(err)
		}
		e, err := engine.Open(ctx, root, o)
		if err != nil {
			b.Fatal(err)
		}
		drop := filepath.Join(b.TempDir(), "drop.txt")
		if err := os.WriteFile(drop, []byte("x"), 0o644); err != nil {
			b.Fatal(err)
		}
		for range items {
			if _, err := e.Intake.Add(ctx, drop, intake.AddOptions{Workflow: "noops"}); err != nil {
				b.Fatal(err)
			}
		}
		start := time.Now()
		s, err := e.Run(ctx, engine.RunOptions{Parallel: 2})
		if err != nil || s.Steps["completed"] != items*each {
			b.Fatalf("%+v, %v", s, err)
		}
		took := time.Since(start)
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
		steps := float64(items*each) / took.Seconds()
		floor := storeAlone(b, root, items*each*2)
		b.ReportMetric(steps, "steps/s")
		b.ReportMetric(2*steps, "commits/s")
		b.ReportMetric(floor, "store-commits/s")
		b.ReportMetric(2*steps/floor, "of-store")
		b.ReportMetric(0, "ns/op")
	}
}

// storeAlone commits records of an item's size, by 36 callers that each wait.
func storeAlone(b *testing.B, root string, n int) float64 {
	const callers = 36
	s, err := gitstore.Open(root, gitstore.Options{Now: time.Now, Follow: func(p string) bool { return strings.HasPrefix(p, layout.ItemsDir) }})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	record := []byte(strings.Repeat("0123456789abcde\n", 128))
	start := time.Now()
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range n / callers {
				dir := fmt.Sprintf("items/%x/%x/%x/%x/", i%16, i/16%16, c%16, c/16)
				_, err := s.Commit(context.Background(), func(gitstore.Reader) (*gitstore.Change, error) {
					data := append(fmt.Appendf(nil, "%d %d\n", c, i), record...)
					return &gitstore.Change{Files: map[string][]byte{dir + "x/execution.json": data}, Message: "step: completed\n"}, nil
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := s.CaughtUp(context.Background()); err != nil {
		b.Fatal(err)
	}
	return float64(n) / time.Since(start).Seconds()
}
