package main

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// The disk with the workspace and the store of offers is full, and the stream is to be made anew there: nothing is granted, and
// status says why. With room again the stream is rebuilt by itself, and steps are done.
func TestTheDiskOfTheBrokerIsFull(t *testing.T) {
	t.Parallel()
	f := &fleet{bench: newBench(t), port: twoPorts(t)}
	f.mount("tmpfs", f.dir, "-t", "tmpfs", "-o", "size=8g")
	f.ok("init", f.dir)
	f.must(hasten(f.dir))
	f.far("1s", "  - name: derive\n    robot: noop\n", "{far/derive: {only: true}}")
	f.offering("w", 2, "")
	f.addMany("before", 1)
	f.done("before-0")
	f.ok("step", "disable", "far/derive", "-m", "not yet")
	f.addMany("full", 3)
	f.ok("step", "enable", "far/derive")
	f.done("before-0", "full-0", "full-1", "full-2")
	var at unix.Statfs_t
	f.must(unix.Statfs(f.dir, &at))
	resize := func(size string) {
		if out, err := exec.Command("mount", "-o", "remount,size="+size, f.dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	resize(strconv.FormatUint((at.Blocks-at.Bfree)*uint64(at.Bsize), 10))
	f.await("word of it", func() bool { return strings.Contains(f.engine.out.String(), "paused: ") })
	time.Sleep(2 * time.Second)             // the engine takes what was granted out of the stream each second
	rebuild := f.start("remote", "rebuild") // whether it can or not, it has the server write
	<-rebuild.end
	if out := f.ok("status"); !strings.Contains(out, "paused: ") {
		t.Errorf("status: %s", out)
	}
	resize("8g")
	f.addMany("after", 3)
	f.await("the steps", func() bool { return len(f.labels("completed")) == 7 })
	f.await("the stream", func() bool { return strings.Contains(f.ok("remote", "verify"), "0 on offer") })
	f.engine.signal(syscall.SIGTERM)
	f.engine.code(0)
	f.git("fsck", "--strict", "--no-dangling")
}
