package web

import (
	"io"
	"net"
	"testing"
)

// from is a listener to which connections come from an address.
type from struct {
	net.Listener
	address string
	closed  *int
}

func (l *from) Accept() (net.Conn, error) { return &come{address: l.address, closed: l.closed}, nil }

type come struct {
	net.Conn
	address string
	closed  *int
}

func (c *come) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.address), Port: 4000} }
func (c *come) Close() error         { *c.closed++; return nil }

// Of one address no more connections are let in than it may have; another's, and one that comes when one has
// ended, are.
func TestFewFromOne(t *testing.T) {
	closed := 0
	comes := &from{address: "192.0.2.1", closed: &closed}
	l := &fewFromOne{Listener: comes, open: map[string]int{}}
	accept := func() net.Conn {
		t.Helper()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := accept()
	if _, sends := first.(io.ReaderFrom); !sends {
		t.Error("the kernel sends no file on a connection that is counted")
	}
	for range mostFromOne - 1 {
		accept()
	}
	refused := closed
	l.Listener = &then{first: 3, of: comes, next: &from{address: "192.0.2.2", closed: &closed}}
	if c := accept(); c.RemoteAddr().String() != "192.0.2.2:4000" || closed-refused != 3 {
		t.Errorf("%v was let in, and %d of three too many were not", c.RemoteAddr(), closed-refused)
	}
	for range 2 { // the second is none
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
	}
	l.Listener = &then{first: 2, of: comes, next: &from{address: "192.0.2.3", closed: &closed}}
	if c := accept(); c.RemoteAddr().String() != "192.0.2.1:4000" {
		t.Errorf("after one ended, %v was let in", c.RemoteAddr())
	}
	if c := accept(); c.RemoteAddr().String() != "192.0.2.3:4000" {
		t.Errorf("after one ended, and ended again, %v was let in, too", c.RemoteAddr())
	}
}

// then has connections of one listener first, and those of the next behind.
type then struct {
	net.Listener
	first    int
	of, next net.Listener
}

func (l *then) Accept() (net.Conn, error) {
	if l.first--; l.first >= 0 {
		return l.of.Accept()
	}
	return l.next.Accept()
}
