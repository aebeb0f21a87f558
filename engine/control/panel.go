package control

import (
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
)

// New gives controls that have not been read. unread is called when a version was
// committed that cannot be read; deployed gives a step as the settings in force have
// it, and nil for nil.
func New(l *ledger.Ledger, unread func(), deployed func(workflow string, s *state.Step) *state.Step) *Panel {
	return &Panel{ledger: l, unread: unread, changed: func() {}, deployed: deployed}
}

// OnChange has told called whenever controls come into force.
func (pa *Panel) OnChange(told func()) { pa.changed = told }
