package control

import "bagpipe/engine/ledger"

// New gives controls that have not been read. unread is called when a version was
// committed that cannot be read.
func New(l *ledger.Ledger, unread func()) *Panel {
	return &Panel{ledger: l, unread: unread, changed: func() {}}
}

// OnChange has told called whenever controls come into force.
func (pa *Panel) OnChange(told func()) { pa.changed = told }
