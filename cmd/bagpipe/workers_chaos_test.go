package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Something of a fleet is killed, stopped, cut off or deleted again and again while steps run. Two minutes after
// the last of it nothing is left to be done; the history has each step completed once, by the attempt that was granted
// last, and the bytes are those that it tells of.
func TestKillsInAFleet(t *testing.T) {
	t.Parallel()
	f := newFleetWith(t, "1s\n  lost: 1000", "  - name: derive\n    command: [far-robot]\n  - name: count\n    robot: inventory\n", "{far/derive: {only: true}, far/count: {only: true}}")
	workers, cables := map[string]*process{}, map[string]*link{}
	for i := range 3 {
		name := fmt.Sprintf("w%d", i)
		cable, port := newLink(t, f.port)
		f.ok("remote", "invite", name, filepath.Join(f.top, name+".key"), "--url", fmt.Sprintf("nats://127.0.0.1:%d", port))
		cables[name], workers[name] = cable, f.worker(name, "bytes: transfer\n")
	}
	items := 14
	if soak(0, 1) == 1 {
		items = f.soaked(workers, cables)
	} else {
		for i := range items {
			f.folder(fmt.Sprintf("box-%d", i))
			if i%2 == 1 {
				f.trouble(workers, cables, i/2)
			}
		}
		f.await("all items", func() bool { return len(f.labels("completed")) == items })
	}
	f.engine.signal(syscall.SIGTERM)
	f.engine.code(0)
	f.git("fsck", "--strict", "--no-dangling")
	f.ok("audit", "--payload")
	f.fenced(items)
}

var chaosTime = flag.Duration("chaos", time.Hour, "how long TestKillsInAFleet goes on in make soak")

// How many items a fleet is given in an hour of make soak, together, and at most beside what it has done.
const chaosItems, chaosTogether, chaosAhead = 20_000, 50, 300

// soaked gives a fleet items, as fast as an hour has them and as it does them, while something bad is done every few
// seconds; it answers with how many. Nothing is left of them two minutes later.
func (f *fleet) soaked(workers map[string]*process, cables map[string]*link) (items int) {
	f.t.Helper()
	done, begun := 0, time.Now()
	for n := 0; time.Since(begun) < *chaosTime; n++ {
		for items < int(chaosItems*time.Since(begun)/time.Hour) && items < done+chaosAhead {
			args := []string{"add", "--workflow", "far"}
			for range chaosTogether {
				name := fmt.Sprintf("in/box-%d", items)
				f.write(name+"/one", name)
				f.write(name+"/below/two", strings.Repeat(name, 500))
				args, items = append(args, filepath.Join(f.top, name)), items+1
			}
			f.ok(args...)
			f.must(os.RemoveAll(filepath.Join(f.top, "in")))
		}
		f.trouble(workers, cables, n)
		time.Sleep(time.Duration(rand.IntN(4000)) * time.Millisecond)
		done = len(f.labels("completed"))
	}
	f.t.Logf("%d of %d items were done after %s", done, items, chaosTime)
	last := time.Now()
	for done = 0; done < items; done = len(f.labels("completed")) {
		if time.Since(last) > 2*time.Minute {
			f.t.Fatalf("two minutes after the last trouble %d of %d items are done", done, items)
		}
		time.Sleep(time.Second)
	}
	return items
}

// trouble does the n-th bad thing to some of the fleet, and mends it.
func (f *fleet) trouble(workers map[string]*process, cables map[string]*link, n int) {
	f.t.Helper()
	name := fmt.Sprintf("w%d", rand.IntN(len(workers)))
	w := workers[name]
	switch n % 7 {
	case 0:
		f.engine.kill()
		f.serve()
	case 1:
		w.signal(syscall.SIGSTOP)
		time.Sleep(1500 * time.Millisecond) // longer than a lease
		w.signal(syscall.SIGCONT)
	case 2:
		w.kill()
		workers[name] = f.worker(name, "bytes: transfer\n")
	case 3:
		f.await("the server's files to be gone", func() bool { return os.RemoveAll(filepath.Join(f.dir, ".bagpipe/nats")) == nil }) // it may be writing more
	case 4:
		f.ok("remote", "rebuild")
	case 5: // for less than a lease, or for longer
		cables[name].set(true)
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
		cables[name].set(false)
	case 6:
		f.engine.signal(syscall.SIGSTOP)
		time.Sleep(1500 * time.Millisecond)
		f.engine.signal(syscall.SIGCONT)
	}
}

// fenced reads the history: of each step every attempt begins after the one before, and none
// but the last that had begun is ever completed, once.
func (f *fleet) fenced(items int) {
	f.t.Helper()
	current, completed := map[string]string{}, map[string]int{}
	format := "%(trailers:key=Bagpipe-Item,valueonly,separator=)|%(trailers:key=Bagpipe-Step,valueonly,separator=)|%(trailers:key=Bagpipe-To,valueonly,separator=)|%(trailers:key=Bagpipe-Attempt,valueonly,separator=)"
	for line := range strings.Lines(f.git("log", "--reverse", "--format="+format)) {
		word := strings.Split(strings.TrimSpace(line), "|")
		if len(word) != 4 || word[0] == "" || word[1] == "register" {
			continue
		}
		at := word[0] + " " + word[1]
		switch word[2] {
		case "in-progress":
			current[at] = word[3]
		case "completed":
			completed[at]++
			if current[at] != word[3] {
				f.t.Errorf("%s: attempt %s was completed after %s was granted", at, word[3], current[at])
			}
		}
	}
	if len(completed) != 2*items {
		f.t.Errorf("%d steps were completed, want %d", len(completed), 2*items)
	}
	for at, n := range completed {
		if n != 1 {
			f.t.Errorf("%s was completed %d times", at, n)
		}
	}
}
