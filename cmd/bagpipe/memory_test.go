package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// After the first collection the pace is what it was before.
func TestCollectLateEndsWithTheFirstCollection(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	pace, most := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	defer func() {
		debug.SetGCPercent(pace)
		debug.SetMemoryLimit(most)
	}()
	collectLate()
	if got := debug.SetMemoryLimit(-1); got != uncollected {
		t.Fatalf("limit %d", got)
	}
	for deadline := time.Now().Add(20 * time.Second); debug.SetMemoryLimit(-1) != most; runtime.Gosched() {
		runtime.GC()
		if time.Now().After(deadline) {
			t.Fatal("the first collection changed nothing")
		}
	}
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("pace %d", got)
	}
}
