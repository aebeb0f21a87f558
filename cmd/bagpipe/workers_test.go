package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// fleet is a workspace whose engine has steps done by workers.
type fleet struct {
	*bench
	port   int
	engine *process
}

// newFleet makes a workspace whose steps of workflow far are placed on workers.
func newFleet(t *testing.T, steps, placement string) *fleet {
	t.Helper()
	return newFleetWith(t, "1s", steps, placement)
}

// newFleetWith is newFleet with another lease.
func newFleetWith(t *testing.T, lease, steps, placement string) *fleet {
	t.Helper()
	f := &fleet{bench: newBench(t), port: twoPorts(t)}
	f.far(lease, steps, placement)
	return f
}

// far places the steps of workflow far on workers, and starts the engine.
func (f *fleet) far(lease, steps, placement string) {
	f.t.Helper()
	f.workflow("far", steps)
	settings, err := os.ReadFile(filepath.Join(f.dir, "bagpipe.yaml"))
	f.must(err)
	f.write("ws/bagpipe.yaml", string(settings)+"\nworkers:\n  lease: "+lease+"\n  steps: "+placement+"\n")
	f.serve()
}

// twoPorts finds two free ports, the second after the first.
func twoPorts(t *testing.T) int {
	t.Helper()
	for range 100 {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := first.Addr().(*net.TCPAddr).Port
		second, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port+1))
		_ = first.Close()
		if err == nil {
			_ = second.Close()
			return port
		}
	}
	t.Fatal("no two free ports")
	return 0
}

// serve starts the engine, and waits until it lets workers in.
func (f *fleet) serve() {
	f.t.Helper()
	status := filepath.Join(f.dir, ".bagpipe/remote/status.json")
	_ = os.Remove(status)
	f.engine = f.start("serve", "--nats", "--listen", "127.0.0.1:0", "--nats-listen", fmt.Sprintf("127.0.0.1:%d", f.port))
	f.await("the engine", func() bool { return f.exists("ws/.bagpipe/remote/status.json") || !f.engine.running() })
	if !f.engine.running() {
		f.t.Fatalf("the engine ended:\n%s", f.engine.out.String())
	}
}

// worker starts a worker that offers a program and built-in robots, on its first start with a
// new key. extra are more lines of its worker.yaml.
func (f *fleet) worker(name, extra string) *process {
	f.t.Helper()
	key, config := filepath.Join(f.top, name+".key"), name+".yaml"
	if !f.exists(name + ".key") {
		f.ok("remote", "invite", name, key, "--url", fmt.Sprintf("nats://127.0.0.1:%d", f.port))
	}
	program := filepath.Join(f.top, "far-robot")
	if !f.exists("far-robot") {
		f.must(os.WriteFile(program, []byte(farRobot), 0o755))
	}
	f.write(config, fmt.Sprintf("schema: 1\nslots: 2\nfolder: %s\nrobots:\n  - command: [%s]\n    version: \"7\"\n    env: {WORKER: %s}\n    parameters: {lang: [deu, lat], dpi: 300}\n  - builtin: inventory\n  - builtin: split\n%s", filepath.Join(f.top, "at-"+name), program, name, extra))
	p := f.start("worker", "--key", key, filepath.Join(f.top, config))
	f.await("worker "+name, func() bool { return f.state(name) == "ready" || !p.running() })
	return p
}

// farRobot derives a file from the content, says that it has begun, goes on when it may, and
// tells its effect.
const farRobot = `#!/bin/sh
set -e
mkdir -p "$BAGPIPE_SCRATCH/derived/empty"
(cd "$BAGPIPE_CONTENT" && find . -type f | sort | xargs cat) >"$BAGPIPE_SCRATCH/derived/all.txt"
head -c 200000 /dev/zero >"$BAGPIPE_SCRATCH/derived/zeros"
echo "args $*"
touch "$TOP/begun-$BAGPIPE_LABEL-$WORKER"
[ "$1" != wait ] || until [ -e "$TOP/go" ]; do echo "40% waiting" >>"$BAGPIPE_PROGRESS"; sleep 0.05; done
[ "$1$WORKER" != pickyw1 ] || { echo "not here"; exit 1; }
[ "$1" != bad ] || { echo "nothing to see"; exit 65; }
echo "$BAGPIPE_ATTEMPT" >>"$TOP/effect-$BAGPIPE_LABEL"
echo "done by $WORKER"
`

