package schedule

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/settings"
	"bagpipe/engine/timetable"
	"bagpipe/layout"
)

// shift is the work on a queue that a firing lets begin, in the loop that hands steps out.
type shift struct {
	parallel, most int // at once, and in all; 0: as many as there are
	begun, running int
	closed         bool // nothing begins any more
}

func (s *shift) lets() bool {
	return !s.closed && (s.parallel == 0 || s.running < s.parallel) && (s.most == 0 || s.begun < s.most)
}

// Shifts are those that firings here have open. mu guards them, and what they count.
type Shifts struct {
	settings *settings.Source
	opened   chan struct{} // one began

	mu     sync.Mutex
	open   map[string]*shift // by schedule
	handed map[ledger.StepRef]*shift
}

func newShifts(s *settings.Source) *Shifts {
	return &Shifts{settings: s, opened: make(chan struct{}, 1), open: map[string]*shift{}, handed: map[ledger.StepRef]*shift{}}
}

// Lets reports whether a step may begin, as far as schedules say: one that is left to some
// begins while one of them is fired here.
func (sh *Shifts) Lets(id queue.StepID) bool {
	by := sh.settings.Current().KeptBy(id)
	if len(by) == 0 {
		return true
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.of(by) != nil
}

// of is the shift of one of some schedules that lets a step more begin.
func (sh *Shifts) of(by []*timetable.Schedule) *shift {
	for _, s := range by {
		if shift := sh.open[s.Name]; shift != nil && shift.lets() {
			return shift
		}
	}
	return nil
}

// Began counts a step that Lets let begin.
func (sh *Shifts) Began(e queue.Entry) {
	by := sh.settings.Current().KeptBy(e.ID())
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if shift := sh.of(by); shift != nil {
		shift.begun++
		shift.running++
		sh.handed[refOf(e)] = shift
	}
}

// Left counts a step that ended, or was given back.
func (sh *Shifts) Left(e queue.Entry) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if shift := sh.handed[refOf(e)]; shift != nil {
		shift.running--
		delete(sh.handed, refOf(e))
	}
}

func refOf(e queue.Entry) ledger.StepRef {
	return ledger.StepRef{Item: e.Item.ID, Workflow: e.Run, Step: e.Step}
}

// Opened tells the loop that hands steps out that a shift began, or may let more begin.
func (sh *Shifts) Opened() <-chan struct{} { return sh.opened }

// begin opens a shift for a firing, until end is called.
func (sh *Shifts) begin(name string, open *shift) (end func()) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.open[name] = open
	return func() {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		delete(sh.open, name)
	}
}

// look takes in how many a shift may do at once now, or that nothing more may begin, and
// reports whether it is idle while so many steps are ready.
func (sh *Shifts) look(open *shift, parallel, ready int, over bool) (idle bool, begun int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	open.parallel, open.closed = parallel, open.closed || over
	return open.running == 0 && (ready == 0 || !open.lets()), open.begun
}

// queueOf is the queue on which a schedule works.
func (k *Keeper) queueOf(s *timetable.Schedule) (*queue.Named, error) {
	q := k.settings.Current().Queues[s.Do.Queue]
	switch {
	case q == nil:
		return nil, fault.New(fault.NotFound, fmt.Sprintf("no queue %q in queues/", s.Do.Queue))
	case !q.Whole():
		return nil, fault.New(fault.Invalid, fmt.Sprintf("queue %s has where: or order:, or no steps:; a schedule works on whole steps", s.Do.Queue))
	}
	return q, nil
}

// lookAtQueue is how often a shift looks whether its queue is empty.
const lookAtQueue = 100 * time.Millisecond

// work opens a shift until its queue is empty, its hours are over or ctx ends. Then nothing
// more begins, and what runs ends.
func (k *Keeper) work(ctx context.Context, f *firing) (said string, failed bool, err error) {
	q, err := k.queueOf(f.Schedule)
	if err != nil {
		return "", false, err
	}
	open := &shift{parallel: f.Parallel, most: q.Limit}
	defer k.Shifts.begin(f.Name, open)()
	tick := time.NewTicker(lookAtQueue)
	defer tick.Stop()
	for still := 0; ; {
		select {
		case k.Shifts.opened <- struct{}{}:
		default:
		}
		select {
		case <-ctx.Done():
			return "", false, nil
		case <-tick.C:
		}
		ready, err := k.ready(q)
		if err != nil {
			return "", false, err
		}
		over, why := !f.Open(k.ledger.Now()), ""
		if over {
			why = fmt.Sprintf("; its hours are over, and %d wait", ready)
		}
		idle, begun := k.Shifts.look(open, k.parallelOf(f), ready, over)
		if still++; !idle {
			still = 0
		}
		if still == 2 { // a step that ended may have made others ready
			return layout.Count(begun, "step") + why, false, nil
		}
	}
}

// parallelOf is how many steps a firing may do at once: a change counts at once.
func (k *Keeper) parallelOf(f *firing) int {
	if s := k.settings.Current().Schedules[f.Name]; s != nil && s.Do.Queue == f.Do.Queue {
		return s.Parallel
	}
	return f.Parallel
}
