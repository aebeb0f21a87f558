package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// badWire is a network between two programs that can be slow, or carry one way alone.
type badWire struct {
	slow   atomic.Int64 // bytes a second each way; 0: as fast as it is
	silent atomic.Bool  // what comes back is lost
}

// newBadWire listens on a port of its own and carries to another, until the test ends.
func newBadWire(t *testing.T, at, to int) *badWire {
	t.Helper()
	on, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", at))
	if err != nil {
		t.Fatal(err)
	}
	w := &badWire{}
	t.Cleanup(func() { _ = on.Close() })
	go func() {
		for {
			near, err := on.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", to))
			if err != nil {
				_ = near.Close()
				continue
			}
			t.Cleanup(func() { _ = near.Close(); _ = far.Close() })
			go w.carry(near, far, true)
			go w.carry(far, near, false)
		}
	}()
	return w
}

func (w *badWire) carry(to io.WriteCloser, from io.ReadCloser, back bool) {
	defer to.Close()
	defer from.Close()
	part := make([]byte, 16<<10)
	for {
		size := len(part)
		if slow := w.slow.Load(); slow > 0 {
			size = int(min(int64(size), max(1, slow/10)))
			time.Sleep(time.Second * time.Duration(size) / time.Duration(slow))
		}
		n, err := from.Read(part[:size])
		if n > 0 && !(back && w.silent.Load()) {
			if _, err := to.Write(part[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Beats do not wait behind bytes: while a worker's bytes take much longer than its lease, over a slow link, its
// attempt is not lost. A link that carries one way alone loses the lease, and the worker comes back when it is well.
func TestSlowAndOneWayLinks(t *testing.T) {
	t.Parallel()
	f := newFleetWith(t, "2s\n  lost: 100", "  - name: derive\n    command: [far-robot, wait]\n", "{far/derive: {only: true}}")
	ports := twoPorts(t)
	messages := newBadWire(t, ports, f.port)
	f.ok("remote", "invite", "w", filepath.Join(f.top, "w.key"), "--url", fmt.Sprintf("nats://127.0.0.1:%d", ports))
	f.worker("w", "bytes: transfer\n")
	f.folder("a")
	f.await("the robot", func() bool { return f.exists("begun-a-w") })
	messages.silent.Store(true) // the worker's beats arrive, and it hears no answer
	time.Sleep(5 * time.Second)
	messages.silent.Store(false)
	f.write("go", "")
	f.done("a")
	for n, a := range f.step("a", "derive").Get("attempts").Array() {
		if lost := a.Get("lost").Bool(); lost != (n < int(f.step("a", "derive").Get("attempts.#").Int())-1) {
			t.Errorf("attempt %d: %s", n, a)
		}
	}
	messages.slow.Store(20_000) // slower than its messages would be in a crowd, and it is alone
	f.folder("b")
	f.done("a", "b")
	if n := f.step("b", "derive").Get("attempts.#").Int(); n != 1 {
		t.Errorf("%d attempts over a slow link", n)
	}
}

// A worker whose disk is full gives its step back, and another does it.
func TestAWorkerWithoutRoom(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "  - name: derive\n    command: [far-robot]\n", "{far/derive: {only: true}}")
	small := filepath.Join(f.top, "at-small")
	f.must(os.Mkdir(small, 0o755))
	f.mount("tmpfs", small, "-t", "tmpfs", "-o", "size=64k")
	f.worker("small", "bytes: transfer\n")
	f.folder("a") // 200 KiB
	f.await("it to be given back", func() bool {
		return strings.Contains(f.ok("log", "a"), "its disk is full")
	})
	f.worker("large", "bytes: transfer\n")
	f.done("a")
	attempts := f.step("a", "derive").Get("attempts").Array()
	if last := attempts[len(attempts)-1]; last.Get("message").String() != "done by large" {
		t.Errorf("attempts: %v", attempts)
	}
}

// Files of the same content are fetched once, and each is there.
func TestEqualContentIsFetchedOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "  - name: derive\n    command: [far-robot]\n", "{far/derive: {only: true}}")
	f.worker("w", "bytes: transfer\n")
	same := bytes.Repeat([]byte("the same\n"), 30_000)
	for _, name := range []string{"one", "two", "below/three"} {
		f.write("in/a/"+name, string(same))
	}
	f.ok("add", "--workflow", "far", filepath.Join(f.top, "in/a"))
	f.done("a")
	out, err := filepath.Glob(filepath.Join(f.dir, "items/*/*/*/*/*/derived/derive/all.txt"))
	if f.must(err); len(out) != 1 {
		t.Fatalf("derived: %v", out)
	}
	if text, err := os.ReadFile(out[0]); err != nil || !bytes.Equal(text, bytes.Repeat(same, 3)) {
		t.Errorf("derived %d bytes of 3 files: %v", len(text), err)
	}
}
