package call

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// Silence is how long a remote may say nothing where the caller does not say.
	Silence = 2 * time.Minute
	// Longest bounds a call whose remote goes on saying something.
	Longest = 6 * time.Hour
	// stopping is how long a program that was told to stop may take.
	stopping = 3 * time.Second
	// mostSaid bounds what is kept of what git says.
	mostSaid = 1 << 20
)

// SilentError is a call that was given up.
type SilentError struct {
	For  time.Duration // how long nothing was said
	Last string        // the last that was
}

func (e *SilentError) Error() string {
	text := fmt.Sprintf("nothing came from the remote for %v, and it was given up", e.For)
	if e.Last != "" {
		text += "; the last was: " + e.Last
	}
	return text
}

var errTooLong = fmt.Errorf("it took more than %v, and was given up", Longest)

// Run runs git, which must be told to show its progress, and gives what it said on standard error without that. Git shows
// progress once a second while bytes come or go, or anything is done here or there. Where it says nothing for the time
// silence, it and all that it began are ended; so they are, at once, when ctx ends. 0 is the time Silence.
func Run(ctx context.Context, silence time.Duration, dir string, env []string, out io.Writer, args ...string) (said string, err error) {
	if silence <= 0 {
		silence = Silence
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tooLong := time.AfterFunc(Longest, func() { cancel(errTooLong) })
	defer tooLong.Stop()
	heard := &listener{}
	heard.quiet = time.AfterFunc(silence, func() { cancel(&SilentError{For: silence, Last: heard.last()}) })
	defer heard.quiet.Stop()
	heard.silence = silence

	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.Stdout, cmd.Stderr = io.MultiWriter(out, heard.pulse()), heard
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ssh, hooks and helpers end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopping
	err = cmd.Run()
	if why := context.Cause(ctx); why != nil && err != nil {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what would not stop
		}
		err = why
	}
	return heard.said(), err
}

// listener keeps what git says, without its progress.
type listener struct {
	silence time.Duration

	mu    sync.Mutex // guards the rest
	quiet *time.Timer
	lines bytes.Buffer
	line  []byte // of which no end came
	spoke string // the last of all, progress, too
}

// pulse counts what comes as a sign of life, and keeps nothing.
func (l *listener) pulse() io.Writer { return pulse{l} }

type pulse struct{ of *listener }

func (p pulse) Write(b []byte) (int, error) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.quiet.Reset(p.of.silence)
	return len(b), nil
}

// Write takes what git says on standard error. A line ends with a line feed; what was drawn over in it is progress.
func (l *listener) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quiet.Reset(l.silence)
	for _, c := range b {
		if c == '\n' || c == '\r' {
			if text := strings.TrimSpace(string(l.line)); text != "" {
				l.spoke = text
			}
		}
		switch {
		case c == '\n':
			l.keep()
		case len(l.line) > 0 && l.line[len(l.line)-1] == '\r':
			l.line = append(l.line[:0], c)
		case len(l.line) < mostSaid:
			l.line = append(l.line, c)
		}
	}
	return len(b), nil
}

func (l *listener) keep() {
	if text := strings.TrimRight(string(l.line), " \r"); !progress.MatchString(text) && l.lines.Len()+len(text) < mostSaid {
		l.lines.WriteString(text + "\n")
	}
	l.line = l.line[:0]
}

// progress is what git says of how far it is, or what it did, where all goes well.
var progress = regexp.MustCompile(`^(remote: )?([A-Z][A-Za-z ]+: +\d+(% \(\d+/\d+\))?(, .*)?|Total \d+ \(delta .*|Delta compression using .*|POST git-[a-z]+-pack.*|Cloning into .*)$`)

func (l *listener) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spoke
}

func (l *listener) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) > 0 {
		l.keep()
	}
	return l.lines.String()
}

// GivenUp reports whether a call ended as the remote said nothing, or went on for too long.
func GivenUp(err error) bool {
	_, silent := errors.AsType[*SilentError](err)
	return silent || errors.Is(err, errTooLong)
}
