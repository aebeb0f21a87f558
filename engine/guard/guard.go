package guard

import "bagpipe/engine/ledger"

// New gives a guard that has not looked at anything; Open notes what came since the last
// look.
func New(l *ledger.Ledger) *Guard {
	g := &Guard{ledger: l}
	g.init()
	return g
}
