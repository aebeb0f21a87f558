package main

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A service manager is told when the service is ready, that it is alive, and that it stops.
func TestAServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	socket := filepath.Join(b.top, "n")
	on, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	b.must(err)
	defer on.Close()
	b.env = append(b.env, "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=200000")
	service := b.start("run", "--watch")
	var told []string
	hear := func() {
		buf := make([]byte, 100)
		b.must(on.SetReadDeadline(time.Now().Add(20 * time.Second)))
		n, err := on.Read(buf)
		b.must(err)
		told = append(told, string(buf[:n]))
	}
	for range 4 {
		hear()
	}
	if got := strings.Join(told, " "); got != "READY=1 WATCHDOG=1 WATCHDOG=1 WATCHDOG=1" {
		t.Errorf("%s", got)
	}
	b.must(service.cmd.Process.Signal(syscall.SIGTERM))
	for told[len(told)-1] != "STOPPING=1" {
		hear()
	}
	service.code(0)
}
