package worker

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// deadAfter is how long the engine's machine may acknowledge nothing before a connection is given up: what was
// cut off on it is fetched, or sent, over another.
const deadAfter = 15 * time.Second

// tcpUserTimeout is TCP_USER_TIMEOUT of Linux, which syscall does not name: for how many milliseconds bytes that
// were sent may stand unacknowledged (RFC 5482). Without it the system tries for a quarter of an hour.
const tcpUserTimeout = 0x12

// dialer connects to the engine's transfer, and notices a dead peer while nothing is sent, too.
func dialer() *net.Dialer {
	return &net.Dialer{Timeout: 10 * time.Second, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: deadAfter / 3, Interval: deadAfter / 3, Count: 2},
		Control: func(_, _ string, c syscall.RawConn) error {
			var refused error
			err := c.Control(func(fd uintptr) {
				refused = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(deadAfter/time.Millisecond))
			})
			return errors.Join(err, refused)
		}}
}
