package audit_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/audit"
	"bagpipe/engine/intake"
	"bagpipe/layout"
)

var benchCommits = flag.Int("commits", 20_000, "how many commits BenchmarkAudit goes through")

// BenchmarkAudit tells how many commits a second an audit goes through, digests included, and
// how git fsck --full does on the same history.
func BenchmarkAudit(b *testing.B) {
	ctx := context.Background()
	root := filepath.Join(b.TempDir(), "w")
	if err := engine.Init(ctx, root, options()); err != nil {
		b.Fatal(err)
	}
	e, err := engine.Open(ctx, root, options())
	if err != nil {
		b.Fatal(err)
	}
	var items []layout.ItemID
	for i := range max(*benchCommits/20, 1) {
		drop := filepath.Join(b.TempDir(), "letter.txt")
		if err := os.WriteFile(drop, fmt.Appendf(nil, "letter %d\n", i), 0o644); err != nil {
			b.Fatal(err)
		}
		got, err := e.Intake.Add(ctx, drop, intake.AddOptions{Label: fmt.Sprint("letter ", i)})
		if err != nil {
			b.Fatal(err)
		}
		items = append(items, got.Item)
	}
	var wg sync.WaitGroup
	next := make(chan layout.ItemID)
	for range 64 {
		wg.Go(func() {
			for id := range next {
				for range 8 {
					if e.Act.Hold(ctx, id, "rights") != nil || e.Act.Release(ctx, id, "cleared") != nil {
						b.Error("an act failed")
					}
				}
			}
		})
	}
	for _, id := range items {
		next <- id
	}
	close(next)
	wg.Wait()
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	o := options()
	o.ReadOnly = true
	var spent time.Duration
	commits := 0
	for b.Loop() {
		e, err := engine.Open(ctx, root, o)
		if err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		report, err := audit.New(e.Ledger, e.Guard).Run(ctx, audit.Options{}, func(f audit.Finding) { b.Error(f) })
		if err != nil {
			b.Fatal(err)
		}
		spent += time.Since(begin)
		commits += report.Commits
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
	begin := time.Now()
	if out, err := exec.Command("git", "-C", root, "fsck", "--full").CombinedOutput(); err != nil {
		b.Fatalf("git fsck: %v\n%s", err, out)
	}
	fsck := time.Since(begin)
	rate := float64(commits) / spent.Seconds()
	b.ReportMetric(rate, "commits/s")
	b.ReportMetric(rate*fsck.Seconds()/float64(commits/b.N), "×fsck")
}
