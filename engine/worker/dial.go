package worker

import (
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// deadAfter is how long the engine's machine may acknowledge nothing before a connection is given up: what was
// cut off on it is fetched, or sent, over another.
const deadAfter = 15 * time.Second

// dialer connects to the engine's transfer, and notices a dead peer while nothing is sent, too. Bytes that were
// sent would otherwise be sent again for a quarter of an hour (RFC 5482).
func dialer() *net.Dialer {
	return &net.Dialer{Timeout: 10 * time.Second, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: deadAfter / 3, Interval: deadAfter / 3, Count: 2},
		Control: func(_, _ string, c syscall.RawConn) error {
			var refused error
			err := c.Control(func(fd uintptr) {
				refused = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadAfter/time.Millisecond))
			})
			return errors.Join(err, refused)
		}}
}
