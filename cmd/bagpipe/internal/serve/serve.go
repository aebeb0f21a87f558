package serve

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"bagpipe/cmd/bagpipe/internal/garbage"
	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/cmd/bagpipe/internal/service"
	"bagpipe/engine"
	"bagpipe/engine/metrics"
	"bagpipe/engine/remote"
	"bagpipe/engine/web"
	"bagpipe/engine/web/access"
)

// Bench is what the commands need of the program around them.
type Bench struct {
	Open    func(ctx context.Context, readOnly bool) (*engine.Engine, error)
	Watch   func(ctx context.Context, e *engine.Engine, parallel int, counts *metrics.Metrics, workers *remote.Remote) error
	Stays   func() // prepares a process that works for long
	AtOnce  func(asked int) int
	Drain   <-chan struct{} // closed at the first signal
	Words   web.Words
	Version string
}

// Command runs and watches, and answers browsers and programs.
type Command struct {
	Listen   string   `default:"127.0.0.1:8470" placeholder:"ADDR" help:"The address: HOST:PORT, or unix:PATH; default: 127.0.0.1:8470."`
	Base     string   `default:"/" placeholder:"PATH" help:"The beginning of every address, as in /archive/; default: /."`
	Host     []string `placeholder:"NAME" help:"A name that browsers know this server by; may be given several times. Requests for other names are refused."`
	TLSCert  string   `name:"tls-cert" placeholder:"FILE" help:"The certificate, in PEM; with --tls-key."`
	TLSKey   string   `name:"tls-key" placeholder:"FILE" help:"Its key, in PEM."`
	NoRun    bool     `help:"The pages alone, beside other engines: nothing is taken in, no step is done."`
	ReadOnly bool     `help:"The pages alone, and nothing can be changed through them."`
	Parallel int      `short:"j" default:"-1" placeholder:"N" help:"Steps at once; default: the number of cores. 0: so many, and none of those that are placed on workers."`

	ProxyHeader string   `placeholder:"NAME" help:"A proxy names the user in this header; with --proxy-from."`
	ProxyFrom   []string `placeholder:"ADDR" help:"An address, or a network, whose word about the user counts; may be given several times."`

	farm

	proxies []netip.Prefix
}

// Validate is called by kong.
func (c *Command) Validate() error {
	if c.Parallel < -1 || c.Parallel > 1024 {
		return errors.New("--parallel: expected 1 to 1024, or 0 for the number of cores")
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key belong together")
	}
	if err := c.farm.check(); err != nil {
		return err
	}
	if c.lets() && (c.NoRun || c.ReadOnly) {
		return errors.New("--nats is for an engine that runs: not with --no-run or --read-only")
	}
	if (c.ProxyHeader == "") != (len(c.ProxyFrom) == 0) {
		return errors.New("--proxy-header and --proxy-from belong together")
	}
	if !strings.HasPrefix(c.Base, "/") {
		return fmt.Errorf("--base: expected a path such as /archive/, not %q", c.Base)
	}
	if !strings.HasSuffix(c.Base, "/") {
		c.Base += "/"
	}
	for _, name := range c.Host {
		if u, err := url.Parse("http://" + name + "/"); err != nil || u.Hostname() != strings.Trim(name, "[]") || name == "" {
			return fmt.Errorf("--host: expected a name such as archive.example.org, without port and path, not %q", name)
		}
	}
	for _, from := range c.ProxyFrom {
		p, err := netip.ParsePrefix(from)
		if a, bad := netip.ParseAddr(from); err != nil && bad == nil {
			p, err = a.Prefix(a.BitLen())
		}
		if err != nil {
			return fmt.Errorf("--proxy-from: expected an address or a network, not %q", from)
		}
		c.proxies = append(c.proxies, p)
	}
	return nil
}

