package delivery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/layout/disk"
	"bagpipe/steps"
	"bagpipe/steps/target"
)

// commandOutlet is a program. It is given what to do as its last argument (ask, put or
// remove), the parcel as JSON on standard input, and, to put, its files in BAGPIPE_PARCEL. It
// answers as robots do: 0 done, 75 later; to ask 77, if the target does not hold it. The last
// line that it prints is the receipt.
type commandOutlet struct {
	argv    []string
	root    string // of the workspace
	scratch string // for the files, if they do not lie in one folder already
	timeout time.Duration
}

// apart: what the program does with other versions is its own affair.
func (c commandOutlet) apart() bool { return true }

func (c commandOutlet) run(ctx context.Context, act, dir string, p parcel) (string, error) {
	ctx, stop := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("it did not end within %s", c.timeout))
	defer stop()
	in, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	name := c.argv[0]
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = filepath.Join(c.root, name)
	}
	cmd := exec.Command(name, append(c.argv[1:len(c.argv):len(c.argv)], act)...)
	cmd.Dir, cmd.Stdin = c.root, bytes.NewReader(append(in, '\n'))
	cmd.Env = append(os.Environ(), append(c.known(p), "BAGPIPE_ACT="+act, "BAGPIPE_PARCEL="+dir)...)
	last, err := steps.RunProgram(ctx, cmd, io.Discard)
	if ctx.Err() != nil {
		return last, &target.Down{Err: fmt.Errorf("%s %s: %w", c.argv[0], act, context.Cause(ctx))}
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() != 75 {
		return last, &exit{ended.ExitCode(), last}
	}
	if err != nil {
		return last, &target.Down{Err: fmt.Errorf("%s %s: %w: %s", c.argv[0], act, err, last)}
	}
	return last, nil
}

// known are the variables by which all is known that runs for a parcel.
func (c commandOutlet) known(p parcel) []string {
	return []string{"BAGPIPE_KEY=" + p.Key, "BAGPIPE_WORKSPACE=" + c.root}
}

// exit is the end of a program.
type exit struct {
	code int
	last string
}

func (e *exit) Error() string { return fmt.Sprintf("exit code %d: %s", e.code, e.last) }

func (c commandOutlet) ask(ctx context.Context, p parcel) (string, bool, error) {
	if err := endLeft(ctx, c.known(p)...); err != nil {
		return "", false, unsent{err}
	}
	receipt, err := c.run(ctx, "ask", "", p)
	var ended *exit
	if errors.As(err, &ended) && ended.code == 77 {
		return "", false, nil
	}
	return receipt, err == nil, err
}

func (c commandOutlet) put(ctx context.Context, p parcel) (receipt string, err error) {
	dir := c.scratch
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, disk.RemoveTree(dir)) }()
	if err := p.write(ctx, dir); err != nil {
		return "", err
	}
	if receipt, err = c.run(ctx, "put", dir, p); err != nil {
		return receipt, err
	}
	_, has, err := c.ask(ctx, p)
	if err == nil && !has {
		err = errors.New("the program ended well, and says that the target does not hold it")
	}
	return receipt, err
}

func (c commandOutlet) remove(ctx context.Context, p parcel) error {
	if err := endLeft(ctx, c.known(p)...); err != nil {
		return err
	}
	_, err := c.run(ctx, "remove", "", p)
	return err
}

// depositOutlet is a target as deposits have it.
type depositOutlet struct {
	target.Target
	scratch string
	at      time.Time
	by      string
}

func (d depositOutlet) apart() bool { return true }

// ask is always answered by put, which reads what is there and writes what is missing.
func (d depositOutlet) ask(context.Context, parcel) (string, bool, error) { return "", false, nil }

func (d depositOutlet) put(ctx context.Context, p parcel) (receipt string, err error) {
	if err := os.MkdirAll(d.scratch, 0o700); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, disk.RemoveTree(d.scratch)) }()
	if err := p.write(ctx, d.scratch); err != nil {
		return "", err
	}
	c, err := d.Put(ctx, target.Bag{Item: p.Item, Version: p.Version, Dir: d.scratch, By: d.by, At: d.at, Message: "delivered"})
	return c.Place + " " + c.Digest, err
}

// remove leaves to people what stands there: it is a deposit. What they removed is taken back.
func (d depositOutlet) remove(ctx context.Context, p parcel) error {
	stands, err := target.Stands(ctx, d.Target, p.Item, p.Version)
	if err == nil && stands {
		err = errKept
	}
	return err
}

// errKept says that a target keeps what it has.
var errKept = errors.New("what is deposited is kept: remove it there by hand, and take it back again")
