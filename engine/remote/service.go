package remote

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/remote/bus"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/web/access"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/gofrs/flock"
)

// ServiceOptions say where a workspace's engine listens for workers.
type ServiceOptions struct {
	Root   string
	Listen string // HOST:PORT of NATS; the transfer listens at the next port
	Names  string // the host that workers know this machine by; "": that of Listen
	ID     layout.EngineID
	Now    func() time.Time
	Log    *slog.Logger
}

// Service is the server side: the NATS server, the transfer's listener, the keys.
type Service struct {
	o        ServiceOptions
	book     *access.Book
	lock     *flock.Flock
	tls      *tls.Config
	server   *bus.Server
	engine   *bus.Engine
	listener net.Listener
	operator string // the operator's public key
	Place    Place
}

// Listen opens the ports. One engine serves the workers of a workspace; a second is refused.
func Listen(o ServiceOptions) (_ *Service, err error) {
	s := &Service{o: o, book: access.Open(o.Root)}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	dir := filepath.Join(o.Root, filepath.FromSlash(Dir))
	if err := s.take(dir); err != nil {
		return nil, err
	}
	if s.tls, err = serverTLS(s.book.Dir(), o.Now()); err != nil {
		return nil, err
	}
	operator, public, err := bus.NewKey()
	if err != nil {
		return nil, err
	}
	s.operator = public
	if s.server, err = bus.Serve(bus.ServerOptions{Listen: o.Listen, Store: filepath.Join(o.Root, layout.StateDir, "nats"), TLS: s.tls, Key: s.known, Log: o.Log}); err != nil {
		return nil, err
	}
	if s.engine, err = s.server.Engine(); err != nil {
		return nil, err
	}
	if s.listener, err = s.listen(); err != nil {
		return nil, err
	}
	if s.Place, err = s.place(dir); err != nil {
		return nil, err
	}
	key := Key{Schema: wire.KeySchema, Name: wire.Operator, URLs: []string{s.Place.URL}, Seed: operator}
	if key.Authority, err = Authority(s.book.Dir(), o.Now()); err != nil {
		return nil, err
	}
	data, err := key.Encode()
	if err != nil {
		return nil, err
	}
	return s, disk.WriteFile(filepath.Join(dir, "operator"), data, 0o600)
}

// take makes this the one engine that lends the workspace's steps.
func (s *Service) take(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	free, err := lock.TryLock()
	if err != nil {
		return err
	}
	if !free {
		return fault.New(fault.Busy, "another engine serves the workers of this workspace already")
	}
	s.lock = lock
	return nil
}

// secretIn reads the secret of the nonces, and draws it where there is none.
func secretIn(dir string) ([]byte, error) {
	secret, err := os.ReadFile(filepath.Join(dir, "secret"))
	if len(secret) != 32 { // not there, or of a crash: then no attempt has its nonce from it
		secret = make([]byte, 32)
		if _, err = rand.Read(secret); err == nil {
			err = disk.WriteFile(filepath.Join(dir, "secret"), secret, 0o600)
		}
	}
	return secret, err
}

// known gives the worker whose key this is.
func (s *Service) known(public string) (layout.Name, bool) {
	if public == s.operator {
		return wire.Operator, true
	}
	keys, err := s.book.Workers()
	if err != nil {
		s.o.Log.Error("read the workers' keys", "err", err)
		return "", false
	}
	for name, key := range keys {
		if key.Public == public {
			return name, true
		}
	}
	return "", false
}

// listen opens the transfer's port: the one after that of NATS, or any where that one was left
// to the system.
func (s *Service) listen() (net.Listener, error) {
	host, port, err := net.SplitHostPort(s.server.Addr())
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	if _, asked, _ := net.SplitHostPort(s.o.Listen); asked == "0" {
		n = -1
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(n+1)))
	if err != nil {
		return nil, fmt.Errorf("listen for the workers' bytes: %w", err)
	}
	return tls.NewListener(l, s.tls), nil
}

// place makes the files of a Remote, and says how workers reach it.
func (s *Service) place(dir string) (Place, error) {
	p := Place{Root: s.o.Root, ID: s.o.ID, Broker: s.engine, Restart: s.server.Restart, Twice: s.server.Twice, Start: s.start,
		Probe: filepath.Join(dir, "probe"), URL: "nats://" + s.at(s.server.Addr()), Transfer: "https://" + s.at(s.listener.Addr().String()) + "/"}
	var err error
	if p.Secret, err = secretIn(dir); err != nil {
		return p, err
	}
	probe := make([]byte, 16)
	if _, err := rand.Read(probe); err != nil {
		return p, err
	}
	p.Probed = hex.EncodeToString(probe)
	return p, os.WriteFile(p.Probe, []byte(p.Probed), 0o600)
}

// at is an address as workers know it.
func (s *Service) at(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	if s.o.Names != "" {
		host = s.o.Names
	} else if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return net.JoinHostPort(host, port)
}

// start lets workers in, and the keys be followed, until ctx ends.
func (s *Service) start(ctx context.Context, r *Remote) (wait func(), err error) {
	if err := s.engine.Answer(r.Answer); err != nil {
		return nil, err
	}
	server := &http.Server{Handler: r.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 1 << 16,
		ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug)}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.o.Log.Error("serve the workers' bytes", "err", err)
		}
	})
	wg.Go(func() { s.follow(ctx) })
	return func() {
		s.engine.Close()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if server.Shutdown(last) != nil {
			_ = server.Close()
		}
		wg.Wait()
	}, nil
}

// follow drops the connections of keys that were revoked.
func (s *Service) follow(ctx context.Context) {
	before, err := s.book.Workers()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, nerr := s.book.Workers()
		if nerr != nil {
			if err == nil {
				s.o.Log.Error("read the workers' keys", "err", nerr)
			}
			err = nerr
			continue
		}
		for name, key := range before {
			if now[name].Public != key.Public {
				s.server.Drop(name)
			}
		}
		before, err = now, nil
	}
}

// Close ends the server; what Run of a Remote started must have ended.
func (s *Service) Close() {
	if s.listener != nil {
		_ = s.listener.Close() // closed by its server already, mostly
	}
	if s.engine != nil {
		s.engine.Close()
	}
	if s.server != nil {
		s.server.Close()
	}
	if s.lock != nil {
		_ = s.lock.Unlock() // the process ends with it
	}
}
