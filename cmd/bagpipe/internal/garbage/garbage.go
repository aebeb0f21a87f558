package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// uncollected is how much a command may allocate before the first collection. Most
	// end before it: a bag of 20,000 files is made in 0.20 s for 0.25 s, and takes 5 MB
	// more.
	uncollected = 40 << 20
	// room is how much may be allocated between two collections, whatever is in use: an
	// engine keeps little and allocates much, and would mark the same few megabytes again
	// every time that it has allocated as much.
	room = 64 << 20
	// closer is the growth in percent of a process that stays, where more than room is in use.
	closer = 50
)

// CollectLate puts the first collection off; after it there is room between two, and where
// more is in use the usual pace holds. Who set a pace of their own keeps it: before the start by
// the environment, and later by runtime/debug.
func CollectLate() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	pace, most := debug.SetGCPercent(-1), debug.SetMemoryLimit(uncollected)
	afterCollection(func() {
		debug.SetMemoryLimit(most)
		keepRoom(pace)
	})
}

// keepRoom sets the pace after every collection from now on, by what it left in use.
func keepRoom(least int) {
	is := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
	last := -1
	var set func()
	set = func() {
		metrics.Read(is)
		if now := paceFor(is[0].Value.Uint64(), least); now != last && int(is[1].Value.Uint64()) == last { // it stops the world
			debug.SetGCPercent(now)
			last = now
		}
		afterCollection(set)
	}
	set()
}

// CollectCloser is for a process that stays and keeps much, as an index: from the next collection on it may grow by half
// of what is in use, where that is more than room, and not by all of it. It is bytes without pointers for the most, so
// that to mark it more often costs little: of 1,000,000 items about a hundredth of the processor time.
func CollectCloser() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	is := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
	var look func()
	look = func() {
		if metrics.Read(is); is[0].Value.Uint64() > room && is[1].Value.Uint64() != closer { // CollectLate may have set it since
			debug.SetGCPercent(closer)
		}
		afterCollection(look)
	}
	afterCollection(look)
}

// paceFor is the growth in percent of what is in use that leaves room, in steps so that it
// seldom changes.
func paceFor(inUse uint64, least int) int {
	const step, smallest = 50, 1 << 20
	return max(least, int(room*100/max(inUse, smallest))/step*step)
}

// afterCollection calls do once, after the next collection has begun.
func afterCollection(do func()) {
	dies := new([16]byte) // large enough to be an object of its own, which the collection frees
	runtime.AddCleanup(dies, func(int) { do() }, 0)
}
