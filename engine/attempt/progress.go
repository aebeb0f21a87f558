package attempt

import (
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/steps"
)

// keepProgress has the end of an attempt that failed record what was told last; one that
// came to its end is past all of it.
func (w *Work) keepProgress() {
	if w.scratch == "" || w.Err == nil {
		return
	}
	if p, ok := steps.ReadProgress(w.scratch); ok {
		w.attempt.progress = &state.Progress{At: p.At, Note: ledger.Printable(p.Note), Percent: p.Percent}
	}
}
