package worker

import (
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A peer that is dead is noticed in 15 seconds, by the system, whether bytes are under way or none.
func TestDeadPeersAreNoticed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := dialer().DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	option := func(name int) (value int) {
		if err := raw.Control(func(fd uintptr) { value, _ = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, name) }); err != nil {
			t.Fatal(err)
		}
		return value
	}
	idle, each, times := option(syscall.TCP_KEEPIDLE), option(syscall.TCP_KEEPINTVL), option(syscall.TCP_KEEPCNT)
	if sent := option(unix.TCP_USER_TIMEOUT); sent != 15_000 || idle+each*times != 15 {
		t.Errorf("what was sent stands for %d ms; idle it is asked after %d s, %d times, every %d s", sent, idle, times, each)
	}
}
