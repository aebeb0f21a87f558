package alert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// handOver gives a digest to a command or an address, within alertTimeout.
func (al *Alerts) handOver(ctx context.Context, a *state.Alert, d Digest) error {
	for i := range d.Groups {
		g := &d.Groups[i]
		g.Examples = nil
		for _, x := range g.Members[:min(len(g.Members), alertExamples)] {
			g.Examples = append(g.Examples, ask.FailureExample{Item: x.Item, Collection: x.Collection, Label: x.Label, Message: x.Message})
		}
	}
	data, err := layout.EncodeJSON(d)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, alertTimeout, fmt.Errorf("it took more than %s", alertTimeout))
	defer cancel()
	if a.URL != "" {
		err = post(ctx, a.URL, data)
	} else {
		err = al.runAlert(ctx, a.Command, d, data)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// post sends the digest; any answer of 2xx will do. A redirection that would make a GET
// of it, without the digest, such as one to a page to log in at, is not followed.
func post(ctx context.Context, url string, data []byte) (err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "bagpipe")
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if next.Method != http.MethodPost || len(via) >= 10 {
				return http.ErrUseLastResponse
			}
			return nil
		}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // for the message alone
	if resp.StatusCode/100 != 2 {
		return said(fmt.Errorf("%s answered %s", url, resp.Status), string(text))
	}
	return nil
}

// runAlert runs the command in the workspace, in a process group of its own, with the
// digest on standard input.
func (al *Alerts) runAlert(ctx context.Context, command []string, d Digest, data []byte) error {
	name := command[0]
	if strings.Contains(name, "/") {
		name = settings.Below(al.ledger.Root, name)
	}
	cmd := exec.CommandContext(ctx, name, command[1:]...)
	cmd.Dir, cmd.Stdin = al.ledger.Root, bytes.NewReader(data)
	cmd.Env = append(os.Environ(), "BAGPIPE_WORKFLOW="+d.Workflow, "BAGPIPE_NEW="+strconv.Itoa(d.New), "BAGPIPE_WAITING="+strconv.Itoa(d.Waiting), "BAGPIPE_NEWS="+d.news())
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

// said adds what was answered to an error, if anything was.
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
