package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The figures of workers, beside those of bare JetStream (engine/remote/bus), for make bench.
func TestFiguresOfWorkers(t *testing.T) {
	if os.Getenv("BAGPIPE_BENCH") == "" {
		t.Skip("measures for minutes; make bench runs it")
	}
	t.Run("no-op", func(t *testing.T) {
		f, rate := measured(t, 4, 4, 1000, "robot: noop")
		t.Logf("no-op steps, 4 workers of 4 slots: %.0f claims/s", rate)
		f.engine.kill()
	})
	var one float64
	for _, n := range []int{1, 2, 4, 8} {
		t.Run(fmt.Sprintf("sleeping-%d", n), func(t *testing.T) {
			f, rate := measured(t, n, 2, 100*n, "command: [sleep, '0.05']")
			if n == 1 {
				one = rate
			}
			t.Logf("50 ms steps, %d workers of 2 slots: %.1f steps/s, %.2f of linear", n, rate, rate/(one*float64(n)))
			f.engine.kill()
		})
	}
	t.Run("idle", func(t *testing.T) {
		f := newFleetWith(t, "30s", "  - name: derive\n    robot: noop\n", "{far/derive: {only: true}}")
		f.offering("w", 1, "")
		var away time.Duration
		for i := range 20 {
			label := fmt.Sprintf("one-%d", i)
			f.write("in/"+label, label)
			f.ok("add", "--workflow", "far", filepath.Join(f.top, "in", label))
			f.await("it", func() bool { return len(f.labels("completed")) == i+1 })
			a := f.step(label, "derive").Get("attempts.0")
			away += a.Get("ended").Time().Sub(a.Get("claimed").Time())
		}
		t.Logf("one no-op step, idle: %s from claim to end", away/20)
	})
}

// offering starts a worker with these robots.
func (f *fleet) offering(name string, slots int, more string) {
	f.t.Helper()
	key, config := filepath.Join(f.top, name+".key"), filepath.Join(f.top, name+".yaml")
	f.ok("remote", "invite", name, key, "--url", fmt.Sprintf("nats://127.0.0.1:%d", f.port))
	f.write(name+".yaml", fmt.Sprintf("schema: 1\nslots: %d\nprefetch: 1\nfolder: %s\nbytes: transfer\nrobots:\n  - builtin: noop\n  - command: [/bin/sleep]\n%s", slots, filepath.Join(f.top, "at-"+name), more))
	f.start("worker", "--key", key, config)
	f.await("worker "+name, func() bool { return f.state(name) == "ready" })
}

// measured has workers do one step of many items that all are ready, and gives the steps a second.
func measured(t *testing.T, workers, slots, items int, robot string) (*fleet, float64) {
	t.Helper()
	f := newFleetWith(t, "30s", "  - name: derive\n    "+robot+"\n", "{far/derive: {only: true}}")
	for i := range workers {
		f.offering(fmt.Sprintf("w%d", i), slots, "")
	}
	f.ok("step", "disable", "far/derive", "-m", "not yet")
	args := []string{"add", "--workflow", "far"}
	for i := range items {
		name := fmt.Sprintf("in/item-%d", i)
		f.write(name, name)
		args = append(args, filepath.Join(f.top, name))
	}
	f.ok(args...)
	begun := time.Now()
	f.ok("step", "enable", "far/derive")
	for len(f.labels("completed")) < items {
		if time.Since(begun) > 3*time.Minute {
			t.Fatalf("%d of %d after %s", len(f.labels("completed")), items, time.Since(begun))
		}
		time.Sleep(time.Since(begun) / 20) // looking takes as much as several steps do
	}
	return f, float64(items) / time.Since(begun).Seconds()
}
