package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/metrics"
	"bagpipe/engine/state"
)

// The rules are: an error that reaches Run stops as little as it can. It is told once,
// listed in the summary, and the run ends with exit code 4.
//
//	error                                      stops
//	a drop that may not be read, moved,        this drop; it stays in the inbox, status
//	  removed, or not be set aside               and the run name its owner and the command
//	a drop whose take, digest, promotion or    this drop; it stays in the inbox or in
//	  commit fails                               the intake, and is tried again
//	what cannot be understood in intake/       this drop
//	a collection's folder that cannot be       this collection
//	  listed
//	a batch that cannot be closed              this batch
//	an item that cannot be recovered, or       this item
//	  whose pushed change cannot be answered
//	a claim, or an end that cannot be          this step, until the next run; with --watch
//	  committed                                  until the next look at dead engines' work
//	a dead engine's scratch or lock file       nothing
//	  that cannot be removed
//	settings edited in place that cannot be    nothing: those in force stay
//	  committed
//	the full disk                              all; with --watch until there is room
//	a commit that cannot be written            all; with --watch it is tried again
//	the branch was rewritten, others take      all, with --watch too
//	  this engine for dead
//	the history, the index or the inbox's      all, before anything is done
//	  settings cannot be read, a lock file
//	  cannot be made

// account is what a run tells while it works, and sums up at its end.
type account struct {
	watch bool         // the run goes on until it is drained
	told  func(Report) // nil: nobody is told
	open  func() int   // steps known to be left to do
	drain func()       // lets what runs finish, and starts nothing new

	metrics *metrics.Metrics // nil: nobody watches

	mu       sync.Mutex // guards the rest, and calls of told
	summary  Summary
	internal map[itemRun]bool // stopped by an internal error in this run
	mishaps  map[string]bool  // told
	fault    error            // ends the run
	note     string           // told last
}

func newAccount(o RunOptions, open func() int, drain func()) *account {
	return &account{watch: o.Watch, told: o.Report, open: open, drain: drain, internal: map[itemRun]bool{}, mishaps: map[string]bool{},
		summary: Summary{Steps: map[state.Status]int{state.Completed: 0, state.Skipped: 0, state.Failed: 0},
			Bad: []intake.Admitted{}, Failed: []ask.Failure{}, Left: Left{Growing: []fault.Advice{}}, Mishaps: []string{}, NotDone: []NotDone{}}}
}

// tell reports a note once.
func (a *account) tell(note string) { a.tellOnce(Report{Note: note}) }

// tellGrave reports once what a person must know, also who asked for quiet.
func (a *account) tellGrave(note string) { a.tellOnce(Report{Note: note, Grave: true}) }

func (a *account) tellOnce(rep Report) {
	a.mu.Lock()
	again := a.note == rep.Note
	a.note = rep.Note
	a.mu.Unlock()
	if !again {
		a.report(rep)
	}
}

func (a *account) report(rep Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if rep.Ended != nil {
		a.summary.Steps[rep.Ended.Status]++
	}
	if a.told != nil {
		rep.Left = a.open()
		a.told(rep)
	}
}

func (a *account) admitted(drop intake.Admitted) {
	a.mu.Lock()
	if drop.Rejected != "" {
		a.summary.Rejected++
		if len(a.summary.Bad) < maxMishaps {
			a.summary.Bad = append(a.summary.Bad, drop)
		}
	} else {
		a.summary.Admitted++
	}
	a.mu.Unlock()
	if a.metrics != nil {
		a.metrics.Took(drop.Rejected != "")
	}
	a.report(Report{Admitted: &drop})
	if drop.Stays != "" {
		a.report(Report{Note: fmt.Sprintf("%s/%s was copied; its original stays at %s; the status says why", drop.Collection, drop.Label, drop.Stays)})
	}
}

// ending gives the error that ends the run, if there is one.
func (a *account) ending() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fault
}

// broken notes an error. One that stops all ends a run that is not watching; one that
// is goes on, as the cause (a full disk) may pass, unless going on could do harm.
func (a *account) broken(err error) {
	switch {
	case errors.Is(err, context.Canceled) && a.ending() != nil: // it follows from what was told
	case !ledger.StopsAll(err):
		a.mishap(err)
	case a.watch && !ledger.MustStop(err):
		a.tell(err.Error())
	default:
		a.halt(err)
	}
}

// halt ends the run with an error, once what is at work has finished.
func (a *account) halt(err error) {
	a.mu.Lock()
	if a.fault == nil {
		a.fault = err
	}
	a.mu.Unlock()
	a.drain()
}

// failedInternally notes that a run of a workflow was stopped by a fault of Bagpipe's own.
func (a *account) failedInternally(of itemRun) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.internal[of] = true
}

// progress is how many drops this run has dealt with.
func (a *account) progress() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.summary.Admitted + a.summary.Rejected
}

// endedSteps is how many steps this run has ended.
func (a *account) endedSteps() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range a.summary.Steps {
		n += k
	}
	return n
}

// maxMishaps bounds the summary's lists, and how many are remembered as told.
const maxMishaps = 1000

// mishap notes an error that stops one thing: told once, however often it is met.
func (a *account) mishap(err error) {
	text := err.Error()
	key := ask.Numbers.ReplaceAllString(text, "#")
	a.mu.Lock()
	_, again := a.mishaps[key]
	if !again && len(a.mishaps) < maxMishaps {
		a.mishaps[key] = true
		a.summary.Mishaps = append(a.summary.Mishaps, text)
	}
	a.mu.Unlock()
	if !again {
		a.report(Report{Note: text, Grave: true})
	}
}

// each notes every error of several that were joined.
func (a *account) each(err error) {
	var joined interface{ Unwrap() []error }
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		joined = j
	}
	if joined == nil {
		if err != nil {
			a.broken(err)
		}
		return
	}
	for _, one := range joined.Unwrap() {
		a.each(one)
	}
}
