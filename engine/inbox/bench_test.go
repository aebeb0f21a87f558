package inbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const benchFiles = 10 // of 4 KiB, in each drop

// BenchmarkAdmission takes groups of folders from the inbox into their items'
// folders, durably, singly and as a group; the floor is the two renames alone.
func BenchmarkAdmission(b *testing.B) {
	ctx := context.Background()
	for _, c := range []struct {
		name  string
		group int
		admit func(*bench, []Drop) error
	}{
		{"singly", 20, func(w *bench, ds []Drop) error {
			for _, d := range ds {
				t, err := w.Take(ctx, d, Ticket{})
				if err == nil {
					t, err = w.Promote(ctx, t)
				}
				if err == nil {
					err = w.Done(t)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"group", 500, func(w *bench, ds []Drop) error {
			var reqs []Request
			for _, d := range ds {
				reqs = append(reqs, Request{Drop: d})
			}
			var taken []Taken
			for _, r := range w.TakeAll(ctx, reqs) {
				if r.Err != nil {
					return r.Err
				}
				taken = append(taken, r.Taken)
			}
			for _, r := range w.PromoteAll(ctx, taken) {
				if r.Err == nil {
					r.Err = w.Done(r.Taken)
				}
				if r.Err != nil {
					return r.Err
				}
			}
			return nil
		}},
		{"floor", 500, func(w *bench, ds []Drop) error {
			for _, d := range ds {
				if err := os.Rename(d.Path, w.path("intake", d.Name)); err != nil {
					return err
				}
				if err := os.Rename(w.path("intake", d.Name), w.path("items", d.Name)); err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newBench(b)
			w.mkdir("intake")
			w.mkdir("items")
			w.later(time.Hour)
			n := 0
			for b.Loop() {
				b.StopTimer()
				for range c.group {
					n++
					dropMany(b, w.path("inbox/default", fmt.Sprint(n)))
				}
				b.StartTimer()
				ds, _, _ := w.scan()
				if len(ds) != c.group {
					b.Fatalf("%d drops", len(ds))
				}
				if err := c.admit(w, ds); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "drops/s")
		})
	}
}

func dropMany(b *testing.B, dir string) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	for i := range benchFiles {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), make([]byte, 4096), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIdleScan is one scan of an inbox in which 100,000 files wait.
func BenchmarkIdleScan(b *testing.B) {
	w := newBench(b)
	dir := w.mkdir("inbox/default/waiting.part")
	for i := range 100_000 {
		if i%10_000 == 0 {
			dir = w.mkdir(fmt.Sprintf("inbox/default/waiting-%d", i))
			w.write(fmt.Sprintf("inbox/default/waiting-%d/x.part", i), "x")
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		w.scan()
	}
}
