package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"
	"time"

	"bagpipe/bags/archive"
	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/mounted"
	"bagpipe/steps"

	"github.com/alecthomas/kong"
)

// version is set at build time.
var version = "dev"

// Exit codes; --help shows them.
const (
	exitDone        = 0
	exitError       = 1
	exitUsage       = 2
	exitSomeFailed  = 4
	exitThreshold   = 5
	exitInterrupted = 130
)

const exitCodes = `Exit codes:
  0    done
  1    an error, or the thing checked is not valid
  2    usage
  4    done, but some item failed
  5    stopped by an error threshold
  130  interrupted`

func main() {
	if code, ok := archive.Reader(); ok { // this process was started to read one archive
		os.Exit(code)
	}
	collectLate()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the program without its process: it answers with the exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	cli := &cli{}
	exited := -1
	parser, err := kong.New(cli,
		kong.Name("bagpipe"),
		kong.Description("Drop content into inbox folders; Bagpipe takes each drop through a workflow, and every transition is a Git commit.\n\n"+exitCodes),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: false, WrapUpperBound: 100}),
		kong.Writers(out, errOut),
		kong.Exit(func(code int) { exited = code; panic(errExit) }),
		kong.Vars{"version": version},
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(decodeTime)),
	)
	if err != nil {
		fmt.Fprintln(errOut, "bagpipe:", err)
		return exitError
	}
	kctx, err := parse(parser, args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		fmt.Fprintln(errOut, usage(err))
		return exitUsage
	}
	printed := &output{w: out}
	app := newApp(cli, in, printed, errOut)
	defer app.stop()
	code := app.code(kctx.Run(app))
	if err := printed.failure(); err != nil && code == exitDone {
		app.talk("bagpipe: %v", err)
		return exitError
	}
	return code
}

// usage words a usage error, and names the help of the command it is about.
func usage(err error) string {
	command, hint := "bagpipe", ""
	var broken *kong.ParseError
	if errors.As(err, &broken) && broken.Context != nil {
		if node := broken.Context.Selected(); node != nil {
			command, _, _ = strings.Cut(node.FullPath(), " <")
			// After a list, only an option can have ended it.
			if n := len(node.Positional); n > 0 && node.Positional[n-1].IsSlice() && strings.HasPrefix(err.Error(), "unexpected argument ") {
				hint = ": options stand before or after the arguments, not between them"
			}
		}
	}
	// An option that may be absent has the empty text among its values; nobody writes it.
	text := strings.Replace(err.Error(), `must be one of "",`, "must be one of ", 1)
	return fmt.Sprintf("bagpipe: %s%s\nTry: %s --help", text, hint, command)
}

// errExit unwinds kong after it printed the help or the version.
var errExit = errors.New("exit")

func parse(parser *kong.Kong, args []string) (ctx *kong.Context, err error) {
	defer func() {
		if p := recover(); p != nil && p != any(errExit) {
			panic(p)
		}
	}()
	return parser.Parse(args)
}

// app is what the commands share: where they print, which signals came.
type app struct {
	cli    *cli
	in     io.Reader
	out    *output
	err    io.Writer
	ctx    context.Context // ends at the second signal, or at the first where nothing drains
	drain  chan struct{}   // closed at the first signal
	drains bool            // the command drains; guarded by being set before signals are read
	stop   func()
}

func newApp(c *cli, in io.Reader, out *output, errOut io.Writer) *app {
	ctx, cancel := context.WithCancel(context.Background())
	a := &app{cli: c, in: in, out: out, err: errOut, ctx: ctx, drain: make(chan struct{})}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.watchSignals(ctx, signals, cancel)
	}()
	a.stop = func() {
		signal.Stop(signals)
		cancel()
		<-ended
	}
	return a
}

func (a *app) watchSignals(ctx context.Context, signals <-chan os.Signal, cancel func()) {
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
		if n == 1 && a.drains {
			a.talk("stopping: what runs is finished first; a second signal stops it, and it is resumed at the next start")
		}
		if n == 1 {
			close(a.drain)
		}
		if n > 1 || !a.drains {
			cancel()
		}
	}
}

// interrupted tells whether a signal came.
func (a *app) interrupted() bool {
	select {
	case <-a.drain:
		return true
	default:
		return false
	}
}

func (a *app) talk(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }

// exit is an error that is only an exit code; everything has been said.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// code prints an error, once, and turns it into the exit code.
func (a *app) code(err error) int {
	var e exit
	var w wrongUse
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &e):
		return int(e)
	case errors.As(err, &w):
		a.talk("bagpipe: %s", errorText(err))
		return exitUsage
	case a.interrupted() && errors.Is(err, context.Canceled):
		a.talk("bagpipe: interrupted")
		return exitInterrupted
	}
	a.talk("bagpipe: %s", errorText(err))
	return exitError
}

// options wires the engine to the world.
func (a *app) options() (engine.Options, error) {
	host, err := claim.ThisHost()
	if err != nil {
		return engine.Options{}, err
	}
	var log slog.Handler = newTalkHandler(a.err)
	if a.cli.Verbose {
		log = slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelDebug})
	}
	return engine.Options{
		Now:    time.Now,
		Random: rand.Reader,
		Log:    slog.New(log),
		Person: gitstore.Identity(a.workspaceDir()),
		Robots: steps.Builtins(),
		Host:   host,
		Warn:   func(text string) { a.talk("warning: %s", text) },
	}, nil
}

// workspaceDir is where the search for the workspace begins.
func (a *app) workspaceDir() string {
	if a.cli.Dir != "" {
		return a.cli.Dir
	}
	return "."
}

// open finds and opens the workspace; the caller closes the engine.
func (a *app) open() (*engine.Engine, error) {
	root, err := engine.Find(a.workspaceDir())
	if err != nil {
		return nil, err
	}
	o, err := a.options()
	if err != nil {
		return nil, err
	}
	e, err := engine.Open(a.ctx, root, o)
	if err == nil || !cannotWrite(err) {
		return e, err
	}
	// To look must be possible for those who may not write, on a snapshot, and on a
	// full disk, and where the bytes of the items are not mounted.
	o.ReadOnly = true
	e, again := engine.Open(a.ctx, root, o)
	if again != nil {
		return nil, err
	}
	a.talk("warning: the workspace cannot be written to (%s); what is shown is what was committed", errorText(err))
	return e, nil
}

func cannotWrite(err error) bool {
	var unmounted *mounted.Error
	if errors.As(err, &unmounted) {
		return true
	}
	for _, why := range []error{fs.ErrPermission, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, why) {
			return true
		}
	}
	return false
}

// with opens the workspace, lets f work on it, and closes it.
func (a *app) with(f func(*engine.Engine) error) (err error) {
	e, err := a.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return f(e)
}

// withOptions is with, for one who says how it is opened.
func (a *app) withOptions(o engine.Options, f func(*engine.Engine) error) (err error) {
	root, err := engine.Find(a.workspaceDir())
	if err != nil {
		return err
	}
	e, err := engine.Open(a.ctx, root, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return f(e)
}

// looking is with, with all items loaded.
func (a *app) looking(f func(*engine.Engine) error) error {
	return a.with(func(e *engine.Engine) error {
		if err := e.Index.Load(a.ctx); err != nil {
			return err
		}
		return f(e)
	})
}
