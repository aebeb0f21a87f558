package main

import (
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// How large the figures of workers are; make bench has them as they stand.
var (
	benchLarge   = flag.Int("large", 1024, "MiB of the file that a worker fetches in TestFiguresOfWorkers")
	benchSmall   = flag.Int("small", 20_000, "how many files of 4 KiB it fetches")
	benchReady   = flag.Int("ready", 100_000, "how many steps are ready while the state of NATS is deleted")
	benchRunning = flag.Int("running", 100, "how many attempts run while the engine is killed")
)

// until waits for what takes longer than a test may.
func (f *fleet) until(what string, is func() bool) time.Duration {
	f.t.Helper()
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		took := time.Since(begun)
		if is() {
			return took
		}
		if took > 5*time.Minute {
			f.t.Fatalf("%s did not come within %s", what, took)
		}
	}
}

// spent reads what a process has taken of the processor, and holds in memory in bytes.
func (p *process) spent() (cpu time.Duration, memory int) {
	at := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	stat, _ := os.ReadFile(at + "stat") // zeros where the process is gone
	_, rest, _ := strings.Cut(string(stat), ") ")
	if words := strings.Fields(rest); len(words) > 21 {
		user, _ := strconv.Atoi(words[11])
		system, _ := strconv.Atoi(words[12])
		pages, _ := strconv.Atoi(words[21])
		return time.Duration(user+system) * time.Second / 100, pages * os.Getpagesize()
	}
	return 0, 0
}

// restSteps are a step to begin with, one of this machine and one that a worker does.
const restSteps = "  - name: first\n    robot: noop\n  - name: near\n    robot: noop\n  - name: derive\n    robot: noop\n"

// oneStep is how long a no-op step takes from when it is ready to its end while nothing else is done, here and at a worker: medians of 20.
func (f *fleet) oneStep() (here, away time.Duration) {
	f.t.Helper()
	var nears, fars []time.Duration
	for i := range 20 {
		label := fmt.Sprintf("one-%d", i)
		f.write("in/"+label, label)
		f.ok("add", "--workflow", "far", filepath.Join(f.top, "in", label))
		f.until("it", func() bool { return len(f.labels("completed")) == i+1 })
		ended := func(step string) time.Time { return f.step(label, step).Get("attempts.0.ended").Time() }
		nears, fars = append(nears, ended("near").Sub(ended("first"))), append(fars, ended("derive").Sub(ended("near")))
	}
	slices.Sort(nears)
	slices.Sort(fars)
	return nears[10], fars[10]
}

// figuresAtRest are what workers cost while nothing is to be done, and one step beside the same step of this machine, through the server
// of the engine's process and through three brokers.
func figuresAtRest(t *testing.T) {
	f := newFleetWith(t, "30s", restSteps, "{far/derive: {only: true}}")
	w := f.offering("w", 4, "")
	plain := newBench(t).start("run", "--watch")
	here, away := f.oneStep()
	t.Logf("one no-op step, idle, medians of 20: from ready to end %s here, %s at a worker (target: 10 ms more)", here, away)
	const rest = 20 * time.Second
	all := []*process{plain, f.engine, w}
	var before, after [3]time.Duration
	var memory [3]int
	for i, p := range all {
		before[i], _ = p.spent()
	}
	time.Sleep(rest)
	for i, p := range all {
		after[i], memory[i] = p.spent()
	}
	share := func(i int) float64 { return 100 * (after[i] - before[i]).Seconds() / rest.Seconds() }
	t.Logf("idle for %s: an engine without workers %.2f %% of a core and %d MB, serve --nats with one %.2f %% and %d MB, the worker %.2f %% and %d MB (targets: + 2 %%, + 100 MB, 40 MB)",
		rest, share(0), memory[0]>>20, share(1), memory[1]>>20, share(2), memory[2]>>20)
	f.engine.kill()
	c := newCluster(t, restSteps, "{far/derive: {only: true}}")
	c.ok("remote", "invite", "w", filepath.Join(c.top, "w.key"))
	c.worker("w", "  - builtin: noop\nbytes: transfer\n")
	here, away = c.oneStep()
	t.Logf("the same through three brokers: %s here, %s at a worker (target: 25 ms more)", here, away)
	c.engine.kill()
}

// figuresOfBytes are how fast a worker fetches one large file, beside sha256sum and curl, and many small ones, beside tar through
// a socket.
func figuresOfBytes(t *testing.T) {
	f := newFleetWith(t, "30s", "  - name: derive\n    robot: noop\n", "{far/derive: {only: true}}")
	f.offering("w", 1, "")
	fetched := func(label string) float64 {
		before := f.status().Get("classes.noop.fetch").Float()
		n := len(f.labels("completed"))
		f.ok("add", "--workflow", "far", filepath.Join(f.top, "in", label))
		f.until(label, func() bool {
			return len(f.labels("completed")) == n+1 && f.status().Get("classes.noop.fetch").Float() > before
		})
		return f.status().Get("classes.noop.fetch").Float() - before
	}
	f.must(os.MkdirAll(filepath.Join(f.top, "in/large"), 0o755))
	large := filepath.Join(f.top, "in/large/film")
	out, err := os.Create(large)
	f.must(err)
	_, err = io.CopyN(out, rand.Reader, int64(*benchLarge)<<20)
	f.must(err)
	f.must(out.Close())
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(large))))
	defer server.Close()
	sum := f.timed(exec.Command("sha256sum", large))
	curl := f.timed(exec.Command("curl", "-sS", "-o", filepath.Join(f.top, "curled"), server.URL+"/film"))
	took := fetched("large")
	t.Logf("%d MiB: fetched and verified in %.2f s; sha256sum %.2f s, curl %.2f s: %.2f of the slower (target: 0.7)", *benchLarge, took, sum, curl, max(sum, curl)/took)
	for i := range *benchSmall {
		f.write(fmt.Sprintf("in/small/%03d/%d", i/100, i), strings.Repeat(fmt.Sprintf("%08d", i), 512))
	}
	tar := f.tarred(filepath.Join(f.top, "in/small"), filepath.Join(f.top, "tarred"))
	took = fetched("small")
	t.Logf("%d files of 4 KiB: fetched in %.2f s; tar through a socket %.2f s: %.2f of it (target: 0.5)", *benchSmall, took, tar, tar/took)
	f.engine.kill()
}

