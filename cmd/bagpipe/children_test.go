package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// brood is a workspace with one item whose step makes many children.
func brood(t *testing.T, children int) *bench {
	t.Helper()
	return broodBy(t, children, "robot: split\n    with: {workflow: chick}")
}

// broodBy is brood, made by the robot that how names.
func broodBy(t *testing.T, children int, how string) *bench {
	t.Helper()
	b := newBench(t)
	b.workflow("brood", "  - name: split\n    "+how+"\n    parentLast: true\n    poolSize: 20\n  - name: after\n    robot: noop\n")
	b.workflow("chick", "  - name: peep\n    robot: noop\n")
	for i := range children {
		b.write(fmt.Sprintf("nest/%d", i), fmt.Sprint(i))
	}
	b.ok("add", "--workflow", "brood", filepath.Join(b.top, "nest"))
	return b
}

// reared wants the children there, each once, with its own bytes; all done, and
// nothing left behind.
func (b *bench) reared(children int) {
	b.t.Helper()
	b.atRest(children + 1)
	rows := gjson.Parse(b.ok("items", "--parent", "nest", "--json"))
	seen := map[string]bool{}
	for _, r := range rows.Array() {
		id, label := r.Get("item").String(), r.Get("label").String()
		data, err := os.ReadFile(filepath.Join(b.dir, layout.ItemDir(layout.ItemID(id)), "source", label))
		if seen[label] || err != nil || string(data) != label {
			b.t.Errorf("child %s: twice %v, %q, %v", label, seen[label], data, err)
		}
		seen[label] = true
	}
	if len(seen) != children {
		b.t.Errorf("%d children, want %d", len(seen), children)
	}
	if n := b.registered(); n != children {
		b.t.Errorf("%d registrations of children in the history, want %d", n, children)
	}
	err := filepath.WalkDir(filepath.Join(b.dir, "items"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && len(d.Name()) == layout.ItemIDLen {
			if _, missing := os.Lstat(filepath.Join(p, layout.ExecutionJSON)); missing != nil {
				b.t.Errorf("%s is no item", p)
			}
		}
		if err == nil && strings.HasPrefix(d.Name(), ".children.") {
			b.t.Errorf("%s was left", p)
		}
		return err
	})
	b.must(err)
}

// registered counts the registrations of children in the history.
func (b *bench) registered() int {
	b.t.Helper()
	return strings.Count(b.git("log", "--format=%s", "--grep=^Bagpipe-Parent: "), "register: completed ")
}

// A run is killed while children are registered: after the n-th move of the branch
// that is seen. None is lost, none doubled.
func TestKillWhileChildrenAreRegistered(t *testing.T) {
	t.Parallel()
	children := soak(30, 600)
	for round := range soak(1, 8) {
		b := brood(t, children)
		b.ok("status")
		kills := 0
		for n := range soak(4, 6) { // each goes a little further than the one before
			r := b.start("run", "-j", "2")
			moved := b.awaitMoves(r, 2+n)
			<-time.After(time.Duration(round) * 700 * time.Microsecond)
			if r.kill() && moved {
				kills++
			}
			t.Logf("killed with %d children registered", b.registered())
		}
		if kills < 2 {
			t.Errorf("%d runs were killed", kills)
		}
		b.ok("run")
		b.reared(children)
	}
}

// The same, of a program that tells of its children while it runs, which are worked on meanwhile.
func TestKillWhileChildrenAreTold(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{
		"pipe":   `mkdir children; for f in "$BAGPIPE_CONTENT"/*; do n=${f##*/}; cp "$f" children/$n; echo "{\"name\": \"$n\", \"workflow\": \"chick\"}" >&3; done`,
		"folder": `cd "$BAGPIPE_READY"; for f in "$BAGPIPE_CONTENT"/*; do n=${f##*/}; cp "$f" .$n; echo "{\"workflow\": \"chick\"}" >.$n.json; mv .$n $n; done`,
	} {
		t.Run(name, func(t *testing.T) { killWhileToldOf(t, "command: [sh, -c, '"+program+"']") })
	}
}

func killWhileToldOf(t *testing.T, tells string) {
	t.Parallel()
	children := soak(20, 600)
	b := broodBy(t, children, tells)
	b.ok("status")
	kills := 0
	for n := range soak(4, 9) { // each goes a little further than the one before; ten in a row would hold the item
		r := b.start("run", "-j", "2")
		moved := b.awaitMoves(r, 2+2*n)
		<-time.After(time.Duration(n%4) * 900 * time.Microsecond)
		if r.kill() && moved {
			kills++
		}
		t.Logf("killed with %d children registered", b.registered())
	}
	if kills < 2 {
		t.Errorf("%d runs were killed", kills)
	}
	b.ok("run")
	b.reared(children)
}

// Killed between the moves of the files and their commits, which no commit shows: as
// soon as there is anything of the children.
func TestKillBeforeTheFirstChildIsCommitted(t *testing.T) {
	t.Parallel()
	children := soak(30, 600)
	b := brood(t, children)
	kills := 0
	for range soak(3, 30) {
		r := b.start("run", "-j", "2")
		ok := eventuallyFast(func() bool {
			journals, _ := filepath.Glob(filepath.Join(b.dir, "items/*/*/*/*/*/.children.*"))
			return len(journals) > 0 || !r.running()
		})
		if !ok {
			t.Fatal("no child is registered")
		}
		if r.kill() {
			kills++
		}
	}
	if kills == 0 {
		t.Error("no run was killed")
	}
	b.ok("run")
	b.reared(children)
}

// Two engines: one has the step, both do the children, and neither makes one twice;
// then the one that has the step dies.
func TestTwoEnginesAndTheChildren(t *testing.T) {
	t.Parallel()
	children := soak(30, 600)
	b := brood(t, children)
	one, two := b.start("run", "-j", "2"), b.start("run", "-j", "2")
	b.awaitMoves(one, 4)
	one.kill()
	<-two.end
	b.ok("run")
	b.reared(children)
}
