package garbage

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// begin is CollectLate in a process without settings of its own, and gives the limit of its memory; the test's end
// undoes it.
func begin(t *testing.T) (most int64) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	pace, most := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(pace)
		debug.SetMemoryLimit(most)
	})
	CollectLate()
	return most
}

// collectFirst collects until the limit is the one before.
func collectFirst(t *testing.T, most int64) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); debug.SetMemoryLimit(-1) != most; runtime.Gosched() {
		runtime.GC()
		if time.Now().After(deadline) {
			t.Fatal("the first collection changed nothing")
		}
	}
}

// After the first collection the limit is what it was before, and a small heap has room.
func TestCollectLateEndsWithTheFirstCollection(t *testing.T) {
	most := begin(t)
	if got := debug.SetMemoryLimit(-1); got != uncollected {
		t.Fatalf("limit %d", got)
	}
	collectFirst(t, most)
	if got := debug.SetGCPercent(100); got != -1 && got < 100 {
		t.Errorf("pace %d", got)
	}
}

// What keeps much grows by half of it, also after the pace was set otherwise.
func TestCollectCloser(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	usual := debug.SetGCPercent(100)
	defer debug.SetGCPercent(usual)
	CollectCloser()
	for range 2 {
		kept := make([]byte, 2*room)
		for deadline := time.Now().Add(20 * time.Second); debug.SetGCPercent(100) != closer; runtime.Gosched() {
			runtime.GC()
			time.Sleep(time.Millisecond)
			if time.Now().After(deadline) {
				t.Fatal("it grows by as much as is in use")
			}
		}
		runtime.KeepAlive(kept)
	}
}

func TestPace(t *testing.T) {
	for _, c := range []struct {
		inUse uint64
		least int
		want  int
	}{
		{0, 100, 6400},
		{4 << 20, 100, 1600},
		{20 << 20, 100, 300},
		{64 << 20, 100, 100},
		{4 << 30, 100, 100},
		{64 << 20, 250, 250},
	} {
		if got := paceFor(c.inUse, c.least); got != c.want {
			t.Errorf("%d bytes in use: %d, want %d", c.inUse, got, c.want)
		}
	}
}

// A pace that was set since the start is kept through the collections.
func TestAnotherPaceIsKept(t *testing.T) {
	most := begin(t)
	debug.SetGCPercent(333)
	collectFirst(t, most)
	for range 20 { // what follows a collection runs beside
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if got := debug.SetGCPercent(333); got != 333 {
		t.Errorf("pace %d, want the one that was set", got)
	}
}
