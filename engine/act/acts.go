package act

import (
	"context"

	"bagpipe/engine/control"
	"bagpipe/engine/folder"
	"bagpipe/engine/guard"
	"bagpipe/engine/index"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"
)

// Acts are the decisions of one person.
type Acts struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	folder   *folder.Folders
	guard    *guard.Guard
	control  *control.Panel
	index    *index.Keeper
	recover  Recover
	who      ledger.Actor
}

// Recover takes a step back from an engine that is gone: what its attempt replaced is put
// back, and the step waits again.
type Recover func(ctx context.Context, a layout.AttemptRef, why string) error

// New gives the acts of the person whom the ledger names.
func New(l *ledger.Ledger, s *settings.Source, f *folder.Folders, g *guard.Guard, c *control.Panel, i *index.Keeper, recover Recover) *Acts {
	return &Acts{ledger: l, settings: s, folder: f, guard: g, control: c, index: i, recover: recover, who: l.ByPerson()}
}

// As gives the acts of another person, in answer to a request where who has one, or of the engine, as
// those of a schedule.
func (ac *Acts) As(who ledger.Actor) *Acts {
	as := *ac
	as.who = who
	return &as
}
