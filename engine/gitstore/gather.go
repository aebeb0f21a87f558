package gitstore

import (
	"runtime"
	"time"
)

const (
	maxPending = 4096 // edits that may wait; more callers block
	maxGroup   = 1000 // edits in one group

	// gatherTime bounds the wait for the callers just answered to come again.
	// They are looked for gatherTurns times, as a timer wakes late, and then slept for.
	gatherTime  = 300 * time.Microsecond
	gatherTurns = 200

	// A group costs about the same whatever its size up to some tens: its syncs, its
	// files made and removed. While no caller waits for it, it is held until it has
	// heldSize edits, or for holdTime.
	heldSize = 64
	holdTime = 20 * time.Millisecond
)

// gatherer makes groups of the requests that wait.
type gatherer struct {
	requests chan *request
	stop     <-chan struct{}
	patient  func() bool // nil: never
	group    []*request
	lastSize int // of the group before
	timer    *time.Timer
}

func newGatherer(patient func() bool, stop <-chan struct{}) gatherer {
	g := gatherer{requests: make(chan *request, maxPending), stop: stop, patient: patient, timer: time.NewTimer(gatherTime)}
	g.timer.Stop()
	return g
}

// next waits for a request, and gives the group that begins with it; it may be empty. After
// Close next gives the requests that were handed over before, and then nil.
func (g *gatherer) next() []*request {
	select {
	case r := <-g.requests:
		return g.collect(r)
	case <-g.stop:
	}
	select {
	case r := <-g.requests:
		return g.collect(r)
	default:
		return nil
	}
}

// collect makes a group of first and the requests that wait. After a group of several the
// callers just answered are about to hand in their next edits: without a moment's patience
// the first of them would make a group of its own, and every second group would be of one.
// A lone caller is never delayed.
func (g *gatherer) collect(first *request) []*request {
	g.group = g.group[:0]
	if g.group == nil {
		g.group = make([]*request, 0, 16)
	}
	g.take(first)
	expected := g.lastSize
	if expected < 2 {
		expected = 0
	}
	g.timer.Reset(gatherTime)
	defer g.timer.Stop()
	for turns := 0; len(g.group) < maxGroup; turns++ {
		select {
		case r := <-g.requests:
			g.take(r)
			continue
		case <-g.timer.C:
			expected = 0
			continue // requests that wait already are taken all the same
		default:
		}
		if len(g.group) >= expected {
			break
		}
		if turns < gatherTurns {
			runtime.Gosched()
			continue
		}
		select {
		case r := <-g.requests:
			g.take(r)
		case <-g.timer.C:
			expected = 0
		}
	}
	g.lastSize = len(g.group)
	g.hold()
	return g.group
}

// hold waits for more edits as long as the store's user is patient, which may change with
// every edit that comes.
func (g *gatherer) hold() {
	if g.patient == nil || len(g.group) == 0 || len(g.group) >= heldSize || !g.patient() {
		return
	}
	g.timer.Reset(holdTime)
	for len(g.group) < heldSize && g.patient() {
		select {
		case r := <-g.requests:
			g.take(r)
		case <-g.timer.C:
			return
		case <-g.stop:
			return
		}
	}
}

// take adds a request that its caller did not withdraw.
func (g *gatherer) take(r *request) {
	if r.state.CompareAndSwap(requestWaits, requestTaken) {
		g.group = append(g.group, r)
	}
}
