package recognition

import (
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/steps/live"
)

// Recogniser asks the rules in force what a drop is, and what becomes of it.
type Recogniser struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	joined   joined
	programs *live.Instances // that rules name
	turn     chan struct{}   // taken while one of them is asked
}

// New gives a recogniser by the settings in force.
func New(l *ledger.Ledger, s *settings.Source) *Recogniser {
	re := &Recogniser{ledger: l, settings: s, turn: make(chan struct{}, askedAtOnce)}
	re.programs = re.newPrograms()
	return re
}
