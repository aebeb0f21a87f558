package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// clustered is a fleet whose engine and workers meet at three brokers.
type clustered struct {
	*fleet
	brokers []*process
	ports   []int // of engine and workers
	routes  []int
}

// newCluster starts three brokers, and an engine that uses them.
func newCluster(t *testing.T, steps, placement string) *clustered {
	t.Helper()
	c := &clustered{fleet: &fleet{bench: newBench(t), port: twoPorts(t)}}
	c.workflow("far", steps)
	settings, err := os.ReadFile(filepath.Join(c.dir, "bagpipe.yaml"))
	c.must(err)
	c.write("ws/bagpipe.yaml", string(settings)+"\nworkers:\n  lease: 15s\n  steps: "+placement+"\n")
	c.ok("remote", "invite", "--broker", "brokers", filepath.Join(c.top, "broker.key"))
	for range 3 {
		c.ports, c.routes = append(c.ports, onePort(t)), append(c.routes, onePort(t))
	}
	for i := range 3 {
		c.brokers = append(c.brokers, c.broker(i))
	}
	c.serveThere(c.urls()...)
	return c
}

func onePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (c *clustered) broker(i int) *process {
	c.t.Helper()
	args := []string{"broker", "--name", fmt.Sprintf("b%d", i), "--key", filepath.Join(c.top, "broker.key"), "--store", filepath.Join(c.top, fmt.Sprintf("broker-%d", i)),
		"--listen", fmt.Sprintf("127.0.0.1:%d", c.ports[i]), "--cluster", fmt.Sprintf("127.0.0.1:%d", c.routes[i])}
	for j, port := range c.routes {
		if j != i {
			args = append(args, "--routes", fmt.Sprintf("127.0.0.1:%d", port))
		}
	}
	p := c.start(args...)
	c.await("broker", func() bool { return strings.Contains(p.out.String(), "Broker: nats://") || !p.running() })
	return p
}

func (c *clustered) urls() (all []string) {
	for _, port := range c.ports {
		all = append(all, fmt.Sprintf("nats://127.0.0.1:%d", port))
	}
	return all
}

// serveThere starts an engine that uses servers which are not its own.
func (f *fleet) serveThere(urls ...string) {
	f.t.Helper()
	_ = os.Remove(filepath.Join(f.dir, ".bagpipe/remote/status.json"))
	args := []string{"serve", "--listen", "127.0.0.1:0", "--nats-listen", fmt.Sprintf("127.0.0.1:%d", f.port)}
	for _, url := range urls {
		if url == "plain" {
			args = append(args, "--nats-plain")
			continue
		}
		args = append(args, "--nats-url", url)
	}
	f.engine = f.start(args...)
	f.await("the engine", func() bool { return f.exists("ws/.bagpipe/remote/status.json") || !f.engine.running() })
	if !f.engine.running() {
		f.t.Fatalf("the engine ended:\n%s", f.engine.out.String())
	}
}

// Steps are done through three brokers. When one is killed the others serve, also the one that led; without a
// majority nothing is granted, status says why, and what runs comes to its end; with it, or with their files
// deleted, it goes on. A revoked worker is turned away.
func TestACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "  - name: derive\n    command: [far-robot, wait]\n", "{far/derive: {only: true}}")
	for _, name := range []string{"w", "gone"} { // they come to all three
		c.ok("remote", "invite", name, filepath.Join(c.top, name+".key"))
	}
	c.worker("w", "bytes: transfer\n")
	c.write("go", "")
	c.folder("a")
	c.done("a")
	for i := range soak(1, 2) { // one of them led
		c.brokers[i].kill()
		begun := time.Now()
		c.folder(fmt.Sprintf("killed-%d", i))
		c.await("the step", func() bool { return len(c.labels("completed")) == 2+i })
		t.Logf("broker %d killed: done after %s", i, time.Since(begun).Round(time.Millisecond))
		c.await("word that it is away", func() bool { return strings.Contains(c.ok("remote", "verify"), fmt.Sprintf("; behind: b%d", i)) })
		c.brokers[i] = c.broker(i)
		c.await("the broker's return", c.whole)
	}
	c.withoutMajority()
	c.ok("remote", "rebuild")
	w := c.worker("gone", "bytes: transfer\n")
	c.ok("remote", "revoke", "gone")
	if out := w.code(1); !strings.Contains(out, "revoked") {
		t.Errorf("%s", out)
	}
	c.engine.signal(syscall.SIGTERM)
	c.engine.code(0)
	c.git("fsck", "--strict", "--no-dangling")
}