func (f *fleet) timed(c *exec.Cmd) float64 {
	f.t.Helper()
	begun := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		f.t.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
	return time.Since(begun).Seconds()
}

// tarred sends a folder through a socket with tar at both ends.
func (f *fleet) tarred(from, to string) float64 {
	f.t.Helper()
	f.must(os.Mkdir(to, 0o755))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	f.must(err)
	defer l.Close()
	begun := time.Now()
	sent := make(chan error, 1)
	go func() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			send := exec.Command("tar", "-C", from, "-cf", "-", ".")
			send.Stdout = c
			err = send.Run()
			_ = c.Close()
		}
		sent <- err
	}()
	c, err := l.Accept()
	f.must(err)
	take := exec.Command("tar", "-C", to, "-xf", "-")
	take.Stdin = c
	f.must(take.Run())
	f.must(<-sent)
	return time.Since(begun).Seconds()
}

// addMany adds items of one file each.
func (f *fleet) addMany(prefix string, n int) {
	f.t.Helper()
	for from := 0; from < n; from += 1000 {
		args := []string{"add", "--workflow", "far"}
		for i := from; i < min(from+1000, n); i++ {
			name := fmt.Sprintf("in/%s-%d", prefix, i)
			f.write(name, name)
			args = append(args, filepath.Join(f.top, name))
		}
		f.ok(args...)
	}
}

// figuresOfFaults are how long it takes until steps are granted again: the state of NATS deleted, and the engine killed while
// attempts run.
func figuresOfFaults(t *testing.T) {
	f := newFleetWith(t, "30s", "  - name: derive\n    command: [sleep, '10']\n    requires: [register]\n  - name: count\n    robot: noop\n    requires: [register]\n", "{far/derive: {only: true}, far/count: {only: true}}")
	f.offering("w", *benchRunning, "")
	add := f.addMany
	f.ok("step", "disable", "far/count", "-m", "not yet")
	add("running", *benchRunning)
	f.until("the attempts", func() bool { return int(f.status().Get("workers.0.running.#").Int()) == *benchRunning })
	f.engine.kill()
	begun := time.Now()
	f.serve()
	var log string
	f.until("their ends", func() bool {
		log = f.git("log", "--format=%s")
		return strings.Count(log, "derive: completed") == *benchRunning
	})
	took := time.Since(begun)
	t.Logf("the engine killed with %d attempts running: %d begun, %d completed, all %s after it was killed (target: none lost)", *benchRunning,
		strings.Count(log, "derive: in-progress"), strings.Count(log, "derive: completed"), took.Round(100*time.Millisecond))
	f.ok("step", "disable", "far/derive", "-m", "no more")
	add("ready", *benchReady)
	f.ok("step", "enable", "far/count")
	done := func() int { return int(f.status().Get("workers.0.done").Int()) }
	f.until("the first", func() bool { return done() > *benchRunning })
	for what, lose := range map[string]func(){"deleted": func() {
		f.until("an end of its files", func() bool { return os.RemoveAll(filepath.Join(f.dir, ".bagpipe/nats")) == nil })
	}, "made anew": func() { f.ok("remote", "rebuild") }} {
		epoch, before, known := f.status().Get("epoch").String(), done(), 4**benchRunning // what it had or might be offered then
		lose()
		took = f.until("steps", func() bool {
			if known != *benchRunning && f.status().Get("epoch").String() != epoch {
				before, known = done(), *benchRunning // what it had
			}
			return done() > before+known+1
		})
		t.Logf("the state of NATS %s, %d were ready: more were done %s later (target: 5 s)", what, *benchReady, took.Round(10*time.Millisecond))
	}
	f.engine.kill()
}

// figuresOfLeaders are how long no step is done while each of three brokers is killed in turn, one of which leads.
func figuresOfLeaders(t *testing.T) {
	c := newCluster(t, "  - name: derive\n    command: [far-robot]\n", "{far/derive: {only: true}}")
	c.ok("remote", "invite", "w", filepath.Join(c.top, "w.key"))
	c.worker("w", "bytes: transfer\n")
	var longest time.Duration
	for i := range c.brokers {
		c.brokers[i].kill()
		begun := time.Now()
		c.folder(fmt.Sprintf("killed-%d", i))
		c.until("the step", func() bool { return len(c.labels("completed")) == i+1 })
		longest = max(longest, time.Since(begun))
		c.brokers[i] = c.broker(i)
		c.until("the broker's return", c.whole)
	}
	t.Logf("one of three brokers killed, each in turn: a step was done %s after that at the latest (target: 10 s)", longest.Round(10*time.Millisecond))
	c.engine.kill()
}
