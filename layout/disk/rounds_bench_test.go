package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"
)

// BenchmarkRounds compares the sync of many small outputs in rounds with a sync of each.
func BenchmarkRounds(b *testing.B) {
	make1 := func(b *testing.B, dir string, i int) string {
		d := filepath.Join(dir, fmt.Sprint(i))
		if err := os.MkdirAll(filepath.Join(d, "data"), 0o755); err != nil {
			b.Fatal(err)
		}
		for f := range 6 {
			if err := os.WriteFile(filepath.Join(d, "data", fmt.Sprint(f)), []byte("some bytes of an output"), 0o644); err != nil {
				b.Fatal(err)
			}
		}
		return d
	}
	for _, callers := range []int{1, 2, 16, 64} {
		for _, how := range []string{"each", "rounds"} {
			b.Run(fmt.Sprintf("%s-%d", how, callers), func(b *testing.B) {
				dir := os.Getenv("BENCHDIR")
				if dir == "" {
					dir = b.TempDir()
				} else {
					os.RemoveAll(dir)
					os.MkdirAll(dir, 0o755)
				}
				var rounds Rounds
				var g errgroup.Group
				g.SetLimit(callers)
				for i := 0; b.Loop(); i++ {
					g.Go(func() error {
						if how == "each" {
							d := make1(b, dir, i)
							return SyncTree(d)
						}
						w, err := rounds.Begin(dir)
						if err != nil {
							return err
						}
						defer w.End()
						d := make1(b, dir, i)
						return w.Durable([]string{d}, nil)
					})
				}
				if err := g.Wait(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
