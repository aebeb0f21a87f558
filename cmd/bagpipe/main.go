package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	"bagpipe/bags/archive"
	"bagpipe/cmd/bagpipe/internal/bagtool"
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
	cli := &cli{}
	exited := -1
	parser, err := kong.New(cli,
		kong.Name("bagpipe"),
		kong.Description("Drop content into inbox folders; Bagpipe takes each drop through a workflow, and every transition is a Git commit.\n\n"+screen.CodesHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: false, WrapUpperBound: 100}),
		kong.Writers(out, errOut),
		kong.Exit(func(code int) { exited = code; panic(errExit) }),
		kong.Vars{"version": version},
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
		fmt.Fprintln(errOut, usage(err))
		return int(screen.ExitUsage)
	}
	printed := &screen.Output{W: out}
	app := &app{Screen: &screen.Screen{In: in, Out: printed, Err: errOut}, globals: cli.globals, drain: make(chan struct{})}
	ctx, stop := app.untilSignal(context.Background())
	defer stop()
	kctx.Bind(app.Screen, bagtool.Around(app.workspaceDir()))
	kctx.BindTo(ctx, (*context.Context)(nil))
	code := app.code(kctx.Run(app))
	if err := printed.Failure(); err != nil && code == screen.ExitDone {
		app.Talk("bagpipe: %v", err)
		return int(screen.ExitError)
	}
	return int(code)
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
