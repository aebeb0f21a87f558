package farm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	Invite  invite  `cmd:"" workspace:"" help:"Let a worker in: write the file with its key."`
	Revoke  revoke  `cmd:"" workspace:"" help:"Take a worker's key back; it is disconnected at once."`
	Verify  verify  `cmd:"" help:"Compare the stream of offers with the engine's own."`
	Rebuild rebuild `cmd:"" workspace:"" help:"Make the stream of offers anew."`
	Check   check   `cmd:"" help:"Print the users and permissions that a NATS server needs which is not Bagpipe's."`
}

type invite struct {
	Name   string   `arg:"" help:"The worker's name."`
	File   string   `arg:"" writes:"" help:"The file to write; it is the worker's secret."`
	CA     string   `name:"ca" placeholder:"FILE" help:"The authority of NATS servers that are not Bagpipe's, in PEM."`
	Plain  bool     `help:"The NATS server is not Bagpipe's, on this machine, and without TLS."`
	Broker bool     `help:"NAME is a broker's: the file has its certificate, and lets the engine and the invited workers in."`
	URL    []string `name:"url" placeholder:"URL" help:"Where the worker reaches the engine; may be given several times. Default: as the engine listens now, or nats://127.0.0.1:4222."`
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
	k := wire.Key{Name: name, URLs: c.URL, Plain: c.Plain}
	if s, err := remote.ReadStatus(root); err == nil && s.URL != "" {
		k.Plain = k.Plain || s.Plain
		if len(k.URLs) == 0 {
			k.URLs = strings.Split(s.URL, ",")
		}
	}
	if len(k.URLs) == 0 {
		if k.URLs = []string{"nats://127.0.0.1:4222"}; !c.Broker {
			on.Talk("bagpipe serve --nats has not run here yet: the key leads to %s, which is this machine; --url says another address", k.URLs[0])
		}
	}
	if c.CA != "" {
		if k.Server, err = os.ReadFile(c.CA); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already; nothing is written over it", layout.EncodePath(c.File))
	}
	if err != nil {
		return err
	}
	data, err := c.key(root, k)
	if err == nil {
		_, err = f.Write(data)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(c.File))
	}
	fmt.Fprintf(on.Out, "%s: %s\n", name, c.File)
	return nil
}

// key makes the file.
func (c *invite) key(root string, k wire.Key) ([]byte, error) {
	if c.Broker {
		b, err := remote.InviteBroker(root, time.Now())
		if err != nil {
			return nil, err
		}
		data, err := json.MarshalIndent(b, "", "  ")
		return append(data, '\n'), err
	}
	k, err := remote.Invite(root, k, time.Now())
	if err != nil {
		return nil, err
	}
	return k.Encode()
}

type check struct{}

// Run prints users as a NATS server's configuration has them.
func (c *check) Run(on *screen.Screen, around screen.Around) error {
	root, err := own(around)
	if err != nil {
		return err
	}
	all, err := remote.NeedsOf(root)
	if err != nil {
		return err
	}
	quoted := func(subjects []string) string { return `"` + strings.Join(subjects, `", "`) + `"` }
	fmt.Fprintf(on.Out, "jetstream { sync_interval: always }\nauthorization {\n  users = [\n")
	for _, n := range all {
		fmt.Fprintf(on.Out, "    # %s\n    {nkey: %s, permissions: {\n      publish: [%s]\n      subscribe: [%s]\n      allow_responses: %t\n    }}\n", n.Name, n.Public, quoted(n.Publish), quoted(n.Subscribe), n.Answers)
	}
	fmt.Fprintf(on.Out, "  ]\n}\n")
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

// orderTime is longer than any order takes.
const orderTime, testTime = 65 * time.Second, 61 * time.Minute

// order has the engine that serves workers do something, and prints what it says.
func order(ctx context.Context, on *screen.Screen, around screen.Around, c wire.Control) error {
	text, err := asked(ctx, around, c)
	if err == nil {
		_, err = fmt.Fprintln(on.Out, text)
	}
	return err
}

// asked has the engine that serves workers do something, and gives what it says.
func asked(ctx context.Context, around screen.Around, c wire.Control) (string, error) {
	root, err := own(around)
	if err != nil {
		return "", err
	}
	key, err := readKey(filepath.Join(root, filepath.FromSlash(remote.Dir), "operator"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errNoWorkers
	}
	if err != nil {
		return "", err
	}
	config, err := key.ServerTLS()
	if err != nil {
		return "", err
	}
	link, err := bus.Dial(bus.DialOptions{Outside: bus.Outside{URLs: key.URLs, Seed: key.Seed, TLS: config, Means: key.Means}, Name: key.Name, Changed: func(string) {}})
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoWorkers, err)
	}
	defer link.Close()
	data, err := wire.Encode(c)
	if err != nil {
		return "", err
	}
	wait := orderTime
	if c.Verb == wire.Test {
		wait = testTime
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	reply, err := link.Ask(waiting, wire.VerbControl, data)
	if err != nil {
		return "", err
	}
	var said wire.Controlled
	if err := wire.Decode(reply, &said); err != nil {
		return "", err
	}
	if said.Refused != "" {
		return "", errors.New(said.Refused)
	}
	return said.Text, nil
}
