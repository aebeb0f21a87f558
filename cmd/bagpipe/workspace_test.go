package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bagpipe/testdata/sample"

	"github.com/tidwall/gjson"
)

// bench is a workspace that processes work on.
type bench struct {
	t   *testing.T
	top string // holds the workspace and what a test puts beside it
	dir string // the workspace
	env []string

	program string // what start starts; "": the one of the tests
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, top: sample.TempDir(t)}
	b.dir = filepath.Join(b.top, "ws")
	own, err := testEnv(filepath.Join(b.top, "home"))
	if err != nil {
		t.Fatal(err)
	}
	b.env = append(append(os.Environ(), own...), "TOP="+b.top)
	b.ok("init", b.dir)
	b.must(hasten(b.dir))
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) write(path, text string) {
	b.t.Helper()
	full := filepath.Join(b.top, path)
	b.must(os.MkdirAll(filepath.Dir(full), 0o777))
	b.must(os.WriteFile(full, []byte(text), 0o666))
}

func (b *bench) exists(path string) bool {
	_, err := os.Lstat(filepath.Join(b.top, path))
	return err == nil
}

// drop makes samples and moves them into the inbox.
func (b *bench) drop(names ...string) {
	b.t.Helper()
	stage := filepath.Join(b.top, "stage")
	b.must(sample.MakeIn(stage, names))
	made, err := os.ReadDir(stage)
	b.must(err)
	for _, m := range made {
		b.must(os.Rename(filepath.Join(stage, m.Name()), filepath.Join(b.dir, "inbox/default", m.Name())))
	}
}

// process is a bagpipe at work.
type process struct {
	b   *bench
	cmd *exec.Cmd
	out bytes.Buffer  // read after wait
	err error         // read once end is closed
	end chan struct{} // closed when the process has ended
}

// start starts bagpipe on the workspace. It does not outlive the test.
func (b *bench) start(args ...string) *process {
	b.t.Helper()
	p := &process{b: b, cmd: exec.Command(cmp.Or(b.program, "bagpipe"), append([]string{"-C", b.dir}, args...)...), end: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = b.env, &p.out, &p.out
	b.must(p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		close(p.end)
	}()
	b.t.Cleanup(func() { p.signal(syscall.SIGKILL); <-p.end })
	return p
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) } // ended already: nothing to signal

// kill ends it in the middle of what it does; killed is false when it had ended.
func (p *process) kill() (killed bool) {
	p.signal(syscall.SIGKILL)
	<-p.end
	return p.cmd.ProcessState.ExitCode() < 0
}

func (p *process) running() bool {
	select {
	case <-p.end:
		return false
	default:
		return true
	}
}

// code waits for the process and wants this exit code.
func (p *process) code(want int) string {
	p.b.t.Helper()
	select {
	case <-p.end:
	case <-time.After(2 * deadline):
		p.b.t.Fatalf("%v does not end", p.cmd.Args)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != want {
		p.b.t.Fatalf("%v: exit code %d, want %d:\n%s", p.cmd.Args[3:], got, want, p.out.String())
	}
	return p.out.String()
}

func (b *bench) ok(args ...string) string {
	b.t.Helper()
	return b.start(args...).code(0)
}

func (b *bench) git(args ...string) string {
	b.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", b.dir}, args...)...)
	cmd.Env = b.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (b *bench) await(what string, yes func() bool) {
	b.t.Helper()
	if !eventually(yes) {
		b.t.Fatalf("waited in vain: %s", what)
	}
}

// labels lists the items' labels that have this status.
func (b *bench) labels(status string) (out []string) {
	b.t.Helper()
	for _, l := range gjson.Get(b.ok("items", "--status", status, "--json"), "#.label").Array() {
		out = append(out, l.String())
	}
	slices.Sort(out)
	return out
}

// atRest checks the laws on a workspace whose work is done: want items are
// completed; every step of every item ended well exactly once, in the records and
// in the history; one valid bag an item; nothing left behind; fsck silent.
func (b *bench) atRest(want int) {
	b.t.Helper()
	if got := b.labels("completed"); len(got) != want {
		b.t.Errorf("%d items completed, want %d:\n%s", len(got), want, b.ok("status"))
	}
	for _, id := range gjson.Get(b.ok("items", "--json"), "#.item").Array() {
		b.wellDone(id.String())
	}
	ends := map[string]int{}
	for line := range strings.Lines(b.git("log", "--format=%(trailers:key=Bagpipe-Item,valueonly,separator=) "+
		"%(trailers:key=Bagpipe-Step,valueonly,separator=) %(trailers:key=Bagpipe-To,valueonly,separator=)")) {
		if f := strings.Fields(line); len(f) == 3 && (f[2] == "completed" || f[2] == "skipped") {
			ends[f[0]+" "+f[1]]++
		}
	}
	for step, n := range ends {
		if n != 1 {
			b.t.Errorf("%s ended %d times in the history", step, n)
		}
	}
	if err := leftBehind(b.dir); err != nil {
		b.t.Error(err)
	}
	if out := b.git("fsck", "--strict", "--no-dangling"); out != "" {
		b.t.Errorf("git fsck: %s", out)
	}
}

// wellDone checks one item's record: of each step's attempts one ended well.
func (b *bench) wellDone(id string) {
	b.t.Helper()
	show := b.ok("show", id, "--json")
	for _, s := range gjson.Get(show, "workflows.0.steps").Array() {
		well := 0
		for _, a := range s.Get("attempts").Array() {
			if st := a.Get("state").String(); (st == "completed" || st == "skipped") && !a.Get("lost").Bool() {
				well++
			}
		}
		if well != 1 {
			b.t.Errorf("item %s: %d attempts at %s ended well: %s", id, well, s.Get("step"), s.Get("attempts").Raw)
		}
	}
}

// deposits checks that the store holds want bags, all valid.
func (b *bench) deposits(want int) {
	b.t.Helper()
	found, err := filepath.Glob(filepath.Join(b.dir, "store/?/?/?/?/*"))
	b.must(err)
	if len(found) != want {
		b.t.Errorf("%d deposits, want %d", len(found), want)
	}
	for _, f := range found {
		b.ok("bag", "validate", f)
	}
}

// soak tells how many rounds a test makes: few, or many when asked to.
func soak(few, many int) int {
	if os.Getenv("BAGPIPE_SOAK") != "" {
		return many
	}
	return few
}

// effects counts the lines of a file that steps append to.
func (b *bench) effects(name string) int {
	data, err := os.ReadFile(filepath.Join(b.top, name))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	b.must(err)
	return strings.Count(string(data), "\n")
}

func (b *bench) workflow(name, steps string) {
	b.t.Helper()
	b.write("ws/workflows/"+name+".yaml", fmt.Sprintf("schema: 1\nname: %s\nsteps:\n  - name: register\n%s", name, steps))
}
