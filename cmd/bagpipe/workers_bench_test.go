package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
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
		besideOthers(t, rate)
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
	t.Run("fleet", figuresOfFleets)
}

// besideOthers prints a rate of claims beside those of others, measured now, in the same folder of temporary files.
func besideOthers(t *testing.T, rate float64) {
	t.Helper()
	said := func(unit string, c *exec.Cmd) float64 {
		out, err := c.CombinedOutput()
		before, _, there := strings.Cut(string(out), unit)
		words := strings.Fields(before)
		if err != nil || !there || len(words) == 0 {
			t.Logf("not measured: %v: %v\n%s", c.Args, err, out)
			return 0
		}
		n, err := strconv.ParseFloat(words[len(words)-1], 64)
		if err != nil {
			t.Fatalf("%v: %v\n%s", c.Args, err, out)
		}
		return n
	}
	bare := said("messages/s", exec.Command("go", "test", "-run", "^$", "-bench", "BareJetStream", "bagpipe/engine/remote/bus"))
	t.Logf("bare JetStream, synced: %.0f/s; claims are %.2f of it (target: 0.75)", bare, rate/bare)
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Log("asynq is not measured: there is no redis-server; make tools installs it")
		return
	}
	dir, err := os.MkdirTemp("", "redis") // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	module := filepath.Join(dir, "asynq") // one of its own: neither the product nor its checks know asynq
	err = os.CopyFS(module, os.DirFS(filepath.Join("..", "..", "engine", "remote", "bus", "testdata", "asynq")))
	if err == nil {
		err = os.Rename(filepath.Join(module, "main.go.txt"), filepath.Join(module, "main.go"))
	}
	if err != nil {
		t.Fatal(err)
	}
	peer := exec.Command("go", "run", ".", "2000", dir)
	peer.Dir = module
	asynq := said("tasks/s", peer)
	t.Logf("asynq, Redis synced: %.0f/s; claims are %.2f of it", asynq, rate/asynq)
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
	base := f.pages()
	return func() (sum int) {
		answer, err := http.Get(base + "metrics")
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
	for ended := f.counter(endedFar); ended() < items; time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > 3*time.Minute {
			t.Fatalf("%d of %d after %s", ended(), items, time.Since(begun))
		}
	}
	rate = float64(items) / time.Since(begun).Seconds()
	engineNow, workingNow := spent()
	per := func(d time.Duration) time.Duration { return (d / time.Duration(items)).Round(10 * time.Microsecond) }
	return f, rate, fmt.Sprintf("%s of processor in the engine and %s in the worker for each", per(engineNow-engine), per(workingNow-working))
}