// whole reports whether the three hold the same; they may be choosing who leads, still.
func (c *clustered) whole() bool {
	verify := c.start("remote", "verify")
	<-verify.end
	return strings.Contains(verify.out.String(), "epoch") && !strings.Contains(verify.out.String(), "behind")
}

// withoutMajority kills two of the three, and starts them again.
func (c *clustered) withoutMajority() {
	c.t.Helper()
	before := len(c.labels("completed"))
	c.must(os.Remove(filepath.Join(c.top, "go")))
	c.folder("long")
	c.await("the robot", func() bool { return c.exists("begun-long-w") })
	c.brokers[0].kill()
	c.brokers[1].kill()
	c.await("status", func() bool { return strings.Contains(c.ok("status"), "nothing is offered to workers") })
	c.folder("later")
	c.write("go", "")
	c.await("the end of what ran", func() bool { return len(c.labels("completed")) == before+1 })
	// A server that is alone may answer for a moment yet, as if it led.
	c.await("why", func() bool { return strings.Contains(c.ok("why", "later"), "nothing is offered to workers") })
	c.must(os.RemoveAll(filepath.Join(c.top, "broker-1")))
	c.brokers[0], c.brokers[1] = c.broker(0), c.broker(1)
	c.await("what was offered meanwhile", func() bool { return len(c.labels("completed")) == before+2 })
	for label := range map[string]bool{"a": true, "long": true, "later": true} {
		if n := c.effects("effect-" + label); n != 1 {
			c.t.Errorf("%s was done %d times", label, n)
		}
	}
}

// A NATS server as its makers build it does, with the users that remote check prints; status says that it does
// not tell whether it syncs. One that is too old, or not there, is refused.
func TestAServerThatIsNotOurs(t *testing.T) {
	t.Parallel()
	f := &fleet{bench: newBench(t), port: twoPorts(t)}
	program := filepath.Join(f.top, "nats-server")
	build := exec.Command("go", "build", "-o", program, "github.com/nats-io/nats-server/v2")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	f.workflow("far", "  - name: derive\n    command: [far-robot]\n")
	settings, err := os.ReadFile(filepath.Join(f.dir, "bagpipe.yaml"))
	f.must(err)
	f.write("ws/bagpipe.yaml", string(settings)+"\nworkers:\n  lease: 1s\n  steps: {far/derive: {only: true}}\n")
	port := onePort(t)
	url := fmt.Sprintf("nats://127.0.0.1:%d", port)
	f.ok("remote", "invite", "w", filepath.Join(f.top, "w.key"), "--url", url, "--plain")
	f.write("nats.conf", fmt.Sprintf("listen: 127.0.0.1:%d\n", port)+strings.Replace(f.ok("remote", "check"), "jetstream {", fmt.Sprintf("jetstream { store_dir: %q,", filepath.Join(f.top, "store")), 1))
	server := exec.Command(program, "-c", filepath.Join(f.top, "nats.conf"))
	f.must(server.Start())
	t.Cleanup(func() { _ = server.Process.Kill(); _, _ = server.Process.Wait() })
	f.await("the server", func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	f.serveThere(url, "plain")
	if out := f.ok("status"); !strings.Contains(out, "does not say whether it syncs always") {
		t.Errorf("status: %s", out)
	}
	f.worker("w", "bytes: transfer\n")
	f.folder("a")
	f.done("a")
	f.ok("remote", "verify")
	beyond := f.start("serve", "--listen", "127.0.0.1:0", "--nats-url", "nats://192.0.2.1:4222", "--nats-plain")
	if out := beyond.code(2); !strings.Contains(out, "beyond it TLS is needed") {
		t.Errorf("beyond this machine: %s", out)
	}
}
