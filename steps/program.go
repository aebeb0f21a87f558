package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"

	"bagpipe/layout"
)

// Environment is the environment of a program: base, or the engine's own where base is
// nil, with the variables of env set. A variable whose name ends in PATH is a list with
// colons: its value is put before the one that is there.
func Environment(base []string, env map[string]string) []string {
	if base == nil {
		base = slices.DeleteFunc(os.Environ(), ofTargets)
	}
	if len(env) == 0 {
		return base
	}
	out := slices.Clone(base)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		at := slices.IndexFunc(out, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		if at < 0 {
			out = append(out, name+"="+value)
			continue
		}
		out[at] = name + "=" + Variable(name, value, strings.TrimPrefix(out[at], name+"="))
	}
	return out
}

// ofTargets reports whether a variable is a secret of the engine's own: of a target.
func ofTargets(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "BAGPIPE_") && layout.IsSecretName(name)
}

// Variable is the value that a variable has when it is set to value where it was was.
func Variable(name, value, was string) string {
	if strings.HasSuffix(name, "PATH") && was != "" {
		return value + ":" + was
	}
	return value
}

// ExitError is a program's own exit code where it means a system failure.
type ExitError struct {
	Code int
	Text string
}

func (e *ExitError) Error() string { return e.Text }

// ExitCode is what a robot's answer would be as a program's exit code; 1 for a
// system failure that came from no program.
func ExitCode(res Result, err error) int {
	var later *Later
	var unavailable *Unavailable
	var exit *ExitError
	switch {
	case err == nil && res.Status == Skipped:
		return ExitSkipped
	case err == nil:
		return 0
	case errors.As(err, &later):
		return ExitLater
	case errors.As(err, &unavailable):
		return ExitUnavailable
	case errors.As(err, &exit):
		return exit.Code
	case KindOf(err) == Content:
		return ExitContent
	}
	return 1
}

// Warmer is a Robot that has to get ready before its first call in an engine, such
// as one that loads a model or asks whether a service is there. WarmUp is given the
// step's parameters; while it fails the engine does not claim the step, and asks
// again after a while. It may be called from several goroutines, for different
// steps.
type Warmer interface {
	Robot
	WarmUp(ctx context.Context, with map[string]any) error
}

// WarmUpCommand runs a program as the warm-up of a step, in the empty folder
// scratch, with environment. It has succeeded when it ends with exit code 0; the last line it printed
// says why not.
func WarmUpCommand(ctx context.Context, argv, environment []string, step layout.Name, scratch string) error {
	last := &lastLine{to: io.Discard}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = scratch
	cmd.Env = append(slices.Clone(environment), "BAGPIPE_STEP="+string(step), "BAGPIPE_SCRATCH="+scratch)
	cmd.Stdin = bytes.NewReader(nil)
	cmd.Stdout, cmd.Stderr = last, last
	cmd.WaitDelay = termGrace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	err := RunGroup(ctx, cmd)
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return errors.New("it took too long and was ended" + colon(last.String()))
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exit):
		return fmt.Errorf("%s%s", exit.ProcessState, colon(last.String()))
	}
	return err
}

// lastLine passes output on and keeps the last line that is not empty. A log that cannot
// be written ends no program: a pipe that nobody reads would.
type lastLine struct {
	to io.Writer

	mu   sync.Mutex // guards the rest
	line []byte
	open []byte
	lost error // the log cannot be written
}

const maxLastLine = 500

// Write passes p on.
func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	for line := range bytes.Lines(p) {
		if room := maxLastLine - len(l.open); room > 0 {
			l.open = append(l.open, line[:min(len(line), room)]...)
		}
		if bytes.HasSuffix(line, []byte("\n")) {
			l.settle()
		}
	}
	if l.lost == nil {
		_, l.lost = l.to.Write(p)
	}
	l.mu.Unlock()
	return len(p), nil
}

// full says that the log was cut as there is no space; nil: it was not.
func (l *lastLine) full() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.lost, syscall.ENOSPC) || errors.Is(l.lost, syscall.EDQUOT) {
		return l.lost
	}
	return nil
}

func (l *lastLine) settle() {
	if t := bytes.TrimSpace(l.open); len(t) > 0 {
		l.line = append(l.line[:0], t...)
	}
	l.open = l.open[:0]
}

// String is the last line printed so far.
func (l *lastLine) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	return string(bytes.ToValidUTF8(l.line, []byte("\uFFFD")))
}
