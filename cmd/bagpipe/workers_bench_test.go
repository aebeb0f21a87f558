package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The figures of workers, beside those of bare JetStream (engine/remote/bus), for make bench.
func TestFiguresOfWorkers(t *testing.T) {
	if os.Getenv("BAGPIPE_BENCH") == "" {
		t.Skip("measures for minutes; make bench runs it")
	}
	t.Run("no-op", func(t *testing.T) {
		f, rate, each := measured(t, 4, 4, 2000, 0, "robot: noop")
		t.Logf("no-op steps, 4 workers of 4 slots: %.0f claims/s, %s", rate, each)
		f.engine.kill()
	})
	for _, size := range []int{0, 1 << 20} {
		var one float64
		for _, n := range []int{1, 2, 4, 8} {
			t.Run(fmt.Sprintf("sleeping-%d-of-%d", n, size), func(t *testing.T) {
				f, rate, each := measured(t, n, 2, 100*n, size, "command: [sleep, '0.05']")
				if n == 1 {
					one = rate
				}
				t.Logf("50 ms steps of items of %d KiB, %d workers of 2 slots: %.1f steps/s, %.2f of linear, %s", size>>10, n, rate, rate/(one*float64(n)), each)
				f.engine.kill()
			})
		}
	}
	t.Run("rest", figuresAtRest)
	t.Run("bytes", figuresOfBytes)
	t.Run("faults", figuresOfFaults)
	t.Run("leaders", figuresOfLeaders)
}

// offering starts a worker with these robots.
func (f *fleet) offering(name string, slots int, more string) *process {
	f.t.Helper()
	key, config := filepath.Join(f.top, name+".key"), filepath.Join(f.top, name+".yaml")
	f.ok("remote", "invite", name, key, "--url", fmt.Sprintf("nats://127.0.0.1:%d", f.port))
	f.write(name+".yaml", fmt.Sprintf("schema: 1\nslots: %d\nprefetch: 1\nfolder: %s\nbytes: transfer\nrobots:\n  - builtin: noop\n  - command: [/bin/sleep]\n%s", slots, filepath.Join(f.top, "at-"+name), more))
	p := f.start("worker", "--key", key, config)
	f.await("worker "+name, func() bool { return f.state(name) == "ready" })
	return p
}

// endedFar is the figure of ended steps of the workflow of a fleet.
const endedFar = `bagpipe_steps_ended_total{workflow="far",`

// counter asks the engine for the sum of the figures whose lines begin so: a call to it takes less than a step, a command more than
// many do.
func (f *fleet) counter(begin string) func() int {
	f.t.Helper()
	f.await("the pages", func() bool { return strings.Contains(f.engine.out.String(), "Open once: ") })
	_, link, _ := strings.Cut(f.engine.out.String(), "Open once: ")
	at, err := url.Parse(strings.Fields(link)[0])
	f.must(err)
	return func() (sum int) {
		answer, err := http.Get("http://" + at.Host + "/metrics")
		f.must(err)
		defer answer.Body.Close()
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), begin) {
				n, err := strconv.Atoi(lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:])
				f.must(err)
				sum += n
			}
		}
		return sum
	}
}

// measured has workers do one step of many items that all are ready, of size bytes and a few, and gives the steps a second, and what
// each takes of the processor, however busy the machine is.
func measured(t *testing.T, workers, slots, items, size int, robot string) (_ *fleet, rate float64, each string) {
	t.Helper()
	f := newFleetWith(t, "30s", "  - name: derive\n    "+robot+"\n", "{far/derive: {only: true}}")
	var all []*process
	for i := range workers {
		all = append(all, f.offering(fmt.Sprintf("w%d", i), slots, ""))
	}
	spent := func() (engine, workers time.Duration) {
		engine, _ = f.engine.spent()
		for _, p := range all {
			cpu, _ := p.spent()
			workers += cpu
		}
		return engine, workers
	}
	f.ok("step", "disable", "far/derive", "-m", "not yet")
	args := []string{"add", "--workflow", "far"}
	for i := range items {
		name := fmt.Sprintf("in/item-%d", i)
		f.write(name, name+strings.Repeat("x", size))
		args = append(args, filepath.Join(f.top, name))
	}
	f.ok(args...)
	begun := time.Now()
	engine, working := spent()
	f.ok("step", "enable", "far/derive")
	for ended := f.counter(endedFar); ended() < items; time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > 3*time.Minute {
			t.Fatalf("%d of %d after %s", ended(), items, time.Since(begun))
		}
	}
	rate = float64(items) / time.Since(begun).Seconds()
	engineNow, workingNow := spent()
	per := func(d time.Duration) time.Duration { return (d / time.Duration(items)).Round(10 * time.Microsecond) }
	return f, rate, fmt.Sprintf("%s of processor in the engine and %s in the worker for each", per(engineNow-engine), per(workingNow-working))
}
