package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const stepsEach = 5

func noopWorkflow() string {
	var b strings.Builder
	b.WriteString("schema: 1\nname: bench\nsteps:\n  - name: register\n")
	for i := range stepsEach {
		fmt.Fprintf(&b, "  - name: step%d\n    robot: noop\n", i+1)
	}
	return b.String()
}

// noops prints the first table.
func (b *bench) noops(sizes []int) error {
	got := make([][]sample, len(sizes))
	for range b.rounds {
		for i, n := range sizes {
			s, err := b.noopRound(n)
			if err != nil {
				return err
			}
			got[i] = append(got[i], s)
		}
	}
	fmt.Printf("no-op steps: %d an item, -j 2, medians of %d (targets: 2,500 steps/s; 300 MB; time an item within 1.3)\n", stepsEach, b.rounds)
	fmt.Printf("%10s %10s %12s %14s %14s %12s %8s\n", "items", "steps/s", "commits/s", "time an item", "to smallest", "CPU a step", "MB")
	first := float64(0)
	for i, n := range sizes {
		s := middle(got[i])
		steps := float64(n * stepsEach)
		each := s.wall.Seconds() / float64(n)
		if i == 0 {
			first = each
		}
		fmt.Printf("%10d %10.0f %12.0f %11.2f ms %14.2f %9.2f ms %8d\n", n, steps/s.wall.Seconds(), 2*steps/s.wall.Seconds(),
			1000*each, each/first, 1000*s.cpu.Seconds()/steps, s.memory>>20)
	}
	return nil
}

func (b *bench) noopRound(n int) (s sample, err error) {
	w, err := b.newWorkspace("noops", noopWorkflow())
	if err != nil {
		return s, err
	}
	if err := w.register(n); err != nil {
		return s, err
	}
	before, err := w.commits()
	if err != nil {
		return s, err
	}
	if s, err = measure(w.command("run", "-j", "2")); err != nil {
		return s, err
	}
	after, err := w.commits()
	if err != nil {
		return s, err
	}
	if after-before != 2*stepsEach*n {
		return s, fmt.Errorf("%d commits were made, not %d", after-before, 2*stepsEach*n)
	}
	return s, w.remove()
}

func (w *workspace) commits() (int, error) {
	out, err := w.git("rev-list", "--count", "main")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(out)
}

// middle is the sample of median time.
func middle(s []sample) sample {
	s = slices.Clone(s)
	slices.SortFunc(s, func(a, b sample) int { return int(a.wall - b.wall) })
	return s[len(s)/2]
}

func median(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}
