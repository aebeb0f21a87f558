// Package tracing owns what a run tells a collector of traces (OpenTelemetry, OTLP over HTTP).
//
// Each run of a workflow on an item is a trace, of the same identifier whichever engine works
// on it; each step that ended is a span of it, from the start of its robot to its commit. A drop
// that was taken in is the first.
//
// It must not know how steps are done. The exporter sends in the background, and what a
// collector does not take is lost: the history has it. Without the build tag otel there is no
// exporter, and the program is smaller by its libraries.
package tracing
