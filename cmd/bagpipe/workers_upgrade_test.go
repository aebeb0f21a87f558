package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The engine is upgraded while a robot runs: the attempt goes on, with the worker of the build before, whose programs do later
// steps, too. A built-in robot is one of the engine's build: a step of it waits for a worker of the new one.
func TestAnEngineIsUpgraded(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "  - name: derive\n    command: [far-robot, wait]\n  - name: again\n    command: [far-robot]\n  - name: count\n    robot: inventory\n",
		"{far/derive: {only: true}, far/again: {only: true}, far/count: {only: true}}")
	next := filepath.Join(f.top, "bagpipe")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w -X main.version=next", "-o", next, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the next version: %v\n%s", err, out)
	}
	f.worker("w1", "bytes: transfer\n")
	f.folder("a")
	f.await("the robot", func() bool { return f.exists("begun-a-w1") })
	f.engine.signal(syscall.SIGTERM)
	f.engine.code(0)
	f.program = next
	f.serve()
	if build := f.status().Get("build").String(); build != "next" {
		t.Fatalf("the engine is of build %q", build)
	}
	f.write("go", "")
	f.await("the steps of programs", func() bool { return f.step("a", "again").Get("status").String() == "completed" })
	for _, step := range []string{"derive", "again"} {
		if attempts := f.step("a", step).Get("attempts").Array(); len(attempts) != 1 || attempts[0].Get("message").String() != "done by w1" {
			t.Errorf("%s: %v", step, attempts)
		}
	}
	if n := f.effects("effect-a"); n != 2 {
		t.Errorf("the robot acted %d times, want 2", n)
	}
	f.await("why it waits", func() bool {
		return strings.Contains(f.ok("why", "a"), "needs inventory: 1 worker connected, none has it")
	})
	f.worker("w2", "bytes: transfer\n")
	f.done("a")
	if attempts := f.step("a", "count").Get("attempts").Array(); len(attempts) != 1 || !strings.HasPrefix(attempts[0].Get("agent").String(), "w2@") {
		t.Errorf("count: %v", attempts)
	}
}
