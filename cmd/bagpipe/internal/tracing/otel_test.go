//go:build otel

package tracing

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/index"
	"bagpipe/engine/intake"
	"bagpipe/engine/state"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// The steps of a run are spans of one trace, below the drop that was taken in.
func TestTraces(t *testing.T) {
	var got []*otlp.Span
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			in, _ = gzip.NewReader(r.Body)
		}
		body, err := io.ReadAll(in)
		if err != nil {
			t.Error(err)
		}
		var sent collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &sent); err != nil {
			t.Error(err)
		}
		for _, rs := range sent.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				got = append(got, ss.Spans...)
			}
		}
	}))
	defer server.Close()
	traces, err := Open(t.Context(), server.URL+"/v1/traces", "1")
	if err != nil {
		t.Fatal(err)
	}
	traces.Report(engine.Report{Admitted: &intake.Admitted{Item: "3fa9c0d2e1b7a45", Label: "Box", Workflow: "w"}})
	traces.Report(engine.Report{Ended: &index.Ended{Item: "3fa9c0d2e1b7a45", Workflow: "w.1", Step: "ocr", Status: state.Failed, Message: "torn", Ran: time.Second}})
	traces.Report(engine.Report{Admitted: &intake.Admitted{Label: "bad", Rejected: "why"}})
	if err := traces.Close(); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Name != "taken in" || got[1].Name != "ocr" {
		t.Fatalf("%v", got)
	}
	if a, b := hex.EncodeToString(got[0].TraceId), hex.EncodeToString(got[1].TraceId); a != b || hex.EncodeToString(got[1].ParentSpanId) != hex.EncodeToString(got[0].SpanId) {
		t.Errorf("traces %s and %s", a, b)
	}
	if s := got[1]; s.EndTimeUnixNano-s.StartTimeUnixNano != uint64(time.Second) || s.Status.Code != otlp.Status_STATUS_CODE_ERROR || !strings.Contains(s.String(), "3fa9c0d2e1b7a45") {
		t.Errorf("%v", s)
	}
}
