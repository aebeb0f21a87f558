// Package runner runs claimed steps side by side: how many at once, how long
// each may take, when a failure is tried again, and how work drains.
//
// It must not know Git, HTTP or what a step does. A Pool owns its goroutines;
// every one has ended when Wait returns.
//
// # Stopping
//
// Drain lets running steps finish and starts nothing new. The owner of the pool may end
// the context of running steps as well, with ErrInterrupted as its cause; the attempt of
// such a step is left to be resumed.
package runner