// Run serves until a signal comes.
func (c *Command) Run(ctx context.Context, on *screen.Screen, b Bench) (err error) {
	b.Stays()
	e, err := b.Open(ctx, c.ReadOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := e.Index.Load(ctx); err != nil {
		return err
	}
	local, err := c.local(e.Root())
	if err != nil {
		return err
	}
	listener, config, err := c.open()
	if err != nil {
		return err
	}
	defer listener.Close()
	workers, done, err := c.lending(on, e)
	if err != nil {
		return err
	}
	defer done()
	e.Ask.KeepTally()
	garbage.CollectCloser()
	rooms := web.Rooms{Ask: e.Ask, Act: e.Act, Intake: e.Intake, Settings: e.Settings,
		Capabilities: web.Capabilities{Schedule: e.Schedule, Delivery: e.Delivery, Catalog: e.Catalog, Folders: e.Folder, Disposal: e.Disposal, Search: e.Search}}
	if workers != nil {
		rooms.Lender = remote.Claimants{Remote: workers}
	}
	counts := metrics.New(e.Ledger, e.Settings, e.Index, b.Version)
	site, err := web.New(rooms,
		web.Place{Root: e.Root(), Base: c.Base, Version: b.Version, ReadOnly: e.Ledger.ReadOnly, Health: counts.Health, Words: b.Words, Now: time.Now, Random: rand.Reader, Log: slog.New(screen.Telling(e.Ledger.Log.Handler(), on.Err))},
		web.Options{Hosts: c.names(), Local: local, TLS: config != nil, Proxy: web.Proxy{Header: c.ProxyHeader, From: c.proxies}, Watched: counts.Handler()})
	if err != nil {
		return err
	}
	if err := c.tell(on, e, site, listener, local, config != nil); err != nil {
		return err
	}
	return c.serve(ctx, b, e, site, workers, counts, listener, config)
}

// lending opens what steps are lent through, where steps are done here.
func (c *Command) lending(on *screen.Screen, e *engine.Engine) (*remote.Remote, func(), error) {
	if c.NoRun || e.Ledger.ReadOnly {
		return nil, func() {}, nil
	}
	return c.workers(on, e, c.Parallel == 0)
}

// serve runs and answers, until a signal comes or one of the two cannot go on. A threshold
// ends the run, not the pages.
func (c *Command) serve(ctx context.Context, b Bench, e *engine.Engine, site *web.Site, workers *remote.Remote, counts *metrics.Metrics, on net.Listener, config *tls.Config) error {
	answering, stop := context.WithCancel(context.WithoutCancel(ctx))
	working, broken := context.WithCancel(ctx)
	defer broken()
	var wg sync.WaitGroup
	var served error
	wg.Go(func() {
		served = site.Serve(answering, on, config)
		broken()
	})
	var ran error
	if !c.NoRun && !e.Ledger.ReadOnly {
		ran = b.Watch(working, e, b.AtOnce(c.Parallel), counts, workers)
	} else {
		wg.Go(func() { site.Follow(answering) })
		if !e.Ledger.ReadOnly {
			wg.Go(func() { e.JoinPacks(answering) })
		}
	}
	if ran == nil || ran == error(screen.ExitThreshold) {
		select {
		case <-b.Drain:
		case <-working.Done():
		}
	}
	stop()
	wg.Wait()
	return errors.Join(ran, served)
}

// local reports whether only this machine reaches the address. Beyond it, accounts and TLS,
// or a proxy that brings both, are wanted.
func (c *Command) local(root string) (bool, error) {
	if strings.HasPrefix(c.Listen, "unix:") {
		return true, nil
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return false, screen.WrongUse(fmt.Sprintf("--listen: expected HOST:PORT or unix:PATH, not %q", c.Listen))
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		return true, nil
	}
	if c.TLSCert == "" && c.ProxyHeader == "" {
		return false, fmt.Errorf("--listen %s: other machines reach this address; give --tls-cert and --tls-key, or put a proxy before it (--proxy-header, --proxy-from)", c.Listen)
	}
	users, err := access.Open(root).Users()
	if err == nil && len(users) == 0 {
		err = fmt.Errorf("--listen %s: other machines reach this address, and there are no users; add one first", c.Listen)
	}
	return false, err
}

func (c *Command) open() (net.Listener, *tls.Config, error) {
	var config *tls.Config
	if c.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return nil, nil, fmt.Errorf("--tls-cert, --tls-key: %s", screen.OfFile(err))
		}
		config = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	path, isUnix := strings.CutPrefix(c.Listen, "unix:")
	if !isUnix {
		l, err := service.Listen("--listen", c.Listen)
		return l, config, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if other, err := net.Dial("unix", path); err == nil {
			_ = other.Close()
			return nil, nil, fmt.Errorf("another process listens at %s", path)
		}
		if err := os.Remove(path); err != nil { // of a process that was killed
			return nil, nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o660)
	}
	return l, config, err
}

// names are the hosts that requests may be for.
func (c *Command) names() (names []string) {
	for _, h := range c.Host {
		names = append(names, strings.ToLower(h))
	}
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && host != "" {
		names = append(names, strings.ToLower(host))
	}
	return names
}

// tell prints where the pages are, and on this machine the link that lets one browser in.
func (c *Command) tell(on *screen.Screen, e *engine.Engine, site *web.Site, l net.Listener, local, secure bool) error {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	at := l.Addr().String()
	if l.Addr().Network() == "unix" {
		at = "localhost"
	} else if len(c.Host) > 0 {
		_, port, _ := net.SplitHostPort(at)
		at = net.JoinHostPort(c.Host[0], port)
	}
	if !local {
		_, err := fmt.Fprintf(on.Out, "Pages: %s://%s%s\n", scheme, at, c.Base)
		return err
	}
	link, err := site.Link(access.Who{Name: e.Ledger.Person.Name, Email: e.Ledger.Person.Email, Role: access.Admin})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(on.Out, "Open once: %s://%s%s\n", scheme, at, link)
	return err
}
