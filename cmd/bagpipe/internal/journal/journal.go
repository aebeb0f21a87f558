package journal

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
)

// Options say where and how is logged.
type Options struct {
	Log       string `name:"log" env:"BAGPIPE_LOG" placeholder:"FILE" writes:"" help:"Write the log to FILE, with times and levels; - for standard error. It is opened anew on SIGHUP."`
	LogFormat string `name:"log-format" env:"BAGPIPE_LOG_FORMAT" enum:"text,json" default:"text" help:"With --log: text or json."`
}

// Log is an open log.
type Log struct {
	*slog.Logger
	path   string // "": standard error
	stderr io.Writer

	mu     sync.Mutex // guards the rest
	file   io.WriteCloser
	failed bool // what was written last could not be, which is told
}

// Open opens the log that was asked for; nil: none was.
func Open(o Options, verbose bool, stderr io.Writer) (*Log, error) {
	if o.Log == "" {
		return nil, nil
	}
	l := &Log{stderr: stderr}
	if o.Log == "-" {
		l.file = unclosed{stderr}
	} else {
		l.path = o.Log
		if err := l.Reopen(); err != nil {
			return nil, err
		}
	}
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	ho := &slog.HandlerOptions{Level: level, ReplaceAttr: utc}
	if o.LogFormat == "json" {
		l.Logger = slog.New(slog.NewJSONHandler(l, ho))
	} else {
		l.Logger = slog.New(slog.NewTextHandler(l, ho))
	}
	return l, nil
}

// utc writes times as all of the program's records have them.
func utc(groups []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey && len(groups) == 0 {
		a.Value = slog.StringValue(a.Value.Time().UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	}
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Round(time.Millisecond).Seconds())
	}
	return a
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// OnTerminal tells that the log stands where people are talked to.
func (l *Log) OnTerminal() bool { return l != nil && l.path == "" }

// Rotates tells that the log is a file, which may be moved away and opened anew.
func (l *Log) Rotates() bool { return l != nil && l.path != "" }

// Write appends a record. The first that cannot be written is told on standard error, as nobody
// asks a logger.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.file.Write(p)
	if err != nil && !l.failed && l.path != "" {
		fmt.Fprintln(l.stderr, "warning: write the log:", screen.OfFile(err))
	}
	l.failed = err != nil
	return n, err
}

// Reopen opens the file anew. Where it cannot be, as a FIFO that nobody reads, the old one stays open.
func (l *Log) Reopen() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o640)
	if err != nil {
		return fmt.Errorf("open the log: %s", screen.OfFile(err))
	}
	l.mu.Lock()
	old := l.file
	l.file = f
	l.mu.Unlock()
	if old != nil {
		return old.Close()
	}
	return nil
}

// Close ends the log.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
