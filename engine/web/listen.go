package web

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"bagpipe/engine/ask"
)

// mostFromOne is how many connections one address may have open.
const mostFromOne = 1024

// Serve answers on a listener until ctx ends, then waits a little for what runs. config is
// nil without TLS.
func (s *Site) Serve(ctx context.Context, on net.Listener, config *tls.Config) error {
	handler, err := s.Handler()
	if err != nil {
		return err
	}
	requests, end := context.WithCancel(context.WithoutCancel(ctx))
	server := newServer(requests, handler, s.desk.Log)
	server.TLSConfig = config
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		end() // streams
		const wait = 5 * time.Second
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
		defer cancel()
		if server.Shutdown(last) != nil {
			_ = server.Close()
		}
	})
	var watching sync.WaitGroup
	watching.Go(func() { s.desk.Pulse.Keep(requests, s.desk.Ask.Tip) })
	watching.Go(func() { s.sweep(requests) })
	go func() { _, _ = s.desk.Ask.Items(ask.Filter{}, ask.Page{Limit: 1}) }() // so that the table of the lists is there
	defer s.desk.Pictures.Close()
	defer watching.Wait()
	on = &fewFromOne{Listener: on, open: map[string]int{}}
	if config != nil {
		err = server.ServeTLS(on, "", "")
	} else {
		err = server.Serve(on)
	}
	if !stop() {
		<-stopped
	}
	end()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// newServer answers by a handler, and lets whoever is slow go. Requests end with ctx.
func newServer(ctx context.Context, handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: mostHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return ctx }}
}

// fewFromOne closes the connections of an address that has too many open.
type fewFromOne struct {
	net.Listener
	mu   sync.Mutex // guards open
	open map[string]int
}

func (l *fewFromOne) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host, _, err := net.SplitHostPort(c.RemoteAddr().String())
		if err != nil {
			return c, nil // of a socket in the file system
		}
		l.mu.Lock()
		few := l.open[host] < mostFromOne
		if few {
			l.open[host]++
		}
		l.mu.Unlock()
		if few {
			return &counted{Conn: c, gone: func() { l.close(host) }}, nil
		}
		_ = c.Close() // whoever has too many is not answered
	}
}

func (l *fewFromOne) close(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[host]--; l.open[host] == 0 {
		delete(l.open, host)
	}
}

type counted struct {
	net.Conn
	once sync.Once
	gone func()
}

// ReadFrom lets the kernel send a file by itself, which a connection can that is no other's.
func (c *counted) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

func (c *counted) Close() error {
	c.once.Do(c.gone)
	return c.Conn.Close()
}
