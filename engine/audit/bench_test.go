package audit_test

import (
	"context"
	"errors"
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
)

var benchCommits = flag.Int("commits", 20_000, "how many commits BenchmarkAudit goes through")

// BenchmarkAudit tells how many commits a second an audit goes through, digests included, and
// how git fsck --full does on the same history.
func BenchmarkAudit(b *testing.B) {
	ctx := context.Background()
	root, drops := filepath.Join(b.TempDir(), "w"), b.TempDir()
	if err := engine.Init(ctx, root, options()); err != nil {
		b.Fatal(err)
	}
	e, err := engine.Open(ctx, root, options())
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	next := make(chan int)
	for range 64 { // side by side: commits of one group share a pack
		wg.Go(func() {
			for i := range next {
				drop := filepath.Join(drops, fmt.Sprint(i))
				err := os.WriteFile(drop, fmt.Appendf(nil, "letter %d\n", i), 0o644)
				if err != nil {
					b.Error(err)
					continue
				}
				got, err := e.Intake.Add(ctx, drop, intake.AddOptions{Label: fmt.Sprint("letter ", i)})
				for range 4 {
					err = errors.Join(err, e.Act.Hold(ctx, got.Item, "rights"), e.Act.Release(ctx, got.Item, "cleared"))
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range max(*benchCommits/10, 1) {
		next <- i
	}
	close(next)
	wg.Wait()
	if _, err := e.Maintain(ctx, false); err != nil {
		b.Fatal(err)
	}
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
