package farm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bagpipe/cmd/bagpipe/internal/admin"
	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/remote"
	"bagpipe/engine/remote/bus"
	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
)

// Remote names where a workspace syncs, and lets workers in.
type Remote struct {
	admin.Remote
	Invite  invite  `cmd:"" help:"Let a worker in: write the file with its key."`
	Revoke  revoke  `cmd:"" help:"Take a worker's key back; it is disconnected at once."`
	Verify  verify  `cmd:"" help:"Compare the stream of offers with what the engine has on offer."`
	Rebuild rebuild `cmd:"" help:"Make the stream of offers anew."`
}

type invite struct {
	Name string   `arg:"" help:"The worker's name."`
	File string   `arg:"" help:"The file to write; it is the worker's secret."`
	URL  []string `name:"url" placeholder:"URL" help:"Where the worker reaches the engine; may be given several times. Default: as the engine listens now, or nats://127.0.0.1:4222."`
}

// own finds the workspace, which only its own account may let workers into.
func own(around screen.Around) (root string, err error) {
	root, err = engine.Find(string(around))
	if err == nil {
		err = engine.CheckOwner(root)
	}
	return root, err
}

// Run invites.
func (c *invite) Run(on *screen.Screen, around screen.Around) error {
	name, err := layout.ParseName(c.Name)
	if err != nil {
		return screen.WrongUse("NAME: " + err.Error())
	}
	root, err := own(around)
	if err != nil {
		return err
	}
	if len(c.URL) == 0 {
		c.URL = []string{"nats://127.0.0.1:4222"}
		if s, err := remote.ReadStatus(root); err == nil && s.URL != "" {
			c.URL = []string{s.URL}
		}
	}
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	key, err := remote.Invite(root, name, c.URL, time.Now())
	if err == nil {
		var data []byte
		if data, err = key.Encode(); err == nil {
			_, err = f.Write(data)
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(c.File))
	}
	fmt.Fprintf(on.Out, "%s: %s\n", name, c.File)
	return nil
}

type revoke struct {
	Name string `arg:"" help:"The worker's name."`
}

// Run revokes.
func (c *revoke) Run(around screen.Around) error {
	root, err := own(around)
	if err != nil {
		return err
	}
	return remote.Revoke(root, layout.Name(c.Name))
}

type verify struct{}

// Run verifies.
func (c *verify) Run(ctx context.Context, on *screen.Screen, around screen.Around) error {
	return order(ctx, on, around, wire.Control{Head: wire.Now(), Verb: wire.Verify})
}

type rebuild struct{}

// Run rebuilds.
func (c *rebuild) Run(ctx context.Context, on *screen.Screen, around screen.Around) error {
	return order(ctx, on, around, wire.Control{Head: wire.Now(), Verb: wire.Rebuild})
}

// errNoWorkers says that nobody serves workers here.
var errNoWorkers = errors.New("no engine serves workers of this workspace; one is started with --nats")

// order has the engine that serves workers do something, and prints what it says.
func order(ctx context.Context, on *screen.Screen, around screen.Around, c wire.Control) error {
	root, err := own(around)
	if err != nil {
		return err
	}
	key, err := readKey(filepath.Join(root, filepath.FromSlash(remote.Dir), "operator"))
	if errors.Is(err, fs.ErrNotExist) {
		return errNoWorkers
	}
	if err != nil {
		return err
	}
	config, err := key.TLS()
	if err != nil {
		return err
	}
	link, err := bus.Dial(bus.DialOptions{URLs: key.URLs, Name: key.Name, Seed: key.Seed, TLS: config, Changed: func(string) {}})
	if err != nil {
		return fmt.Errorf("%w: %w", errNoWorkers, err)
	}
	defer link.Close()
	data, err := wire.Encode(c)
	if err != nil {
		return err
	}
	asked, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	reply, err := link.Ask(asked, wire.VerbControl, data)
	if err != nil {
		return err
	}
	var said wire.Controlled
	if err := wire.Decode(reply, &said); err != nil {
		return err
	}
	if said.Refused != "" {
		return errors.New(said.Refused)
	}
	fmt.Fprintln(on.Out, said.Text)
	return nil
}
