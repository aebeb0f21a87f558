package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"syscall"
	"time"

	"bagpipe/bags/archive"
	"bagpipe/cmd/bagpipe/internal/admin"
	"bagpipe/cmd/bagpipe/internal/screen"

	"github.com/alecthomas/kong"
)

// version is set at build time.
var version = "dev"

func main() {
	if code, ok := archive.Reader(); ok { // this process was started to read one archive
		os.Exit(code)
	}
	collectLate()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the program without its process: it answers with the exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	if len(args) == 1 && args[0] == "--version" { // no option of every command: retrieve has one of its own
		args = []string{"version"}
	}
	cli := &cli{}
	exited := -1
	parser, err := kong.New(cli,
		kong.Name("bagpipe"),
		kong.Description("Drop content into inbox folders; Bagpipe takes each drop through a workflow, and every transition is a Git commit.\n\n"+screen.CodesHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: false, WrapUpperBound: 100}),
		kong.Writers(out, errOut),
		kong.Exit(func(code int) { exited = code; panic(errExit) }),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(decodeTime)),
	)
	if err != nil {
		fmt.Fprintln(errOut, "bagpipe:", err)
		return int(screen.ExitError)
	}
	kctx, err := parse(parser, args)
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
	printed := &screen.Output{W: out}
	app := &app{Screen: &screen.Screen{In: in, Out: printed, Err: errOut}, globals: cli.globals, drain: make(chan struct{})}
	ctx, stop := app.untilSignal(context.Background())
	defer stop()
	kctx.Bind(app.Screen, screen.Around(app.workspaceDir()), admin.Open(app.open), admin.Program(thisProgram()))
	kctx.BindTo(ctx, (*context.Context)(nil))
	code := app.code(kctx.Run(app))
	if err := printed.Failure(); err != nil && code == screen.ExitDone && !errors.Is(err, syscall.EPIPE) {
		app.Talk("bagpipe: %v", err)
		return int(screen.ExitError)
	}
	return int(code)
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
