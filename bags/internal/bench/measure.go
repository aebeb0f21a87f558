package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// row is one way of doing the work.
type row struct {
	name  string
	ours  bool
	run   func(ctx context.Context) (sample, error)
	after func() error // puts back what run changed
	got   []sample
}

// sample is one run.
type sample struct {
	wall, cpu time.Duration
	rss       int64 // KiB, of the process itself; 0 unknown
}

// interleaved runs every row in every round: other work on the machine comes and goes.
func interleaved(ctx context.Context, rows []*row, rounds int) error {
	for range rounds {
		for _, r := range rows {
			one, err := r.run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			r.got = append(r.got, one)
			if r.after != nil {
				if err := r.after(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func command(name, dir string, args ...string) *row {
	return &row{name: name, run: func(ctx context.Context) (sample, error) { return measured(ctx, dir, args) }}
}

func measured(ctx context.Context, dir string, args []string) (sample, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &before); err != nil {
		return sample{}, err
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return sample{}, err
	}
	peak := watchMemory(cmd.Process.Pid)
	err := cmd.Wait()
	wall := time.Since(start)
	rss := peak()
	if err != nil {
		return sample{}, fmt.Errorf("%w\n%s", err, out.Bytes())
	}
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &after); err != nil {
		return sample{}, err
	}
	return sample{wall: wall, cpu: cpu(after) - cpu(before), rss: rss}, nil
}

// watchMemory reads a process's own peak until it has ended. What wait4 gives
// begins with the peak of the process that started it.
func watchMemory(pid int) (peak func() int64) {
	stop, done := make(chan struct{}), make(chan struct{})
	var most int64
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if _, after, ok := strings.Cut(string(data), "VmHWM:"); err == nil && ok {
				var kb int64
				if _, err := fmt.Sscan(after, &kb); err == nil {
					most = max(most, kb)
				}
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() int64 {
		close(stop)
		<-done
		return most
	}
}

func cpu(r syscall.Rusage) time.Duration { return time.Duration(r.Utime.Nano() + r.Stime.Nano()) }

func (r *row) median() sample {
	pick := func(of func(sample) int64) int64 {
		all := make([]int64, len(r.got))
		for i, s := range r.got {
			all[i] = of(s)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return sample{
		wall: time.Duration(pick(func(s sample) int64 { return int64(s.wall) })),
		cpu:  time.Duration(pick(func(s sample) int64 { return int64(s.cpu) })),
		rss:  pick(func(s sample) int64 { return s.rss }),
	}
}

// report shows medians.
func report(name string, rows []*row) {
	fmt.Printf("\n%s\n%-52s %9s %9s %9s\n", name, "", "wall s", "CPU s", "peak MB")
	for _, r := range rows {
		m := r.median()
		rss := ""
		if m.rss > 0 {
			rss = fmt.Sprintf("%9.0f", float64(m.rss)/1024)
		}
		fmt.Printf("%-52s %9.3f %9.3f %s\n", r.name, m.wall.Seconds(), m.cpu.Seconds(), rss)
	}
}

// beside prints how many times as fast as the fastest peer ours is, and what is aimed
// at; want is 0 where nothing is.
func beside(ours *row, want float64, peers ...*row) {
	var best *row
	for _, p := range peers {
		if p != nil && (best == nil || p.median().wall < best.median().wall) {
			best = p
		}
	}
	if best == nil {
		return
	}
	o, b := ours.median(), best.median()
	target := ""
	if want > 0 {
		target = fmt.Sprintf("   (to reach: %.2fx)", want)
	}
	fmt.Printf("  %s: %.2fx of %s; CPU %.2fx%s\n", ours.name, b.wall.Seconds()/o.wall.Seconds(), best.name, b.cpu.Seconds()/o.cpu.Seconds(), target)
}

// atMost prints a figure with its bound.
func atMost(what string, got, most float64, unit string) {
	fmt.Printf("  %s: %.2f%s   (at most: %.2f%s)\n", what, got, unit, most, unit)
}

// memory prints the highest peak of ours.
func memory(rows []*row, most float64) {
	peak := int64(0)
	for _, r := range rows {
		if r.ours {
			peak = max(peak, r.median().rss)
		}
	}
	atMost("memory", float64(peak)/1024, most, " MB")
}
