package alert

import (
	"bagpipe/engine/ask"
	"bagpipe/engine/control"
	"bagpipe/engine/index"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
)

// New gives the alerts of a workspace.
func New(l *ledger.Ledger, s *settings.Source, c *control.Panel, i *index.Keeper, a *ask.Answers) *Alerts {
	return &Alerts{ledger: l, settings: s, control: c, index: i, ask: a}
}
