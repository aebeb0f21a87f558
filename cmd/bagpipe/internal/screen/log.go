package screen

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
)

// logHandler prints warnings of the log as people read them; errors are printed
// where they end, and the rest is for --verbose.
type logHandler struct {
	out   io.Writer
	mu    *sync.Mutex // one line at a time
	attrs []slog.Attr
}

// NewLogHandler gives a handler that prints on out.
func NewLogHandler(out io.Writer) *logHandler { return &logHandler{out: out, mu: &sync.Mutex{}} }

// Enabled takes warnings and errors.
func (h *logHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle prints one line.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	if r.Level >= slog.LevelWarn {
		b.WriteString("warning: ")
	}
	b.WriteString(r.Message)
	add := func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.out.Write(b.Bytes())
	return err
}

// WithAttrs adds attributes to every line.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{out: h.out, mu: h.mu, attrs: append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

// WithGroup is not needed by anyone here.
func (h *logHandler) WithGroup(string) slog.Handler { return h }

// telling prints what happened where the handler of the log passes over it.
type telling struct {
	slog.Handler
	lines slog.Handler
}

// Telling gives the handler of a log, and prints on out what happened, too, where the log is for people and takes
// warnings alone: who was let in to a server must stand somewhere.
func Telling(log slog.Handler, out io.Writer) slog.Handler { return telling{log, NewLogHandler(out)} }

// Enabled takes what happened, and all that the log takes.
func (h telling) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo || h.Handler.Enabled(ctx, l)
}

// Handle hands a record to the log, or else prints it.
func (h telling) Handle(ctx context.Context, r slog.Record) error {
	if h.Handler.Enabled(ctx, r.Level) {
		return h.Handler.Handle(ctx, r)
	}
	return h.lines.Handle(ctx, r)
}

// WithAttrs adds attributes to every record.
func (h telling) WithAttrs(attrs []slog.Attr) slog.Handler {
	return telling{h.Handler.WithAttrs(attrs), h.lines.WithAttrs(attrs)}
}
