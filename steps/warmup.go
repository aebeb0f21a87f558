package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"bagpipe/layout"
)

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
// scratch. It has succeeded when it ends with exit code 0; the last line it printed
// says why not.
func WarmUpCommand(ctx context.Context, argv []string, step layout.Name, scratch string) error {
	last := &lastLine{to: io.Discard}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = scratch
	cmd.Env = append(os.Environ(), "BAGPIPE_STEP="+string(step), "BAGPIPE_SCRATCH="+scratch)
	cmd.Stdin = bytes.NewReader(nil)
	cmd.Stdout, cmd.Stderr = last, last
	cmd.WaitDelay = termGrace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	err := runGroup(ctx, cmd)
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
