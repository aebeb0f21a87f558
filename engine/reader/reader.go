package reader

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/inbox"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/steps"
)

// Readers calls the readers of a workspace.
type Readers struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	intake   *intake.Intake
}

// New gives the readers of a workspace.
func New(l *ledger.Ledger, s *settings.Source, in *intake.Intake) *Readers {
	return &Readers{ledger: l, settings: s, intake: in}
}

// Outcome is what one call of a reader came to.
type Outcome struct {
	Reader string            `json:"reader"`
	Taken  []intake.Admitted `json:"taken"`
	Known  int               `json:"known"`           // lines whose items are there
	Failed []string          `json:"failed"`          // lines that became no item, and why
	Ended  string            `json:"ended,omitempty"` // how the program failed; "": it did not
}

// Trouble reports whether a person should look.
func (o Outcome) Trouble() bool { return len(o.Failed) > 0 || o.Ended != "" }

func (o Outcome) String() string {
	said := fmt.Sprintf("reader %s: %d taken in, %d known", o.Reader, len(o.Taken), o.Known)
	if len(o.Failed) > 0 {
		said += fmt.Sprintf(", %d not taken in: %s", len(o.Failed), o.Failed[0])
	}
	if o.Ended != "" {
		said += ": " + o.Ended
	}
	return said
}

const (
	maxLine     = 1 << 20
	maxFailed   = 100 // that are told of one call
	mostTime    = time.Hour
	logsFolder  = "logs/readers/"
	kindOfItems = "reader."
)

// Read calls one reader, and takes in what it names as it does. What a call before handed in
// is passed over, so that one that was interrupted is called again.
func (rs *Readers) Read(ctx context.Context, name string) (o Outcome, err error) {
	o = Outcome{Reader: name, Taken: []intake.Admitted{}, Failed: []string{}}
	r, there := rs.settings.Current().Settings.Readers[name]
	if !there {
		return o, fault.Unknown("reader", name, " in the settings", maps.Keys(rs.settings.Current().Settings.Readers))
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(time.Duration(r.Timeout), mostTime))
	defer cancel()
	path := rs.ledger.Path(logsFolder + name + ".log")
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return o, err
	}
	log := folder.NewStepLog(path)
	defer func() { err = errors.Join(err, log.Close()) }()
	lines, theirs := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := rs.run(ctx, name, r, theirs, log)
		_ = theirs.Close() // a pipe's never fails
		ended <- err
	}()
	failed := rs.take(ctx, &o, r, lines)
	if failed != nil {
		cancel()
	}
	_ = lines.Close() // the same
	var exit *exec.ExitError
	switch err := <-ended; {
	case failed != nil:
		return o, failed
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		o.Ended = "it took too long and was ended"
	case ctx.Err() != nil:
		return o, ctx.Err()
	case errors.As(err, &exit):
		o.Ended = exit.String()
	case err != nil:
		o.Ended = err.Error()
	}
	return o, nil
}

