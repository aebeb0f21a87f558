package bus

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// ServerOptions say where the embedded server listens, and who may come.
type ServerOptions struct {
	Listen    string // HOST:PORT; port 0 is any free one
	Store     string // a folder that is the server's alone; it is emptied
	TLS       *tls.Config
	WebSocket string // HOST:PORT for workers behind firewalls; "": none
	Cluster   *Cluster
	// Key gives the worker whose public key this is. It is asked at each connection.
	Key func(public string) (layout.Name, bool)
	Log *slog.Logger
}

// Cluster says how a broker finds the others. Its store is kept.
type Cluster struct {
	Name   string // of this broker
	Listen string
	Routes []string // HOST:PORT
	Secret string
	TLS    *tls.Config
	Engine string // the engine's public key
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
	host, n, err := hostPort(listen)
	if err != nil {
		return err
	}
	if s.o.Cluster == nil {
		if err := os.RemoveAll(s.o.Store); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(s.o.Store, 0o700); err != nil {
		return err
	}
	options := &server.Options{
		ServerName: "bagpipe", Host: host, Port: n, JetStream: true, StoreDir: s.o.Store, SyncAlways: true,
		NoSigs: true, NoLog: true, MaxPayload: wire.MaxMessage + 16<<10, AlwaysEnableNonce: true, CustomClientAuthentication: s,
		TLSConfig: s.o.TLS, TLSTimeout: 5, PingInterval: 5 * time.Second, MaxPingsOut: 2, DisableShortFirstPing: true,
	}
	if s.o.WebSocket != "" {
		host, port, err := hostPort(s.o.WebSocket)
		if err != nil {
			return err
		}
		options.Websocket = server.WebsocketOpts{Host: host, Port: port, TLSConfig: s.o.TLS, AuthTimeout: 5, HandshakeTimeout: 5 * time.Second}
	}
	if s.o.Cluster != nil {
		if err := s.o.Cluster.apply(options); err != nil {
			return err
		}
	}
	srv, err := server.NewServer(options)
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

func hostPort(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(text); port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, err
}

// apply makes a server one of a cluster.
func (c *Cluster) apply(o *server.Options) (err error) {
	o.ServerName = c.Name
	o.Cluster = server.ClusterOpts{Name: "bagpipe", Username: "broker", Password: c.Secret, AuthTimeout: 5, TLSConfig: c.TLS, TLSTimeout: 5,
		PingInterval: 5 * time.Second, MaxPingsOut: 2}
	if o.Cluster.Host, o.Cluster.Port, err = hostPort(c.Listen); err != nil {
		return err
	}
	for _, at := range c.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", User: url.UserPassword("broker", c.Secret), Host: strings.TrimPrefix(strings.TrimPrefix(at, "nats-route://"), "nats://")})
	}
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
	if opts.Nkey == s.operator || s.o.Cluster != nil && opts.Nkey == s.o.Cluster.Engine {
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
	if public == s.operator || s.o.Cluster != nil && public == s.o.Cluster.Engine {
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
	publish, subscribe := Permissions(name)
	return &server.Permissions{Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe}}
}

// Permissions are the subjects that a worker needs; the name in them is what proves who it is.
func Permissions(name layout.Name) (publish, subscribe []string) {
	const api = "$JS.API.CONSUMER."
	return []string{wire.AskSubject(name, ">"), api + "MSG.NEXT." + wire.Stream + ".>", api + "INFO." + wire.Stream + ".>", "$JS.ACK." + wire.Stream + ".>"},
		[]string{wire.InboxPrefix(name) + ".>", wire.TellSubject(name)}
}

// EnginePermissions are the subjects that the engine, and the commands that give it orders, need of a server
// that is not its own; besides the engine may answer whom it hears.
func EnginePermissions() (publish, subscribe []string) {
	orders := wire.InboxPrefix(wire.Operator) + ".>"
	return []string{"bagpipe.>", "$JS.API.>", "$SYS.REQ.SERVER.PING.JSZ", orders}, []string{"bagpipe.>", "_INBOX.>", orders}
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

// PublicOf is the public part of a key.
func PublicOf(seed string) (string, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	return pair.PublicKey()
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
