package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// gated is a step that says it has begun and goes on when it may; its effect can
// be counted.
func gated(name string) string {
	return fmt.Sprintf("  - name: %[1]s\n    command: [sh, -c, 'touch \"$TOP/begun-%[1]s-$BAGPIPE_LABEL\"; "+
		"until [ -e \"$TOP/go-%[1]s\" ]; do sleep 0.02; done; echo done >>\"$TOP/effect-%[1]s-$BAGPIPE_LABEL\"']\n", name)
}

func (b *bench) addItems(workflow string, n int) {
	b.t.Helper()
	args := []string{"add", "--workflow", workflow}
	for i := range n {
		b.write(fmt.Sprintf("in/i%d", i), "x")
		args = append(args, filepath.Join(b.top, fmt.Sprintf("in/i%d", i)))
	}
	b.ok(args...)
}

func TestTwoRunsShareTheWork(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const items = 12
	b.workflow("shared", gated("one")+gated("two"))
	b.addItems("shared", items)
	runs := []*process{b.start("run", "-j", "2"), b.start("run", "-j", "2")}
	b.await("four steps begun by two engines", func() bool {
		begun, _ := filepath.Glob(filepath.Join(b.top, "begun-one-*"))
		return len(begun) == 4
	})
	b.write("go-one", "")
	b.write("go-two", "")
	for _, r := range runs {
		r.code(0)
	}
	b.atRest(items)
	runners := map[string]bool{}
	for i := range items {
		for _, step := range []string{"one", "two"} {
			if n := b.effects(fmt.Sprintf("effect-%s-i%d", step, i)); n != 1 {
				t.Errorf("step %s of item i%d had its effect %d times", step, i, n)
			}
		}
		for _, a := range gjson.Get(b.ok("show", fmt.Sprintf("i%d", i), "--json"), `workflows.0.steps.#(step=="one").attempts`).Array() {
			runners[a.Get("agent").String()] = true
		}
	}
	if len(runners) != 2 {
		t.Errorf("the work was done by %v", runners)
	}
}

// A command's process dies with the bagpipe that is killed; the next run resumes
// the very step, and its effect comes once.
func TestKillInTheMiddleOfEveryCommandStep(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	steps := []string{"one", "two", "three"}
	b.workflow("gated", gated("one")+gated("two")+gated("three"))
	b.addItems("gated", 2)
	for _, s := range steps {
		r := b.start("run")
		b.await("both items in "+s, func() bool { return b.exists("begun-"+s+"-i0") && b.exists("begun-"+s+"-i1") })
		if !r.kill() {
			t.Fatalf("the run ended by itself: %s", r.out.String())
		}
		b.write("go-"+s, "")
	}
	b.ok("run")
	b.atRest(2)
	for _, s := range steps {
		for i := range 2 {
			if n := b.effects(fmt.Sprintf("effect-%s-i%d", s, i)); n != 1 {
				t.Errorf("step %s of item i%d had its effect %d times", s, i, n)
			}
		}
	}
}

// A run of the shipped workflow is killed after the n-th move of the branch that
// is seen: every sixth one, or, as a soak, every one and a little later, so at
// every step's in-progress and every step's end.
func TestKillAtEveryCommit(t *testing.T) {
	t.Parallel()
	for round := range soak(1, 20) {
		for n := 0; ; n += soak(6, 1) {
			if !killAtMove(t, n, time.Duration(round)*300*time.Microsecond) {
				break
			}
		}
	}
}

// killAtMove answers false when the run ended before the n-th move.
func killAtMove(t *testing.T, n int, later time.Duration) (killed bool) {
	b := newBench(t)
	b.ok("status") // commits the settings
	b.drop("zip")
	r := b.start("run", "-j", "1")
	moved := b.awaitMoves(r, n)
	if later > 0 {
		<-time.After(later)
	}
	killed = r.kill() && moved
	b.ok("run")
	b.atRest(1)
	b.deposits(1)
	return killed
}

// awaitMoves waits until the branch has moved n times, or the process ended.
func (b *bench) awaitMoves(p *process, n int) bool {
	ref := filepath.Join(b.dir, ".git/refs/heads/main")
	at, _ := os.ReadFile(ref)
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for n > 0 {
		select {
		case <-p.end:
			return false
		case <-tick.C:
		}
		if now, err := os.ReadFile(ref); err == nil && string(now) != string(at) {
			at = now
			n--
		}
	}
	return true
}

// Killed while drops are being taken in, at the first sign of each in intake/.
func TestKillWhileTakingIn(t *testing.T) {
	t.Parallel()
	for range soak(1, 60) {
		b := newBench(t)
		b.ok("status")
		b.drop("zip", "bag", "folder", "file", "tar.gz")
		kills := 0
		for range 3 {
			r := b.start("run")
			ok := eventuallyFast(func() bool {
				taken, _ := os.ReadDir(filepath.Join(b.dir, "intake"))
				return len(taken) > 0 || !r.running()
			})
			if !ok {
				t.Fatal("nothing is taken in")
			}
			if r.kill() {
				kills++
			}
		}
		if kills == 0 {
			t.Error("no run was killed")
		}
		b.ok("run")
		b.atRest(5)
		b.deposits(5)
	}
}

