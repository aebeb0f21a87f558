package main

import "testing"

// A run of the shipped workflow, from the inbox to the deposit, is killed at each call that changes something on the disk, in
// turn. The next run brings the item to the same end: each step ends once, and the deposit is whole.
func TestMainJobKilledAtEachCall(t *testing.T) {
	t.Parallel()
	base := newBench(t)
	base.ok("status") // commits the settings
	base.drop("zip")
	eachCall(t, base, func(b *bench) {
		b.ok("run", "-q")
		b.atRest(1)
		b.deposits(1)
	}, "run", "-q")
}
