package engine

import (
	"bagpipe/engine/ask"
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

// maxMishaps bounds the summary's list, and how many are remembered as told.
const maxMishaps = 1000

// mishap notes an error that stops one thing: told once, however often it is met.
func (r *run) mishap(err error) {
	text := err.Error()
	key := ask.Numbers.ReplaceAllString(text, "#")
	r.mu.Lock()
	_, again := r.mishaps[key]
	if !again && len(r.mishaps) < maxMishaps {
		r.mishaps[key] = true
		r.summary.Mishaps = append(r.summary.Mishaps, text)
	}
	r.mu.Unlock()
	if !again {
		r.report(Report{Note: text, Grave: true})
	}
}

// each notes every error of several that were joined.
func (r *run) each(err error) {
	var joined interface{ Unwrap() []error }
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		joined = j
	}
	if joined == nil {
		if err != nil {
			r.broken(err)
		}
		return
	}
	for _, one := range joined.Unwrap() {
		r.each(one)
	}
}
