package act

import (
	"context"

	"bagpipe/engine/control"
	"bagpipe/engine/folder"
	"bagpipe/engine/gitstore"
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

// As gives the acts of another person.
func (ac *Acts) As(person gitstore.Signature) *Acts {
	as := *ac
	as.who = ledger.PersonActor(person)
	return &as
}

// For gives the acts of the same person in answer to a request, which their commits name;
// request is the value of the trailer, and "" names none.
func (ac *Acts) For(request string) *Acts {
	as := *ac
	as.who.Request = request
	return &as
}
