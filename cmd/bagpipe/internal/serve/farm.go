package serve

import (
	"fmt"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/fault"
	"bagpipe/engine/remote"
)

// farm says where workers on other machines come in.
type farm struct {
	NATS       bool   `name:"nats" help:"Have steps done by workers on other machines, as workers: in bagpipe.yaml says; with a NATS server in this process."`
	NATSListen string `name:"nats-listen" default:"127.0.0.1:4222" placeholder:"ADDR" help:"With --nats: where workers come in, over TLS and with keys; their bytes at the next port. Default: 127.0.0.1:4222."`
	NATSName   string `name:"nats-name" placeholder:"HOST" help:"With --nats: the name that workers reach this machine by; default: the host of --nats-listen."`
}

// workers opens the ports for workers; without --nats steps are lent over the pages' address
// alone. It is nil where another engine does that. done closes the ports after the run.
func (f *farm) workers(on *screen.Screen, e *engine.Engine) (r *remote.Remote, done func(), err error) {
	if !f.NATS {
		return f.portless(e, on)
	}
	s, err := remote.Listen(remote.ServiceOptions{Root: e.Root(), Listen: f.NATSListen, Names: f.NATSName, ID: e.ID(), Now: time.Now, Log: e.Ledger.Log})
	if err != nil {
		return nil, nil, err
	}
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