// pages is where the engine serves its pages and calls: http://HOST:PORT/.
func (f *fleet) pages() string {
	f.t.Helper()
	const before = "Open once: "
	f.await("the pages", func() bool { return strings.Contains(f.engine.out.String(), before) })
	_, link, _ := strings.Cut(f.engine.out.String(), before)
	base, _, _ := strings.Cut(link, "signin")
	return base
}

func (f *fleet) status() gjson.Result {
	data, _ := os.ReadFile(filepath.Join(f.dir, ".bagpipe/remote/status.json"))
	return gjson.ParseBytes(data)
}

// state is a worker's, as the engine tells it.
func (f *fleet) state(name string) string {
	return f.status().Get(`workers.#(name=="` + name + `").state`).String()
}

// folder adds an item of two files.
func (f *fleet) folder(label string) {
	f.t.Helper()
	f.write("in/"+label+"/one", "one\n")
	f.write("in/"+label+"/below/two", strings.Repeat("two\n", 50_000))
	f.ok("add", "--workflow", "far", filepath.Join(f.top, "in", label))
}

func (f *fleet) step(label, step string) gjson.Result {
	f.t.Helper()
	id := gjson.Get(f.ok("items", "--json"), `#(label=="`+label+`").item`).String() // a short label may be the beginning of another's identifier
	return gjson.Get(f.ok("show", id, "--json"), `workflows.0.steps.#(step=="`+step+`")`)
}

func (f *fleet) done(labels ...string) {
	f.t.Helper()
	f.await(fmt.Sprintf("%v completed", labels), func() bool { return len(f.labels("completed")) == len(labels) })
}

// A worker gets its item over HTTPS, one that shares the file system uses it, and what they
// make is what a robot of this machine makes. Failures have the robot's kind and words.
func TestWorkersDoWhatThisMachineDoes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "  - name: derive\n    command: [far-robot, --with, words]\n  - name: count\n    robot: inventory\n  - name: parts\n    robot: split\n    requires: [count]\n    with: {each: file, workflow: small}\n",
		"{/derive: {only: true}, /count: {only: true}, far/parts: {only: true}}")
	f.workflow("small", "  - name: look\n    robot: noop\n")
	far := f.worker("far", "bytes: transfer\ncache: 10MiB\n")
	f.folder("box-a")
	f.await("a and its parts", func() bool { return len(f.labels("completed")) == 3 })
	far.signal(syscall.SIGTERM)
	if out := far.code(0); !strings.Contains(out, "draining") {
		t.Errorf("%s", out)
	}
	near := f.worker("near", "")
	f.folder("box-b")
	f.await("b and its parts", func() bool { return len(f.labels("completed")) == 6 })
	for label, name := range map[string]string{"box-a": "far", "box-b": "near"} {
		dir := filepath.Join(f.dir, layout.ItemDir(layout.ItemID(gjson.Get(f.ok("show", label, "--json"), "manifest.item").String())))
		text, err := os.ReadFile(filepath.Join(dir, "derived/derive/all.txt"))
		f.must(err)
		if want := strings.Repeat("two\n", 50_000) + "one\n"; string(text) != want {
			t.Errorf("%s: derived %d bytes, want %d", label, len(text), len(want))
		}
		if info, err := os.Stat(filepath.Join(dir, "derived/derive/empty")); err != nil || !info.IsDir() {
			t.Errorf("%s: the empty folder: %v", label, err)
		}
		last := f.step(label, "derive").Get("attempts").Array()
		if got := last[len(last)-1]; got.Get("message").String() != "done by "+name || !strings.HasPrefix(got.Get("agent").String(), name+"@") {
			t.Errorf("%s: %s", label, got)
		}
		log, err := filepath.Glob(filepath.Join(dir, "logs/derive.*"))
		f.must(err)
		data, err := os.ReadFile(log[0])
		if err != nil || !strings.Contains(string(data), "args --with words\n") {
			t.Errorf("%s: log %q: %v", label, data, err)
		}
	}
	if shared := f.status().Get(`workers.#(name=="near").shared`); !shared.Bool() {
		t.Error("the worker does not share the file system")
	}
	if n := strings.Count(f.git("log", "--format=%(trailers:key=Bagpipe-Agent,valueonly)"), "derive far@"); n != 2 {
		t.Errorf("%d commits name the worker, want 2", n)
	}
	near.signal(syscall.SIGTERM)
	near.code(0)
	f.engine.signal(syscall.SIGTERM)
	f.engine.code(0)
	f.git("fsck", "--strict", "--no-dangling")
}