// run runs the program in the workspace, in a process group of its own.
func (rs *Readers) run(ctx context.Context, name string, r settings.Reader, out, log io.Writer) error {
	program := r.Command[0]
	if strings.Contains(program, "/") {
		program = settings.Below(rs.ledger.Root, program)
	}
	cmd := exec.Command(program, r.Command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = rs.ledger.Root, out, log, 5*time.Second
	cmd.Env = append(os.Environ(), "BAGPIPE_READER="+name, "BAGPIPE_WORKSPACE="+rs.ledger.Root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return steps.RunGroup(ctx, cmd)
}

// take takes in what the lines name. Its error is of what concerns all of them.
func (rs *Readers) take(ctx context.Context, o *Outcome, r settings.Reader, lines io.Reader) error {
	sc := bufio.NewScanner(lines)
	sc.Buffer(make([]byte, 0, 64<<10), maxLine)
	for n := 1; sc.Scan(); n++ {
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		got, known, err := rs.line(ctx, o.Reader, r, sc.Bytes())
		switch {
		case ctx.Err() != nil:
			return nil // Read tells
		case ledger.MustStop(err):
			return err
		case known:
			o.Known++
		case err != nil && len(o.Failed) < maxFailed:
			o.Failed = append(o.Failed, ledger.Clip(ledger.Printable(fmt.Sprintf("line %d: %v", n, err)), ledger.MaxMessage))
		case err == nil:
			o.Taken = append(o.Taken, got)
		}
	}
	if errors.Is(sc.Err(), bufio.ErrTooLong) {
		o.Failed = append(o.Failed, fmt.Sprintf("a line has more than %d bytes; what follows it was not read", maxLine))
		return nil
	}
	return sc.Err()
}

// handed is one line.
type handed struct {
	ID          string            `json:"id"`
	Path        string            `json:"path"`
	URL         string            `json:"url"`
	Digest      string            `json:"digest"`
	Label       string            `json:"label"`
	Collection  layout.Name       `json:"collection"`
	Workflow    string            `json:"workflow"`
	Lane        string            `json:"lane"`
	Identifiers map[string]string `json:"identifiers"`
	Metadata    map[string]any    `json:"metadata"`
}

func (h *handed) check() error {
	switch {
	case h.ID == "" || len(h.ID) > 512:
		return errors.New("expected an id of 1 to 512 bytes")
	case (h.Path == "") == (h.URL == ""):
		return fmt.Errorf("%q: expected one of path and url", h.ID)
	case h.URL != "" && h.Digest == "":
		return fmt.Errorf("%q: expected a digest, sha256:HEX, of what is behind the url", h.ID)
	case h.Digest != "" && !strings.HasPrefix(h.Digest, "sha256:"):
		return fmt.Errorf("%q: digest %q: expected sha256:HEX", h.ID, h.Digest)
	case h.Collection == "":
		return nil
	}
	_, err := layout.ParseName(string(h.Collection))
	return err
}

// line takes in what a line names, unless it was taken in before.
func (rs *Readers) line(ctx context.Context, name string, r settings.Reader, data []byte) (got intake.Admitted, known bool, err error) {
	var h handed
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return got, false, fmt.Errorf("it is no JSON object of the known keys: %w", err)
	}
	if err := h.check(); err != nil {
		return got, false, err
	}
	own := kindOfItems + name
	if known, err = rs.intake.IsKnown(ctx, map[string]string{own: h.ID}); known || err != nil {
		return got, known, err
	}
	if h.Identifiers == nil {
		h.Identifiers = map[string]string{}
	}
	h.Identifiers[own] = h.ID
	path, move := settings.Below(rs.ledger.Root, h.Path), false
	if h.URL != "" {
		var clear func()
		if path, clear, err = rs.fetch(ctx, &h); err != nil {
			return got, false, fmt.Errorf("%q: %w", h.ID, err)
		}
		defer clear()
		move = true
	} else if err := verify(ctx, path, h.Digest); err != nil {
		return got, false, fmt.Errorf("%q: %w", h.ID, err)
	}
	got, err = rs.intake.Add(ctx, path, intake.AddOptions{Workflow: cmp.Or(h.Workflow, r.Workflow), Collection: layout.Name(cmp.Or(string(h.Collection), r.Collection)),
		Label: h.Label, Lane: cmp.Or(h.Lane, r.Lane), Move: move, By: rs.ledger.ByRobot(layout.Name(name)), Said: &inbox.Said{Identifiers: h.Identifiers, Metadata: h.Metadata}})
	if err == nil && got.Rejected != "" {
		err = errors.New(got.Rejected)
	}
	if err != nil {
		err = fmt.Errorf("%q: %w", h.ID, err)
	}
	return got, false, err
}

// verify compares a file's digest with what the reader said.
func verify(ctx context.Context, path, digest string) error {
	if digest == "" {
		return nil
	}
	sum, err := inbox.Digest(ctx, path)
	if err == nil && sum.Digest != digest {
		err = fmt.Errorf("its digest is %s, and the reader said %s", sum.Digest, digest)
	}
	return err
}
