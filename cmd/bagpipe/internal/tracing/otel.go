//go:build otel

package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/state"
	"bagpipe/layout"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// lastSend is how long the end of a program waits for a collector.
const lastSend = 5 * time.Second

// Traces sends spans to a collector.
type Traces struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Open sends to the collector at url, as in http://localhost:4318/v1/traces.
func Open(ctx context.Context, url, version string) (*Traces, error) {
	to, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(url))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about := resource.NewSchemaless(attribute.String("service.name", "bagpipe"), attribute.String("service.version", version))
	p := sdk.NewTracerProvider(sdk.WithBatcher(to), sdk.WithResource(about), sdk.WithIDGenerator(ids{}))
	return &Traces{p, p.Tracer("bagpipe")}, nil
}

// Report makes a span of what ended.
func (t *Traces) Report(r engine.Report) {
	now := time.Now()
	switch {
	case t == nil:
	case r.Admitted != nil && r.Admitted.Rejected == "" && r.Admitted.Workflow != "":
		a := r.Admitted
		t.span(a.Item, fmt.Sprintf("%s.%d", a.Workflow, max(1, a.Version)), "taken in", now, true,
			attribute.String("bagpipe.label", a.Label), attribute.String("bagpipe.collection", string(a.Collection))).End(trace.WithTimestamp(now))
	case r.Ended != nil:
		e := r.Ended
		s := t.span(e.Item, e.Workflow, string(e.Step), now.Add(-e.Ran), false, attribute.String("bagpipe.label", e.Label),
			attribute.String("bagpipe.status", string(e.Status)), attribute.String("bagpipe.message", e.Message), attribute.Float64("bagpipe.waited", e.Waited.Seconds()))
		if e.Status == state.Failed {
			s.SetStatus(codes.Error, e.Message)
		}
		s.End(trace.WithTimestamp(now))
	}
}

func (t *Traces) span(item layout.ItemID, run, name string, begin time.Time, root bool, more ...attribute.KeyValue) trace.Span {
	sum := sha256.Sum256([]byte(string(item) + "/" + run))
	id, first := trace.TraceID(sum[:16]), trace.SpanID(sum[16:24])
	ctx := context.Background()
	if root {
		ctx = context.WithValue(ctx, rootOf{}, [2]any{id, first})
	} else {
		ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: first, TraceFlags: trace.FlagsSampled, Remote: true}))
	}
	_, s := t.tracer.Start(ctx, name, trace.WithTimestamp(begin),
		trace.WithAttributes(append(more, attribute.String("bagpipe.item", string(item)), attribute.String("bagpipe.workflow", run))...))
	return s
}

// Close sends what is left.
func (t *Traces) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastSend)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// rootOf names the first span of a trace, in a context.
type rootOf struct{}

// ids gives the first span of a trace the identifiers that follow from its item.
type ids struct{}

func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if of, ok := ctx.Value(rootOf{}).([2]any); ok {
		return of[0].(trace.TraceID), of[1].(trace.SpanID)
	}
	var id trace.TraceID
	_, _ = rand.Read(id[:]) // never fails
	return id, ids{}.NewSpanID(ctx, id)
}

func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}
