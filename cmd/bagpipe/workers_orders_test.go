package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A person stops a worker, which begins nothing more until it is resumed; told to end twice it gives back what it
// has, with exit code 130, and another does it; one that is silent and has nothing can be forgotten.
func TestOrdersToAWorker(t *testing.T) {
	t.Parallel()
	f := newFleetWith(t, "30s", "  - name: derive\n    command: [far-robot, wait]\n", "{far/derive: {only: true}}")
	first := f.worker("w1", "bytes: transfer\n")
	f.ok("workers", "stop", "w1")
	f.await("the stop", func() bool { return f.state("w1") == "stopped" })
	f.folder("a")
	f.await("why", func() bool {
		return strings.Contains(f.ok("why", "a"), "needs far-robot: w1 has it, and is stopped")
	})
	if f.exists("begun-a-w1") || !first.running() {
		t.Error("a stopped worker began a step, or ended")
	}
	f.ok("workers", "resume", "w1")
	f.await("the robot", func() bool { return f.exists("begun-a-w1") })
	refused := f.start("workers", "forget", "w1")
	if out := refused.code(1); !strings.Contains(out, "worker w1 is ready and has 1 attempt") {
		t.Errorf("%s", out)
	}
	first.signal(syscall.SIGTERM)
	f.await("draining", func() bool { return strings.Contains(first.out.String(), "draining, 1 at work") })
	first.signal(syscall.SIGTERM)
	first.code(130)
	f.worker("w2", "bytes: transfer\n")
	f.await("the robot at the other", func() bool { return f.exists("begun-a-w2") })
	f.write("go", "")
	f.done("a")
	if log := f.ok("log", "a"); !strings.Contains(log, "worker w1 gave it back") || f.effects("effect-a") != 1 {
		t.Errorf("the log, after %d effects: %s", f.effects("effect-a"), log)
	}
	f.await("silence", func() bool { return f.state("w1") == "silent" })
	f.ok("workers", "forget", "w1")
	f.await("it to be forgotten", func() bool { return f.state("w1") == "" && f.state("w2") == "ready" })
}

// A step that is on offer to all workers is not done by the one that is free first, once a person gave its item to another.
func TestAStepOnOfferIsGivenToAWorker(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "  - name: derive\n    command: [far-robot, wait]\n", "{far/derive: {only: true}}")
	f.worker("w1", "bytes: transfer\n")
	f.folder("a")
	f.folder("c")
	f.await("the robots", func() bool { return f.exists("begun-a-w1") && f.exists("begun-c-w1") })
	f.folder("b")
	f.await("the offer", func() bool { return f.status().Get("offers.@values.0").Int() == 1 })
	f.ok("run", "--item", "b", "--on", "w2")
	f.write("go", "")
	f.done("a", "c")
	f.worker("w2", "bytes: transfer\n")
	f.done("a", "b", "c")
	if by := f.agents("b", "derive"); len(by) != 1 || by[0] != "w2" {
		t.Errorf("b was done by %v", by)
	}
}

// A lease that settings make shorter counts for workers that are connected, at once: none is taken for silent, nor loses what it has.
func TestALeaseIsMadeShorter(t *testing.T) {
	t.Parallel()
	f := newFleetWith(t, "60s", "  - name: derive\n    command: [far-robot, wait]\n", "{far/derive: {only: true}}")
	f.worker("w", "bytes: transfer\n")
	f.must(edit(filepath.Join(f.dir, "bagpipe.yaml"), "lease: 60s", "lease: 3s"))
	f.folder("a")
	f.await("the robot", func() bool { return f.exists("begun-a-w") })
	time.Sleep(7 * time.Second) // more than two leases, and less than a third of the one before
	if state := f.state("w"); state != "ready" {
		t.Errorf("the worker is %s", state)
	}
	f.write("go", "")
	f.done("a")
	if attempts := f.step("a", "derive").Get("attempts").Array(); len(attempts) != 1 {
		t.Errorf("attempts: %v", attempts)
	}
}