// The engine is killed and started again, or stopped for longer than a lease, while a robot runs: the attempt goes on, and its end
// counts, once. Then the server's files are removed, and the steps still come.
func TestAttemptsOutliveTheEngine(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "  - name: derive\n    command: [far-robot, wait]\n", "{far/derive: {only: true}}")
	f.worker("w", "bytes: transfer\n")
	f.folder("a")
	f.await("the robot", func() bool { return f.exists("begun-a-w") })
	f.engine.kill()
	f.serve()
	f.write("go", "")
	f.done("a")
	if n := f.effects("effect-a"); n != 1 {
		t.Errorf("the robot ran %d times", n)
	}
	if attempts := f.step("a", "derive").Get("attempts").Array(); len(attempts) != 1 {
		t.Errorf("attempts: %v", attempts)
	}
	f.must(os.Remove(filepath.Join(f.top, "go")))
	f.folder("paused")
	f.await("the robot", func() bool { return f.exists("begun-paused-w") })
	f.engine.signal(syscall.SIGSTOP) // for longer than a lease
	time.Sleep(3 * time.Second)
	f.write("go", "")
	f.engine.signal(syscall.SIGCONT)
	f.done("a", "paused")
	if n := f.step("paused", "derive").Get("attempts.#").Int(); n != 1 || f.effects("effect-paused") != 1 {
		t.Errorf("%d attempts while the engine was paused", n)
	}
	f.must(os.RemoveAll(filepath.Join(f.dir, ".bagpipe/nats")))
	f.folder("b")
	f.done("a", "paused", "b")
	out := f.ok("remote", "rebuild")
	f.folder("c")
	f.done("a", "paused", "b", "c")
	if out += f.ok("remote", "verify"); !strings.Contains(out, "0 on offer") {
		t.Errorf("%s", out)
	}
}

// A worker that stops loses its lease: another does the step, and what the first sends when it
// wakes is refused. One that is killed is no different.
func TestALostLeaseGoesToAnother(t *testing.T) {
	t.Parallel()
	for _, how := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		f := newFleet(t, "  - name: derive\n    command: [far-robot, wait]\n", "{far/derive: {only: true}}")
		first := f.worker("w1", "bytes: transfer\n")
		f.folder("a")
		f.await("the robot", func() bool { return f.exists("begun-a-w1") })
		f.worker("w2", "bytes: transfer\n")
		first.signal(how)
		f.await("the robot at the other", func() bool { return f.exists("begun-a-w2") })
		first.signal(syscall.SIGCONT)
		f.write("go", "")
		f.done("a")
		attempts := f.step("a", "derive").Get("attempts").Array()
		if len(attempts) != 2 || !attempts[0].Get("lost").Bool() || attempts[1].Get("message").String() != "done by w2" {
			t.Errorf("attempts: %v", attempts)
		}
		if how == syscall.SIGSTOP {
			first.signal(syscall.SIGTERM)
			if out := first.code(0); !strings.Contains(out, "not this worker's any more") {
				t.Errorf("the first worker said: %s", out)
			}
		}
	}
}

