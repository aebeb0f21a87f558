// Package metrics owns what a running engine tells machines that watch it: /metrics, in the
// text form of Prometheus, and /healthz.
//
// It must not know how steps are done. A scrape reads counts that the index keeps, and looks
// at no item. The text is written here: the client library brings protocol buffers, whose
// start every command would pay for.
//
// Metrics is guarded by its own mutex; any goroutine may use it.
package metrics
