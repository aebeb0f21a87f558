package handover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
)

// Run runs a command in the workspace at root, in a process group of its own, with data on
// standard input and env, KEY=VALUE, beside the engine's own environment. An error holds the
// beginning of what the program printed.
func Run(ctx context.Context, root string, command, env []string, data []byte) error {
	name := command[0]
	if strings.Contains(name, "/") {
		name = settings.Below(root, name)
	}
	cmd := exec.CommandContext(ctx, name, command[1:]...)
	cmd.Dir, cmd.Stdin = root, bytes.NewReader(data)
	cmd.Env = append(os.Environ(), env...)
	out := &firstBytes{most: 1000}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return said(fmt.Errorf("%s: %w", command[0], err), out.String())
	}
	return nil
}

// Post sends JSON; any answer of 2xx will do. An error holds the beginning of the answer.
func Post(client *http.Client, req *http.Request) (err error) {
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "bagpipe")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // for the message alone
	if resp.StatusCode/100 != 2 {
		return said(fmt.Errorf("%s answered %s", req.URL, resp.Status), string(text))
	}
	return nil
}

// said adds the answer to an error, if there was one.
func said(err error, text string) error {
	if text = ledger.OneLine(ledger.Printable(text), 200); text == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, text)
}

// firstBytes keeps the beginning of what is written.
type firstBytes struct {
	bytes.Buffer
	most int
}

func (b *firstBytes) Write(p []byte) (int, error) {
	if left := b.most - b.Len(); left > 0 {
		b.Buffer.Write(p[:min(left, len(p))])
	}
	return len(p), nil
}
