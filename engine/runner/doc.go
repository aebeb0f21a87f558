// Package runner runs claimed steps side by side: how many at once, how long
// each may take, when a failure is tried again, and how work drains.
//
// It must not know Git, HTTP or what a step does. A Pool owns its goroutines;
// every one has ended when Wait returns.
//
// # Stopping
//
// Drain lets what is running finish and starts nothing new. Stop ends the
// context of what is running as well; such a step ends with ErrInterrupted, and its
// attempt is left to be resumed.
package runner