// A drained worker gives nothing up and ends; an unknown key, a name that is taken and a
// revoked key are refused; a step waits for a worker that has what it needs.
func TestWhoMayWork(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "  - name: derive\n    command: [far-robot, wait]\n", "{far/derive: {only: true, labels: {gpu: a100}}}")
	plain := f.worker("plain", "bytes: transfer\n")
	f.folder("a")
	f.await("why", func() bool {
		return strings.Contains(f.ok("why", "a"), "needs far-robot with gpu=a100: 1 worker connected, none has it")
	})
	gpu := f.worker("gpu", "bytes: transfer\nlabels: {gpu: a100}\n")
	f.await("the robot", func() bool { return f.exists("begun-a-gpu") })
	config, err := os.ReadFile(filepath.Join(f.top, "gpu.yaml"))
	f.must(err)
	f.write("twice.yaml", strings.Replace(string(config), "at-gpu", "at-twice", 1))
	for file, want := range map[string]string{"gpu.yaml": "another worker works in", "twice.yaml": "another worker is connected as gpu"} {
		twice := f.start("worker", "--key", filepath.Join(f.top, "gpu.key"), filepath.Join(f.top, file))
		if out := twice.code(1); !strings.Contains(out, want) {
			t.Errorf("%s: %s", file, out)
		}
	}
	second := f.start("serve", "--nats", "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0")
	if out := second.code(1); !strings.Contains(out, "another engine serves the workers") {
		t.Errorf("%s", out)
	}
	f.ok("workers", "drain", "gpu")
	f.await("draining", func() bool { return f.state("gpu") == "draining" })
	if out := f.ok("status"); !strings.Contains(out, "1 engine running") || !strings.Contains(out, "worker gpu on ") {
		t.Errorf("%s", out)
	}
	f.write("go", "")
	gpu.code(0)
	f.done("a")
	f.ok("remote", "revoke", "plain")
	if out := plain.code(1); !strings.Contains(out, "revoked") {
		t.Errorf("%s", out)
	}
	again := f.start("worker", "--key", filepath.Join(f.top, "plain.key"), filepath.Join(f.top, "plain.yaml"))
	if out := again.code(1); !strings.Contains(out, "revoked") {
		t.Errorf("%s", out)
	}
}

// link is a network between two programs, which can be cut.
type link struct {
	mu    sync.Mutex // guards the rest
	cut   bool
	conns []net.Conn
}

// newLink listens on a port of its own and carries to another, until the test ends.
func newLink(t *testing.T, to int) (l *link, port int) {
	t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = &link{}
	t.Cleanup(func() { _ = on.Close(); l.set(true) })
	go func() {
		for {
			near, err := on.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", to))
			if err != nil || !l.keep(near, far) {
				_ = near.Close()
				continue
			}
			go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
		}
	}()
	return l, on.Addr().(*net.TCPAddr).Port
}

func (l *link) keep(near, far net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		_ = far.Close()
		return false
	}
	l.conns = append(l.conns, near, far)
	return true
}

// set cuts the link, or mends it.
func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		for _, c := range l.conns {
			_ = c.Close()
		}
		l.conns = nil
	}
}

// A worker that is cut off works on. Cut off for less than a lease, its attempt counts; its end
// comes over the other link meanwhile. Cut off for longer, the attempt is lost, and as
// many in a row as the settings say fail the step.
func TestAWorkerThatIsCutOff(t *testing.T) {
	t.Parallel()
	f := newFleetWith(t, "5s\n  lost: 2", "  - name: derive\n    command: [far-robot, wait]\n", "{far/derive: {only: true}}")
	cable, port := newLink(t, f.port)
	f.ok("remote", "invite", "w", filepath.Join(f.top, "w.key"), "--url", fmt.Sprintf("nats://127.0.0.1:%d", port))
	f.worker("w", "bytes: transfer\n")
	f.folder("a")
	f.await("the robot", func() bool { return f.exists("begun-a-w") })
	cable.set(true)
	f.write("go", "")
	f.done("a")
	cable.set(false)
	if attempts := f.step("a", "derive").Get("attempts").Array(); len(attempts) != 1 || f.effects("effect-a") != 1 {
		t.Errorf("attempts: %v", attempts)
	}
	f.must(os.Remove(filepath.Join(f.top, "go")))
	f.folder("b")
	for n := 1; n <= 2; n++ {
		f.await("the robot", func() bool { return f.exists("begun-b-w") && f.status().Get("workers.0.running.#").Int() == 1 })
		cable.set(true)
		f.await("a lost attempt", func() bool {
			return f.step("b", "derive").Get("attempts").Get(fmt.Sprintf("%d", n-1)).Get("lost").Bool() || len(f.labels("failed")) == 1
		})
		_ = os.Remove(filepath.Join(f.top, "begun-b-w"))
		cable.set(false)
	}
	f.await("the failure", func() bool { return len(f.labels("failed")) == 1 })
	if out := f.ok("why", "b"); !strings.Contains(out, "2 attempts in a row were lost with their workers") {
		t.Errorf("%s", out)
	}
}