// lister says which of the item's folders it was given.
const lister = "#!/bin/sh\ncd \"$BAGPIPE_ITEM_DIR\" && echo given: $(ls -d source content derived 2>/dev/null)\n"

// Placement counts for items in flight: what it asks for no more, an item that waits for it does not wait for. Folders
// that are not named are not sent. Items that a person gives to a worker, tried again or run, are done there, and a step that is
// done once for a batch whose last steps ran at workers is done once, there.
func TestWhereItemsInFlightGo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "  - name: derive\n    command: [far-robot]\n  - name: pick\n    command: [far-robot, picky]\n    retries: 0\n  - name: look\n    command: [lister]\n",
		"{far/derive: {only: true}, far/pick: {only: true}, far/look: {only: true, send: [derived], labels: {gpu: a100}}, flock/read: {only: true}, flock/report: {only: true}}")
	f.workflow("flock", "  - name: read\n    command: [far-robot]\n  - name: report\n    onBatchComplete: true\n    command: [far-robot, report]\n")
	program := filepath.Join(f.top, "lister")
	f.must(os.WriteFile(program, []byte(lister), 0o755))
	more := fmt.Sprintf("  - command: [%s]\nbytes: transfer\n", program)
	f.worker("w1", more)
	f.folder("tried")
	f.await("the failure", func() bool { return len(f.labels("failed")) == 1 })
	f.worker("w2", more)
	f.ok("step", "retry", "tried", "pick", "--on", "w2", "-m", "there")
	f.await("why", func() bool {
		return strings.Contains(f.ok("why", "tried"), "needs lister with gpu=a100")
	})
	if by := f.agents("tried", "pick"); len(by) != 2 || by[1] != "w2" {
		t.Errorf("pick was done by %v", by)
	}
	settings, err := os.ReadFile(filepath.Join(f.dir, "bagpipe.yaml"))
	f.must(err)
	f.write("ws/bagpipe.yaml", strings.Replace(string(settings), ", labels: {gpu: a100}", "", 1))
	f.done("tried")
	if a := f.step("tried", "look").Get("attempts.0"); a.Get("message").String() != "given: derived" || !strings.HasPrefix(a.Get("agent").String(), "w2@") {
		t.Errorf("look: %s", a)
	}
	f.ok("step", "disable", "far/derive", "-m", "not yet")
	labels := []string{"tried"}
	for _, label := range []string{"run-a", "run-b", "run-c"} {
		f.folder(label)
		f.ok("run", "--item", label, "--on", "w2")
		labels = append(labels, label)
	}
	f.ok("step", "enable", "far/derive")
	f.done(labels...)
	for _, label := range labels[1:] {
		for _, step := range []string{"derive", "pick", "look"} {
			if by := f.agents(label, step); len(by) != 1 || by[0] != "w2" {
				t.Errorf("%s: %s was done by %v", label, step, by)
			}
		}
	}
	for _, name := range []string{"in/one-of", "in/two-of"} {
		f.write(name, name)
	}
	f.ok("add", "--workflow", "flock", "--batch", "june", "--batch-close", filepath.Join(f.top, "in/one-of"), filepath.Join(f.top, "in/two-of"))
	f.done(append(labels, "one-of", "two-of")...)
	reports := 0
	for _, label := range []string{"one-of", "two-of"} {
		if a := f.step(label, "report"); a.Get("status").String() == "completed" {
			reports++
			if agent := a.Get("attempts.0.agent").String(); !strings.HasPrefix(agent, "w") || strings.Contains(agent, "engine") {
				t.Errorf("the report was made by %s", agent)
			}
		}
	}
	if n := f.effects("effect-one-of") + f.effects("effect-two-of"); reports != 1 || n != 3 {
		t.Errorf("%d reports, %d effects of two items", reports, n)
	}
	f.ok("audit")
}