func eventuallyFast(yes func() bool) bool {
	end := time.After(deadline)
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-end:
			return false
		case <-tick.C:
		}
	}
	return true
}

// The first SIGTERM starts no new step and lets those that run finish.
func TestSigtermDrains(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("gated", gated("one"))
	b.addItems("gated", 3)
	r := b.start("run", "--watch", "-j", "1")
	b.await("a step begun", func() bool { return b.begun("one") == 1 })
	r.signal(syscall.SIGTERM)
	b.await("the item's step in progress still", func() bool {
		return strings.Contains(b.ok("status"), "1 engine running") && b.begun("one") == 1
	})
	if !r.running() {
		t.Fatal("it did not wait for the step")
	}
	b.write("go-one", "")
	out := r.code(0)
	if !strings.Contains(out, "a second signal stops them") || !strings.Contains(out, "1 completed") {
		t.Errorf("said:\n%s", out)
	}
	if got := b.labels("completed"); len(got) != 1 || b.begun("one") != 1 {
		t.Errorf("completed %v, begun %d; only the first was to finish", got, b.begun("one"))
	}
	b.ok("run")
	b.atRest(3)
}

func (b *bench) begun(step string) int {
	found, _ := filepath.Glob(filepath.Join(b.top, "begun-"+step+"-*"))
	return len(found)
}

// The second signal stops what runs; it is resumed, and costs no retry.
func TestSecondSignalStops(t *testing.T) {
	t.Parallel()
	for _, watch := range []bool{true, false} {
		b := newBench(t)
		b.workflow("gated", gated("one"))
		b.addItems("gated", 2)
		args, want := []string{"run", "-j", "1"}, 130
		if watch {
			args = append(args, "--watch")
		}
		r := b.start(args...)
		b.await("a step begun", func() bool { return b.begun("one") == 1 })
		r.signal(syscall.SIGINT)
		b.await("drain", func() bool { return r.running() })
		r.signal(syscall.SIGTERM)
		if watch {
			r.signal(syscall.SIGTERM)
			<-r.end
		} else {
			r.code(want)
		}
		if got := b.labels("failed"); len(got) != 0 {
			t.Errorf("failed: %v", got)
		}
		if n := b.effects("effect-one-i0") + b.effects("effect-one-i1"); n != 0 {
			t.Errorf("a stopped step had its effect %d times", n)
		}
		b.write("go-one", "")
		b.ok("run")
		b.atRest(2)
	}
}

// Commands of several processes act on items that a watching run works on.
func TestWatchWithActingCommands(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("agree", "  - name: look\n    robot: noop\n  - name: agree\n    manual: true\n  - name: done\n    robot: noop\n")
	r := b.start("run", "--watch")
	const items = 12
	b.addItems("agree", items)
	b.await("all wait for a person", func() bool {
		return gjson.Get(b.ok("queue", "/agree", "--json"), "#").Int() == items
	})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := w; i < items; i += 4 {
				label := fmt.Sprintf("i%d", i)
				b.start("hold", label, "-m", "wait").code(0)
				b.start("step", "complete", label, "agree", "-m", "seen").code(0)
				b.start("release", label).code(0)
			}
		})
	}
	wg.Wait()
	b.await("all done", func() bool { return len(b.labels("completed")) == items })
	r.signal(syscall.SIGTERM)
	r.code(0)
	b.atRest(items)
	if n := strings.Count(b.git("log", "--author=Ada Keeper", "--format=%s"), "agree: completed"); n != items {
		t.Errorf("the history has %d agreements by the person, want %d", n, items)
	}
}

// A command that waits for a lock that another process keeps ends with the second signal.
func TestASecondSignalEndsACommandThatWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("w", "  - name: look\n    manual: true\n")
	b.addItems("w", 1)
	lock, err := os.OpenFile(filepath.Join(b.dir, ".bagpipe/publish.lock"), os.O_RDONLY|os.O_CREATE, 0o666)
	b.must(err)
	defer lock.Close()
	b.must(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	hold := b.start("hold", "i0", "-m", "x")
	b.await("it waits for the lock", func() bool {
		opened, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", hold.cmd.Process.Pid))
		return slices.ContainsFunc(opened, func(fd string) bool {
			to, _ := os.Readlink(fd)
			return to == lock.Name() || to == filepath.Join(b.dir, ".bagpipe/publish.next")
		})
	})
	for range 3 { // a signal may come while the one before is being looked at
		_ = hold.cmd.Process.Signal(syscall.SIGINT)
		time.Sleep(200 * time.Millisecond)
	}
	hold.code(130)
	b.must(syscall.Flock(int(lock.Fd()), syscall.LOCK_UN))
	if out := b.ok("status"); !strings.HasPrefix(out, "1 item, 0 held") {
		t.Errorf("%s", out)
	}
}
