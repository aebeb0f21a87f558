// Package control says how steps stand over all items: enabled, disabled or stopped.
//
// It owns controls/steps.json, the trials of disabled steps and the counts that thresholds
// look at. It must not know the index, nor how a step is done.
//
// # Error policy
//
// Retrying, counting and the actions of a threshold are specified in package state. The
// index counts the ends of steps with thresholds as their commits come in; a threshold that
// is reached is one commit of controls/steps.json (threshold.go). The controls in that file
// are enforced where a claim is committed, and shown where steps are listed (controls.go).
//
// # Locks
//
// The controls in force are replaced, never changed, and read without a lock. Panel.mu
// guards the counts and the run's stops.
package control
