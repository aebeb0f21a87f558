package recognition

import (
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
)

// Recogniser asks the rules in force what a drop is, and what becomes of it.
type Recogniser struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	joined   joined
}

// New gives a recogniser by the settings in force.
func New(l *ledger.Ledger, s *settings.Source) *Recogniser {
	return &Recogniser{ledger: l, settings: s}
}
