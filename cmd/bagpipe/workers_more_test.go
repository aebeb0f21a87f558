package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"
)

// agents are who made the attempts at a step, in order.
func (f *fleet) agents(label, step string) (all []string) {
	f.t.Helper()
	for _, a := range f.step(label, step).Get("attempts").Array() {
		name, _, _ := strings.Cut(a.Get("agent").String(), "@")
		all = append(all, name)
	}
	return all
}

// A step that failed at one worker is tried by another. A worker whose robots fail leaves; what it has comes to
// its end.
func TestAFailureGoesElsewhere(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "  - name: derive\n    command: [far-robot, picky]\n    retries: 3\n    backoff: {first: 1ms, most: 1ms}\n", "{far/derive: {only: true}}")
	first := f.worker("w1", "bytes: transfer\nerrors: {count: 2, window: 3}\n")
	f.folder("a")
	f.await("a failure", func() bool { return len(f.agents("a", "derive")) >= 1 })
	f.worker("w2", "bytes: transfer\n")
	f.done("a")
	agents := f.agents("a", "derive")
	if agents[len(agents)-1] != "w2" {
		t.Errorf("the attempts: %v", agents)
	}
	for i := 0; first.running() && i < 8; i++ {
		f.folder("more-" + string(rune('a'+i)))
		f.await("the item", func() bool { return len(f.labels("completed")) == i+2 })
	}
	if out := first.code(5); !strings.Contains(out, "its robots fail: 2 of the last 3") {
		t.Errorf("%s", out)
	}
	for label := range strings.FieldsSeq("a more-a more-b more-c more-d more-e more-f more-g more-h") {
		for i, name := range f.agentsIf(label) {
			if i > 0 && name == "w1" {
				t.Errorf("%s was tried by w1 again: %v", label, f.agents(label, "derive"))
			}
		}
	}
}

// agentsIf is agents of an item that may not be there.
func (f *fleet) agentsIf(label string) []string {
	for _, there := range f.labels("completed") {
		if there == label && label != "a" { // a was tried while w1 was alone
			return f.agents(label, "derive")
		}
	}
	return nil
}

// An item is done by the worker that is named, submitted or tried again; placed steps are not done here with -j 0;
// one that no worker could do in time is not available, which passes an optional step over.
func TestWhichWorker(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "  - name: never\n    command: [nobody-has-it]\n    optional: true\n  - name: derive\n    command: [far-robot]\n    requires: [register]\n  - name: count\n    robot: inventory\n    requires: [derive]\n",
		"{far/derive: {only: true}, far/count: {}, far/never: {only: true, wait: 1s}}")
	f.engine.signal(syscall.SIGTERM)
	f.engine.code(0)
	web := onePort(t)
	f.engine = f.start("serve", "-j", "0", "--nats", "--listen", "127.0.0.1:0", "--nats-listen", fmt.Sprintf("127.0.0.1:%d", f.port), "--nats-websocket", fmt.Sprintf("127.0.0.1:%d", web))
	for _, name := range []string{"w1", "w2"} {
		w := f.worker(name, "bytes: transfer\n")
		if name == "w2" { // it comes by the web alone
			w.signal(syscall.SIGTERM)
			w.code(0)
			f.start("worker", "--connect", fmt.Sprintf("wss://127.0.0.1:%d", web), "--key", filepath.Join(f.top, "w2.key"), filepath.Join(f.top, "w2.yaml"))
			f.await("w2 by the web", func() bool { return f.state("w2") == "ready" })
		}
	}
	base := f.pages()
	f.write("token", f.tokenOf("operator", "")+"\n")
	for _, label := range []string{"a", "b", "c", "d"} {
		f.write("in/"+label+"/one", "one "+label)
		f.ok("submit", "--server", base, "--token", filepath.Join(f.top, "token"), "--workflow", "far", "--on", "w2", filepath.Join(f.top, "in", label))
	}
	f.done("a", "b", "c", "d")
	if n := f.counter(endedFar)(); n < 8 {
		t.Errorf("%d steps ended by the engine's figures; two of each of four items did at workers", n)
	}
	for _, label := range []string{"a", "b", "c", "d"} {
		if shown := f.step(label, "never"); shown.Get("status").String() != "skipped" || !strings.Contains(shown.String(), "no worker that could do nobody-has-it came within 1s") {
			t.Errorf("%s: never: %s", label, shown)
		}
		for _, step := range []string{"derive", "count"} {
			if by := f.agents(label, step); len(by) != 1 || by[0] != "w2" {
				t.Errorf("%s: %s was done by %v", label, step, by)
			}
		}
	}
}

// Kept inputs are run through a robot at a worker, and nothing is committed; workers tell what they are, and figures
// by kind of step and worker.
func TestWorkersAreLookedAt(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "  - name: derive\n    command: [far-robot, now]\n    keepInputs: true\n", "{far/derive: {only: true}}")
	w := f.worker("w", "bytes: transfer\n")
	f.folder("a")
	f.done("a")
	before := f.git("rev-parse", "HEAD")
	told := f.ok("workers", "test", "w", "a", "derive", "--json")
	if gjson.Get(told, "status").String() != "completed" || gjson.Get(told, "message").String() != "done by w" {
		t.Errorf("the rehearsal: %s", told)
	}
	text, err := os.ReadFile(filepath.Join(gjson.Get(told, "dir").String(), "scratch/derived/all.txt"))
	if err != nil || !strings.Contains(string(text), "two\n") {
		t.Errorf("what it made: %q, %v", text, err)
	}
	if after := f.git("rev-parse", "HEAD"); after != before {
		t.Error("a rehearsal was committed")
	}
	if n := f.effects("effect-a"); n != 2 {
		t.Errorf("the robot ran %d times", n)
	}
	for _, verb := range []string{"meta", "show"} {
		if out := f.ok("workers", verb, "w"); !strings.Contains(out, "far-robot 7, program ") || !strings.Contains(out, ", built-in, takes each by match ") || !strings.Contains(out, ", dpi=300, lang=[deu lat]\n") {
			t.Errorf("%s: %s", verb, out)
		}
	}
	f.await("figures", func() bool { return f.status().Get("classes.far-robot.attempts").Int() > 0 })
	if out := f.ok("monitor", "--times", "1", "--every", "1s"); !strings.Contains(out, "class  far-robot") || !strings.Contains(out, "worker w ") {
		t.Errorf("monitor: %s", out)
	}
	if run := f.status().Get("classes.far-robot.run").Float(); run <= 0 {
		t.Errorf("the robot ran for %v s", run)
	}
	inputs, err := filepath.Glob(filepath.Join(f.dir, "items/*/*/*/*/*/inputs/derive.*"))
	if f.must(err); len(inputs) != 1 {
		t.Fatalf("kept: %v", inputs)
	}
	w.signal(syscall.SIGTERM)
	if out := w.code(0); !strings.Contains(out, "draining, 0 at work") {
		t.Errorf("%s", out)
	}
	config, err := os.ReadFile(filepath.Join(f.top, "w.yaml"))
	f.must(err)
	f.write("w.yaml", strings.Replace(string(config), "    env: {WORKER: w}\n", "    env: {WORKER: w}\n    warmUpWith: ["+inputs[0]+"]\n", 1))
	f.start("worker", "--key", filepath.Join(f.top, "w.key"), filepath.Join(f.top, "w.yaml"))
	f.await("the worker, warm", func() bool { return f.state("w") == "ready" && f.effects("effect-a") == 3 })
}
