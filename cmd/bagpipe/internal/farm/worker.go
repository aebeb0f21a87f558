package farm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine/remote/bus"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/worker"
	"bagpipe/layout"
	"bagpipe/steps"
)

// Bench is what a worker needs of the program around it.
type Bench struct {
	Stays   func(stopping string) // prepares a process that works for long; stopping answers the first signal
	Drain   <-chan struct{}
	Version string
	Resolve func(ctx context.Context, item string) (layout.ItemID, error)
}

// Worker performs steps for an engine on another machine.
type Worker struct {
	Connect []string `placeholder:"URL" help:"Where the engine is, as in nats://engine.example:4222; default: as in the key's file."`
	Key     string   `required:"" placeholder:"FILE" help:"The file that remote invite wrote for this worker."`
	Means
	Config string `arg:"" optional:"" name:"config" default:"worker.yaml" help:"The file of the worker's robots; default: worker.yaml."`
}

// Means are how a NATS server that is not Bagpipe's is told who comes; else a key does.
type Means struct {
	Creds   string `placeholder:"FILE" help:"For a NATS server that is not Bagpipe's: credentials (JWT)."`
	NKey    string `name:"nkey" placeholder:"FILE" help:"Likewise: the seed of an nkey."`
	Token   string `placeholder:"FILE" help:"Likewise: a token."`
	Cert    string `placeholder:"FILE" help:"Likewise: a client certificate, in PEM; with --cert-key."`
	CertKey string `placeholder:"FILE" help:"Its key, in PEM."`
}

func (m Means) files() wire.Means { return wire.Means(m) }

// Run works until it is drained.
func (c *Worker) Run(ctx context.Context, on *screen.Screen, b Bench) error {
	b.Stays("stopping: steps at work are finished first; a second signal gives them back")
	key, err := readKey(c.Key)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(c.Config)
	if err != nil {
		return err
	}
	builtins := steps.Builtins()
	config, err := worker.ParseConfig(c.Config, data, builtins)
	if err == nil {
		err = config.Startable()
	}
	if err != nil {
		return err
	}
	if len(c.Connect) > 0 {
		key.URLs = c.Connect
	}
	key.Means = c.Means.files()
	link, err := dial(ctx, b.Drain, on, key)
	if errors.Is(err, errDrained) {
		return nil
	}
	if err != nil {
		return err
	}
	defer link.Close()
	id, err := layout.NewEngineID(rand.Reader)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	log := on.Log
	if log == nil {
		log = slog.New(slog.NewTextHandler(on.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	w, err := worker.New(worker.Options{Config: config, Key: key, Link: carried{link}, Engine: id, Build: b.Version, Host: host, Builtins: builtins,
		Log: log, Say: on.Say, Now: time.Now})
	if err != nil {
		return err
	}
	err = w.Run(ctx, b.Drain)
	if errors.Is(err, worker.ErrFailing) {
		on.Talk("%v", err)
		return screen.ExitThreshold
	}
	if err == nil && ctx.Err() != nil {
		return screen.ExitInterrupted
	}
	return err
}

func readKey(file string) (wire.Key, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return wire.Key{}, err
	}
	key, err := wire.DecodeKey(data)
	if err != nil {
		return key, fmt.Errorf("read key %s: %w", file, err)
	}
	return key, nil
}

// refusedTime is how long a key may be refused: brokers hear of a new one from the engine.
const refusedTime = 2 * time.Second

// errDrained says that a worker was to end before it reached its engine.
var errDrained = errors.New("drained")

// dial connects, again and again while nobody answers.
func dial(ctx context.Context, drain <-chan struct{}, on *screen.Screen, key wire.Key) (*bus.Worker, error) {
	config, err := key.ServerTLS()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	for told := false; ; told = true {
		link, err := bus.Dial(bus.DialOptions{Outside: bus.Outside{URLs: key.URLs, Seed: key.Seed, TLS: config, Means: key.Means}, Name: key.Name, Changed: on.Say})
		refused := errors.Is(err, bus.ErrRefused)
		if err == nil || refused && time.Since(begun) > refusedTime {
			return link, err
		}
		if !told && !refused {
			on.Talk("the engine cannot be reached, and is asked again: %v", err)
		}
		select {
		case <-ctx.Done():
			return nil, screen.ExitInterrupted
		case <-drain:
			return nil, errDrained
		case <-time.After(time.Second):
		}
	}
}

// carried is the worker's side of the bus as a worker wants it.
type carried struct{ *bus.Worker }

func (c carried) Pull(ctx context.Context, class string, wait time.Duration) (worker.Pulled, bool, error) {
	return c.Worker.Pull(ctx, class, wait)
}
