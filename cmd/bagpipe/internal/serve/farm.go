package serve

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/fault"
	"bagpipe/engine/remote"
	"bagpipe/engine/remote/wire"
)

// farm says where workers on other machines come in.
type farm struct {
	NATS       bool   `name:"nats" help:"Have steps done by workers on other machines, as workers: in bagpipe.yaml says; with a NATS server in this process."`
	NATSListen string `name:"nats-listen" default:"127.0.0.1:4222" placeholder:"ADDR" help:"With --nats: where workers come in, over TLS and with keys; their bytes at the next port. Default: 127.0.0.1:4222."`
	NATSWeb    string `name:"nats-websocket" placeholder:"ADDR" help:"With --nats: where workers come in that may use the web alone (wss://)."`
	NATSName   string `name:"nats-name" placeholder:"HOST" help:"With --nats: the name that workers reach this machine by; default: the host of --nats-listen."`

	outside
}

// outside are NATS servers that are not of this process.
type outside struct {
	URL     []string `name:"nats-url" placeholder:"URL" help:"Instead of --nats: brokers, or other NATS servers, as in nats://broker-1:4222; three hold each offer thrice. The workers' bytes come in at the port after --nats-listen."`
	Plain   bool     `name:"nats-plain" help:"With --nats-url: a server on this machine, without TLS."`
	CA      string   `name:"nats-ca" placeholder:"FILE" help:"With --nats-url: the authority of servers that are not Bagpipe's brokers, in PEM."`
	Creds   string   `name:"nats-creds" placeholder:"FILE" help:"With --nats-url: credentials (JWT); default: this workspace's own nkey."`
	NKey    string   `name:"nats-nkey" placeholder:"FILE" help:"Likewise: the seed of another nkey."`
	Token   string   `name:"nats-token" placeholder:"FILE" help:"Likewise: a token."`
	Cert    string   `name:"nats-cert" placeholder:"FILE" help:"Likewise: a client certificate, in PEM; with --nats-cert-key."`
	CertKey string   `name:"nats-cert-key" placeholder:"FILE" help:"Its key, in PEM."`
}

// check refuses what is not safe beyond this machine.
func (o *outside) check() error {
	if o.Plain {
		for _, at := range o.URL {
			u, err := url.Parse(at)
			if err != nil {
				return fmt.Errorf("--nats-url: %w", err)
			}
			if ip, err := netip.ParseAddr(u.Hostname()); u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback()) {
				return fmt.Errorf("--nats-plain: %s is not on this machine; beyond it TLS is needed", at)
			}
		}
	}
	if (o.Cert == "") != (o.CertKey == "") {
		return errors.New("--nats-cert and --nats-cert-key belong together")
	}
	return nil
}

func (o *outside) servers() remote.Outside {
	return remote.Outside{URLs: o.URL, CA: o.CA, Plain: o.Plain, Means: wire.Means{Creds: o.Creds, NKey: o.NKey, Token: o.Token, Cert: o.Cert, CertKey: o.CertKey}}
}

// lets reports whether workers may come.
func (f *farm) lets() bool { return f.NATS || len(f.URL) > 0 }

// workers opens the ports for workers; without --nats steps are lent over the pages' address
// alone. With away this machine does only what cannot go elsewhere. It is nil where another engine does that. done closes the ports after the run.
func (f *farm) workers(on *screen.Screen, e *engine.Engine, away bool) (r *remote.Remote, done func(), err error) {
	if !f.lets() {
		return f.portless(e, on)
	}
	s, err := remote.Listen(remote.ServiceOptions{Root: e.Root(), Listen: f.NATSListen, WebSocket: f.NATSWeb, Outside: f.servers(), Names: f.NATSName, ID: e.ID(), Now: time.Now, Log: e.Ledger.Log})
	if err != nil {
		return nil, nil, err
	}
	s.Place.Away = away
	if r, err = e.Workers(s.Place, on.Say); err != nil {
		s.Close()
		return nil, nil, err
	}
	fmt.Fprintf(on.Out, "Workers: %s\n", s.Place.URL)
	return r, s.Close, nil
}

// portless lends steps over the pages' address.
func (f *farm) portless(e *engine.Engine, on *screen.Screen) (r *remote.Remote, done func(), err error) {
	s, err := remote.Portless(remote.ServiceOptions{Root: e.Root(), ID: e.ID(), Now: time.Now, Log: e.Ledger.Log})
	if fault.Is(err, fault.Busy) {
		return nil, func() {}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if r, err = e.Workers(s.Place, on.Say); err != nil {
		s.Close()
		return nil, nil, err
	}
	return r, s.Close, nil
}
