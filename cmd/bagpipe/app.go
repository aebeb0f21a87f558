package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"syscall"
	"time"

	"bagpipe/cmd/bagpipe/internal/journal"
	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/mounted"
	"bagpipe/layout"
	"bagpipe/steps"

	"github.com/alecthomas/kong"
)

// globals are the options of every command.
type globals struct {
	Dir     string `short:"C" name:"dir" env:"BAGPIPE_WORKSPACE" placeholder:"DIR" help:"The workspace, or a folder in it; default: the current folder, from there upward."`
	Verbose bool   `short:"v" help:"Write the log to standard error, too."`
	journal.Options
}

// app is what the commands share: where they print, which workspace they open, which
// signals came.
type app struct {
	*screen.Screen
	globals
	log        *journal.Log  // nil: none is kept
	drain      chan struct{} // closed at the first signal
	unwritable error         // why the workspace was opened for reading only; nil: it was not
	drains     string        // what the first signal is answered with; "": the command does not drain
}

// untilSignal gives a context that ends at the second signal, or at the first where the
// command does not drain; stop ends it too.
func (a *app) untilSignal(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		a.watchSignals(stopped, signals, cancel)
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(stopped)
		<-ended
		cancel()
	}
}

func (a *app) watchSignals(stopped <-chan struct{}, signals <-chan os.Signal, cancel func()) {
	for n := 1; ; n++ {
		var s os.Signal
		select {
		case <-stopped:
			return
		case s = <-signals:
		}
		if s == syscall.SIGHUP && a.log.Rotates() {
			if err := a.log.Reopen(); err != nil {
				a.Talk("warning: %v", err)
			}
			n--
			continue
		}
		if n == 1 && a.drains != "" {
			a.Talk("%s", a.drains)
		}
		if n == 1 {
			close(a.drain)
		}
		if n > 1 || a.drains == "" {
			cancel()
		}
		if n > 2 || n > 1 && a.drains == "" { // it waits for somebody else; a kill loses nothing
			os.Exit(int(screen.ExitInterrupted))
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

// code prints an error, once, and turns it into the exit code.
func (a *app) code(err error) screen.Exit {
	var e screen.Exit
	var w screen.WrongUse
	var foreign *ledger.Foreign
	switch {
	case err == nil:
		return screen.ExitDone
	case errors.As(err, &e):
		return e
	case a.interrupted() && errors.Is(err, context.Canceled):
		a.Talk("bagpipe: interrupted")
		return screen.ExitInterrupted
	case errors.As(a.unwritable, &foreign) && errors.Is(err, gitstore.ErrReadOnly):
		err = foreign
	case errors.Is(err, gitstore.ErrReadOnly):
		err = cmp.Or(engine.OnlyClone(a.workspaceDir()), errNothingChanged) // why was told when it was opened
	}
	a.Talk("bagpipe: %s", screen.Local(errorText(err)))
	if errors.As(err, &w) {
		return screen.ExitUsage
	}
	return screen.ExitError
}

// options wires the engine to the world.
func (a *app) options() (engine.Options, error) {
	host, err := claim.ThisHost()
	if err != nil {
		return engine.Options{}, err
	}
	return engine.Options{
		Program: thisProgram(),
		Version: version,
		Now:     time.Now,
		Random:  rand.Reader,
		Log:     slog.New(a.logHandler()),
		Person:  gitstore.Identity(a.workspaceDir()),
		Robots:  steps.Builtins(),
		Host:    host,
		Warn:    func(text string) { a.Talk("warning: %s", text) },
	}, nil
}

// logHandler takes what the engine logs: for people its warnings, all of it where they ask.
func (a *app) logHandler() slog.Handler {
	switch {
	case a.log.OnTerminal():
		return a.log.Handler()
	case a.log != nil:
		return slog.NewMultiHandler(screen.NewLogHandler(a.Err), a.log.Handler())
	case a.Verbose:
		return slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelDebug})
	}
	return screen.NewLogHandler(a.Err)
}

// openLog opens the log that was asked for.
func (a *app) openLog(o journal.Options) (err error) {
	if a.log, err = journal.Open(o, a.Verbose, a.Err); err != nil || a.log == nil {
		return err
	}
	a.Log = a.log.Logger
	if a.log.OnTerminal() { // all of it goes there, as records
		a.Err = io.Discard
	}
	return nil
}

// thisProgram is the path that this program was called by; links stay, as an upgrade may
// move them.
func thisProgram() string {
	path, err := exec.LookPath(os.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "bagpipe" // is looked for when it is called
	}
	return path
}

// workspaceDir is where the search for the workspace begins.
func (a *app) workspaceDir() string { return cmp.Or(a.Dir, ".") }

// errNothingChanged ends a command that changes something where the workspace could be opened to look alone.
var errNothingChanged = errors.New("nothing was changed, as the workspace cannot be written to")

// open opens the workspace; the caller closes the engine.
func (a *app) open(ctx context.Context) (*engine.Engine, error) {
	root, err := engine.Find(a.workspaceDir())
	if err != nil {
		return nil, err
	}
	o, err := a.options()
	if err != nil {
		return nil, err
	}
	e, err := engine.Open(ctx, root, o)
	if err == nil || !cannotWrite(err) {
		a.unwritable = nil
		return e, err
	}
	// To look must be possible for those who may not write, on a snapshot, and on a
	// full disk, and where the bytes of the items are not mounted.
	o.ReadOnly = true
	e, again := engine.Open(ctx, root, o)
	if again != nil {
		return nil, err
	}
	said := a.unwritable != nil
	if a.unwritable = err; said {
		return e, nil
	}
	var foreign *ledger.Foreign
	if errors.As(err, &foreign) {
		a.Talk("read-only: this workspace belongs to %s", foreign.Account)
	} else {
		a.Talk("warning: the workspace cannot be written to (%s); the committed state is shown", errorText(err))
	}
	return e, nil
}

func cannotWrite(err error) bool {
	var unmounted *mounted.Error
	var foreign *ledger.Foreign
	return errors.As(err, &unmounted) || errors.As(err, &foreign) || slices.ContainsFunc([]error{fs.ErrPermission, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT},
		func(why error) bool { return errors.Is(err, why) })
}

// with opens the workspace, lets f work on it, and closes it.
func (a *app) with(ctx context.Context, f func(*engine.Engine) error) error {
	e, err := a.open(ctx)
	return use(e, err, f)
}

// openTo is open; to read alone, the workspace is opened as it was committed.
func (a *app) openTo(ctx context.Context, readOnly bool) (*engine.Engine, error) {
	if !readOnly {
		return a.open(ctx)
	}
	root, err := engine.Find(a.workspaceDir())
	if err != nil {
		return nil, err
	}
	o, err := a.options()
	if err != nil {
		return nil, err
	}
	o.ReadOnly = true
	return engine.Open(ctx, root, o)
}

// toRead is with, on the workspace at root as it was committed.
func (a *app) toRead(ctx context.Context, root string, f func(*engine.Engine) error) error {
	o, err := a.options()
	if err != nil {
		return err
	}
	o.ReadOnly = true
	e, err := engine.Open(ctx, root, o)
	return use(e, err, f)
}

func use(e *engine.Engine, err error, f func(*engine.Engine) error) error {
	if err != nil {
		return err
	}
	return errors.Join(f(e), e.Close())
}

// looking is with, with all items loaded.
func (a *app) looking(ctx context.Context, f func(*engine.Engine) error) error {
	return a.with(ctx, func(e *engine.Engine) error {
		if err := e.Index.Load(ctx); err != nil {
			return err
		}
		return f(e)
	})
}

// resolve finds an item.
func (a *app) resolve(ctx context.Context, ref string) (id layout.ItemID, err error) {
	err = a.onItem(ctx, ref, func(_ *engine.Engine, found layout.ItemID) error {
		id = found
		return nil
	})
	return id, err
}

// onItem opens the workspace and finds the item.
func (a *app) onItem(ctx context.Context, ref string, f func(*engine.Engine, layout.ItemID) error) error {
	return a.with(ctx, func(e *engine.Engine) error {
		id, err := e.Ask.Resolve(ctx, ref)
		if err != nil {
			return err
		}
		return f(e, id)
	})
}

// version is set at build time.
var version = "dev"

// decodeDuration is how options take a time: by layout.ParseDuration.
func decodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("TIME", &text); err != nil {
		return err
	}
	d, err := layout.ParseDuration(text)
	if err != nil {
		return err
	}
	target.SetInt(int64(d))
	return nil
}

// decodeTime is how options take a point in time.
func decodeTime(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("TIME", &text); err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("expected a time such as 2020-01-31T12:00:00Z, not %q", text)
	}
	target.Set(reflect.ValueOf(t))
	return nil
}
