package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are dialled within the process, so that their deadlines follow the test's
// clock.
type pipes struct {
	come chan net.Conn
	end  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.come:
		return c, nil
	case <-p.end:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.end); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial gives a connection on which text was sent, and goes on with a byte every 3 seconds, of what there is more.
func (p *pipes) dial(text, more string) net.Conn {
	here, there := net.Pipe()
	p.come <- there
	go func() {
		_, err := io.WriteString(here, text)
		for i := 0; i < len(more) && err == nil; i++ {
			time.Sleep(3 * time.Second)
			_, err = here.Write([]byte{more[i]})
		}
	}()
	return here
}

// Whoever sends a header, or a body, byte by byte, asks nothing more, or does not read the answer, is let go in time;
// what has no limits, as the bytes of an upload, goes on.
func TestSlowOnesAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		late := func(err error) string { return fmt.Sprint(time.Since(began), errors.Is(err, os.ErrDeadlineExceeded)) }
		told := make(chan string, 1)
		handler := bounded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				told <- "read " + late(err)
				return
			}
			if r.URL.Path == "/long" {
				_, err := io.Copy(w, strings.NewReader(strings.Repeat("x", 1<<20)))
				told <- "written " + late(err)
				return
			}
			fmt.Fprint(w, "whole")
		}), func(r *http.Request) bool { return r.URL.Path == "/large" })
		ctx, end := context.WithCancel(t.Context())
		defer end()
		server := newServer(ctx, handler, slog.New(slog.DiscardHandler))
		l := &pipes{come: make(chan net.Conn), end: make(chan struct{})}
		go func() { _ = server.Serve(l) }()
		defer server.Close()
		// gone is after how long a connection ends, and what came on it.
		gone := func(c net.Conn) (time.Duration, string) {
			defer c.Close()
			came, _ := io.ReadAll(c)
			return time.Since(began), string(came)
		}
		post := func(path string) string {
			return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
		}

		if after, came := gone(l.dial("GET / HTTP/1.1\r\nX-Slow: ", strings.Repeat("x", 1000))); after != headerTime {
			t.Errorf("a header that does not end: let go after %v, with %q", after, came)
		}
		began = time.Now()
		after, _ := gone(l.dial(post("/"), strings.Repeat("x", 1000)))
		if got := <-told; after < bodyTime || after > bodyTime+time.Second || got != fmt.Sprint("read ", bodyTime, true) {
			t.Errorf("a body that does not end: let go after %v; it was %s", after, got)
		}
		began = time.Now()
		c := l.dial(post("/large"), strings.Repeat("x", 1000)) // 50 minutes
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || answer.StatusCode != http.StatusOK || time.Since(began) != 3000*time.Second {
			t.Errorf("a body without limits: %v %v after %v", answer, err, time.Since(began))
		}
		_ = c.Close()
		began = time.Now()
		if after, came := gone(l.dial("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "")); after != idleTime || !strings.HasSuffix(came, "whole") {
			t.Errorf("a connection on which nothing comes more: let go after %v, with %q", after, came)
		}
		began = time.Now()
		c = l.dial("GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n", "")
		if got := <-told; got != fmt.Sprint("written ", answerTime, true) {
			t.Errorf("an answer that nobody reads was %s", got)
		}
		_ = c.Close()
	})
}
