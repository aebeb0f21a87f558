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
	"strings"
	"sync"
	"sync/atomic"
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
	Root      string
	Listen    string  // HOST:PORT of NATS; the transfer listens at the next port
	Names     string  // the host that workers know this machine by; "": that of Listen
	WebSocket string  // HOST:PORT for workers behind firewalls; "": none
	Outside   Outside // servers that are not of this process
	ID        layout.EngineID
	Now       func() time.Time
	Log       *slog.Logger
}

// Outside are NATS servers that are not of the engine's process; without URLs there are none.
type Outside struct {
	URLs  []string
	CA    string // a file with the authority of the servers; "": this workspace's
	Plain bool   // without TLS, on this machine alone
	wire.Means
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
	operator string                                           // the operator's public key
	keys     atomic.Pointer[map[layout.Name]access.WorkerKey] // as told to brokers last
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
	if len(o.Outside.URLs) > 0 {
		return s, s.goOut(dir)
	}
	if s.server, err = bus.Serve(bus.ServerOptions{Listen: o.Listen, WebSocket: o.WebSocket, Store: filepath.Join(o.Root, layout.StateDir, "nats"), TLS: s.tls, Key: s.known, Log: o.Log}); err != nil {
		return nil, err
	}
	if s.engine, err = s.server.Engine(); err != nil {
		return nil, err
	}
	if s.listener, err = s.listen(s.server.Addr()); err != nil {
		return nil, err
	}
	if s.Place, err = s.place(dir); err != nil {
		return nil, err
	}
	s.Place.URL, s.Place.Restart, s.Place.Twice = "nats://"+s.at(s.server.Addr()), s.server.Restart, s.server.Twice
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
func (s *Service) listen(after string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(after)
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
	watchful := net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 2}} // a dead worker is noticed in 15 s
	l, err := watchful.Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(n+1)))
	if err != nil {
		return nil, fmt.Errorf("listen for the workers' bytes: %w", err)
	}
	return tls.NewListener(l, s.tls), nil
}

// place makes the files of a Remote, and says how workers reach it.
func (s *Service) place(dir string) (Place, error) {
	p := Place{Root: s.o.Root, ID: s.o.ID, Broker: s.engine, Restart: func() error { return nil }, Start: s.start,
		Probe: filepath.Join(dir, "probe"), Transfer: "https://" + s.at(s.listener.Addr().String()) + "/"}
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

// goOut connects to servers that are not of this process.
func (s *Service) goOut(dir string) error {
	out := s.o.Outside
	key := Key{Schema: wire.KeySchema, Name: wire.Operator, URLs: out.URLs, Plain: out.Plain, Means: out.Means}
	var err error
	if key.Authority, err = Authority(s.book.Dir(), s.o.Now()); err != nil {
		return err
	}
	if key.Seed, _, err = engineKey(s.book.Dir()); err != nil {
		return err
	}
	if out.CA != "" {
		if key.Server, err = os.ReadFile(out.CA); err != nil {
			return err
		}
	}
	config, err := key.ServerTLS()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if s.engine, err = bus.DialEngine(ctx, bus.Outside{URLs: out.URLs, TLS: config, Seed: key.Seed, Means: out.Means}, s.o.Log); err != nil {
		return err
	}
	keys, err := s.book.Workers()
	if err != nil {
		return err
	}
	s.tellKeys(keys)
	if s.listener, err = s.listen(s.o.Listen); err != nil {
		return err
	}
	if s.Place, err = s.place(dir); err != nil {
		return err
	}
	s.Place.URL, s.Place.Plain, s.Place.Known = strings.Join(out.URLs, ","), out.Plain, s.invited
	_, s.Place.Warning = s.engine.Synced(ctx)
	data, err := key.Encode()
	if err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(dir, "operator"), data, 0o600)
}

// invited reports whether a worker of this name was invited, and not revoked.
func (s *Service) invited(name layout.Name) bool {
	if name == wire.Operator {
		return true
	}
	if keys := s.keys.Load(); keys != nil {
		if _, is := (*keys)[name]; is {
			return true
		}
	}
	keys, err := s.book.Workers() // it may be of now
	_, is := keys[name]
	return err == nil && is
}

// tellKeys tells brokers which keys come in, now and again: one may have been away.
func (s *Service) tellKeys(keys map[layout.Name]access.WorkerKey) {
	s.keys.Store(&keys)
	told := map[string]layout.Name{}
	for name, key := range keys {
		told[key.Public] = name
	}
	s.engine.TellKeys(told)
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
	if err == nil && s.server == nil {
		s.tellKeys(before)
	}
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
		if s.server == nil {
			s.tellKeys(now)
		}
		for name, key := range before {
			if s.server != nil && now[name].Public != key.Public {
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
