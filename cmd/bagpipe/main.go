package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"syscall"
	"time"

	"bagpipe/bags/archive"
	"bagpipe/cmd/bagpipe/internal/admin"
	"bagpipe/cmd/bagpipe/internal/bagtool"
	"bagpipe/cmd/bagpipe/internal/farm"
	"bagpipe/cmd/bagpipe/internal/garbage"
	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/cmd/bagpipe/internal/serve"
	"bagpipe/engine/fault"
	"bagpipe/steps"

	"github.com/alecthomas/kong"
)

func main() {
	if code, ok := archive.Reader(); ok { // this process was started to read one archive
		os.Exit(code)
	}
	if code, ok := steps.Decoder(); ok { // this process was started to read files
		os.Exit(code)
	}
	garbage.CollectLate()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the program without its process: it answers with the exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	if len(args) == 1 && args[0] == "--version" { // no option of every command: retrieve has one of its own
		args = []string{"version"}
	}
	cli, args := &cli{}, showsLog(args)
	exited := -1
	options := []kong.Option{
		kong.Name("bagpipe"),
		kong.Description("Drop content into inbox folders; Bagpipe takes each drop through a workflow, and every transition is a Git commit.\n\n" + screen.CodesHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: false, WrapUpperBound: 100}),
		kong.Help(printHelp),
		kong.Writers(out, errOut),
		kong.Exit(func(code int) { exited = code; panic(errExit) }),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(decodeTime)),
	}
	kctx, err := parse(cli, options, args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		var broken *kong.ParseError
		if errors.As(err, &broken) {
			fmt.Fprintln(errOut, usage(broken.Context, err))
		} else {
			fmt.Fprintln(errOut, "bagpipe:", err)
		}
		return int(screen.ExitUsage)
	}
	printed := &screen.Output{W: out, Colours: screen.Colours(out)}
	app := &app{Screen: &screen.Screen{In: in, Out: printed, Err: errOut}, globals: cli.globals, drain: make(chan struct{})}
	if err := cmp.Or(app.needsWorkspace(kctx), app.sparesCatalogs(kctx)); err != nil {
		return int(app.code(err))
	}
	if err := app.openLog(cli.Options); err != nil {
		return int(app.code(err))
	}
	defer app.log.Close()
	ctx, stop := app.untilSignal(context.Background())
	defer stop()
	kctx.Bind(app.Screen, screen.Around(app.workspaceDir()), admin.Open(app.open), admin.Program(thisProgram()), admin.Options(app.options), bagtool.Agent("Bagpipe "+version),
		farm.Bench{Stays: app.stays, Drain: app.drain, Version: version, Resolve: app.resolve},
		serve.Bench{Open: app.openTo, Watch: app.watch, Stays: func() { app.stays(resumes) }, AtOnce: parallelOr, Drain: app.drain, Words: remedyWords{}, Version: version})
	kctx.BindTo(ctx, (*context.Context)(nil))
	err = kctx.Run(app)
	code := app.code(err)
	if near := misnamed(kctx); len(near) > 0 && fault.Is(err, fault.NotFound) {
		app.Talk("perhaps: bagpipe %s", strings.Join(near, ", "))
	}
	if app.log != nil {
		app.log.Info("command ended", "command", kctx.Command(), "code", int(code))
	}
	if err := printed.Failure(); err != nil && code == screen.ExitDone && !errors.Is(err, syscall.EPIPE) {
		app.Talk("bagpipe: %v", err)
		return int(screen.ExitError)
	}
	return int(code)
}

// errExit unwinds kong after it printed the help or the version.
var errExit = errors.New("exit")
