package farm

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine/remote/bus"
	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
)

// Broker carries messages between an engine and its workers; three of them are a cluster.
type Broker struct {
	Name      string   `required:"" placeholder:"NAME" help:"Of this broker; each of a cluster has another."`
	Key       string   `required:"" placeholder:"FILE" help:"The file that remote invite --broker wrote."`
	Listen    string   `default:"127.0.0.1:4222" placeholder:"ADDR" help:"Where engine and workers come in, over TLS and with keys; default: 127.0.0.1:4222."`
	WebSocket string   `name:"websocket" placeholder:"ADDR" help:"Where workers come in that may use the web alone (wss://)."`
	Cluster   string   `required:"" placeholder:"ADDR" help:"Where the other brokers come in."`
	Routes    []string `placeholder:"ADDR" help:"Where the other brokers are, as --cluster has it there; may be given several times."`
	Store     string   `default:"bagpipe-broker" placeholder:"DIR" writes:"" help:"Its folder; default: bagpipe-broker."`
}

// Run serves until a signal comes.
func (c *Broker) Run(ctx context.Context, on *screen.Screen, b Bench) error {
	b.Stays("stopping")
	if _, err := layout.ParseName(c.Name); err != nil {
		return screen.WrongUse("--name: " + err.Error())
	}
	data, err := os.ReadFile(c.Key)
	if err != nil {
		return err
	}
	key, err := wire.DecodeBrokerKey(data)
	if err != nil {
		return fmt.Errorf("read %s: %w", c.Key, err)
	}
	log := on.Log
	if log == nil {
		log = slog.New(slog.NewTextHandler(on.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	s, err := bus.ServeBroker(bus.BrokerOptions{Key: key, Log: log, ServerOptions: bus.ServerOptions{Listen: c.Listen, WebSocket: c.WebSocket, Store: c.Store,
		Cluster: &bus.Cluster{Name: c.Name, Listen: c.Cluster, Routes: c.Routes}}})
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Fprintf(on.Out, "Broker: nats://%s\n", s.Addr())
	select {
	case <-ctx.Done():
	case <-b.Drain:
	}
	return nil
}
