package targettest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Cut is a proxy on this machine that cuts a connection in the middle.
type Cut struct {
	Address string

	mu   sync.Mutex // guards what follows
	to   string
	left int64 // bytes, there and back, until it cuts once; negative: it does not
	went int64
}

// NewCut forwards to address; it ends with the test.
func NewCut(t *testing.T, address string) *Cut {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := &Cut{Address: l.Addr().String(), to: address, left: -1}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() { c.forward(in) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		c.mu.Lock()
		c.left = 0
		c.mu.Unlock()
	})
	return c
}

// After has the connection cut that carries the n-th byte from now, and counts from 0.
func (c *Cut) After(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.went = n, 0
}

// Went is how many bytes went since After.
func (c *Cut) Went() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.went
}

// pass gives how many of n bytes may go, and whether the connection goes on.
func (c *Cut) pass(n int64) (int64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.went += n
	if c.left < 0 || n < c.left {
		c.left = max(c.left-n, -1)
		return n, true
	}
	n, c.left = c.left, -1
	return n, false
}

// To has connections from now on forwarded to another address.
func (c *Cut) To(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = address
}

func (c *Cut) forward(in net.Conn) {
	c.mu.Lock()
	address := c.to
	c.mu.Unlock()
	out, err := net.Dial("tcp", address)
	if err != nil {
		in.Close()
		return
	}
	hangUp := sync.OnceFunc(func() {
		in.Close()
		out.Close()
	})
	var both sync.WaitGroup
	both.Go(func() { c.copy(out, in, hangUp) })
	both.Go(func() { c.copy(in, out, hangUp) })
	both.Wait()
}

func (c *Cut) copy(to io.Writer, from io.Reader, hangUp func()) {
	defer hangUp()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		may, on := c.pass(int64(n))
		if _, werr := to.Write(buffer[:may]); werr != nil || err != nil || !on {
			return
		}
	}
}
