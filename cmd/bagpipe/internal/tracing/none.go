//go:build !otel

package tracing

import (
	"context"
	"errors"

	"bagpipe/engine"
)

// Traces sends none.
type Traces struct{}

// Open answers that this program cannot.
func Open(context.Context, string, string) (*Traces, error) {
	return nil, errors.New("this program was built without traces: build it with -tags otel")
}

// Report takes nothing.
func (*Traces) Report(engine.Report) {}

// Close has nothing to send.
func (*Traces) Close() error { return nil }
