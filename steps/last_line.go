package steps

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"syscall"
)

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
