package bus

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// ServerOptions say where the embedded server listens, and who may come.
type ServerOptions struct {
	Listen string // HOST:PORT; port 0 is any free one
	Store  string // a folder that is the server's alone; it is emptied
	TLS    *tls.Config
	// Key gives the worker whose public key this is. It is asked at each connection.
	Key func(public string) (layout.Name, bool)
	Log *slog.Logger
}

// Server is a NATS server in this process.
type Server struct {
	o        ServerOptions
	operator string // the public key of this process's own connections

	mu     sync.Mutex // guards the rest
	seed   []byte
	server *server.Server
	conns  map[layout.Name][]uint64 // the connections of a worker's key
}

const startTime = 10 * time.Second

// Serve starts the server.
func Serve(o ServerOptions) (*Server, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, conns: map[layout.Name][]uint64{}}
	if s.operator, err = pair.PublicKey(); err != nil {
		return nil, err
	}
	if s.seed, err = pair.Seed(); err != nil {
		return nil, err
	}
	return s, s.start(o.Listen)
}

// start begins with an empty store: what was in it is offered again.
func (s *Server) start(listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	if n == 0 {
		n = server.RANDOM_PORT
	}
	if err := os.RemoveAll(s.o.Store); err != nil {
		return err
	}
	if err := os.MkdirAll(s.o.Store, 0o700); err != nil {
		return err
	}
	srv, err := server.NewServer(&server.Options{
		ServerName: "bagpipe", Host: host, Port: n, JetStream: true, StoreDir: s.o.Store, SyncAlways: true,
		NoSigs: true, NoLog: true, MaxPayload: wire.MaxMessage + 16<<10, AlwaysEnableNonce: true, CustomClientAuthentication: s,
		TLSConfig: s.o.TLS, TLSTimeout: 5, PingInterval: 5 * time.Second, MaxPingsOut: 2, DisableShortFirstPing: true,
	})
	if err != nil {
		return fmt.Errorf("start the NATS server: %w", err)
	}
	srv.Start()
	if !srv.ReadyForConnections(startTime) {
		srv.Shutdown()
		return fmt.Errorf("the NATS server did not begin to listen at %s within %s; is the address in use?", listen, startTime)
	}
	s.mu.Lock()
	s.server = srv
	s.mu.Unlock()
	return nil
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.running().Addr().String() }

func (s *Server) running() *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server
}

// Close ends the server.
func (s *Server) Close() {
	srv := s.running()
	srv.Shutdown()
	srv.WaitForShutdown()
}

// Restart begins with an empty store, at the same address. Connections come back by
// themselves.
func (s *Server) Restart() error {
	at := s.Addr()
	s.Close()
	return s.start(at)
}

// Check lets a connection in that proves a known key; it is server.Authentication.
func (s *Server) Check(c server.ClientAuthentication) bool {
	opts := c.GetOpts()
	name, err := s.proven(opts.Nkey, opts.Sig, c.GetNonce())
	if err != nil {
		s.o.Log.Warn("a connection was refused", "from", c.RemoteAddress(), "err", err)
		return false
	}
	if opts.Nkey == s.operator {
		c.RegisterUser(&server.User{Username: "engine"})
		return true
	}
	c.RegisterUser(&server.User{Username: string(name), Permissions: permissions(name)})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[name] = append(s.conns[name], c.GetID())
	return true
}

// proven gives the worker whose key signed the nonce.
func (s *Server) proven(public, sig string, nonce []byte) (layout.Name, error) {
	signature, err := base64.RawURLEncoding.DecodeString(sig)
	if err != nil {
		return "", errors.New("no signature")
	}
	key, err := nkeys.FromPublicKey(public)
	if err != nil {
		return "", errors.New("no key")
	}
	if err := key.Verify(nonce, signature); err != nil {
		return "", err
	}
	if public == s.operator {
		return "", nil
	}
	name, ok := s.o.Key(public)
	if !ok {
		return "", errors.New("the key is not known here, or was revoked")
	}
	return name, nil
}

// permissions let a worker pull offers, ask in its own name, and hear what is for it.
func permissions(name layout.Name) *server.Permissions {
	api := "$JS.API.CONSUMER."
	return &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{wire.AskSubject(name, ">"),
			api + "MSG.NEXT." + wire.Stream + ".>", api + "INFO." + wire.Stream + ".>", "$JS.ACK." + wire.Stream + ".>"}},
		Subscribe: &server.SubjectPermission{Allow: []string{wire.InboxPrefix(name) + ".>", wire.TellSubject(name)}},
	}
}

// Drop ends the connections of a worker's key at once.
func (s *Server) Drop(name layout.Name) {
	s.mu.Lock()
	ids := s.conns[name]
	delete(s.conns, name)
	srv := s.server
	s.mu.Unlock()
	for _, id := range ids {
		_ = srv.DisconnectClientByID(id) // gone by itself meanwhile
	}
}

// Twice reports whether a worker's key has more than one connection.
func (s *Server) Twice(name layout.Name) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[name] = slices.DeleteFunc(s.conns[name], func(id uint64) bool { return s.server.GetClient(id) == nil })
	return len(s.conns[name]) > 1
}

// NewKey draws a key: the seed is secret, the public part names it.
func NewKey() (seed, public string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", "", err
	}
	secret, err := pair.Seed()
	if err != nil {
		return "", "", err
	}
	public, err = pair.PublicKey()
	return string(secret), public, err
}
