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
	fmt.Fprintf(&b, "warning: %s", r.Message)
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
