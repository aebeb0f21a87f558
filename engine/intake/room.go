package intake

import (
	"sync"

	"bagpipe/engine/folder"
	"bagpipe/engine/guard"
	"bagpipe/engine/index"
	"bagpipe/engine/intake/identity"
	"bagpipe/engine/intake/recognition"
	"bagpipe/engine/intake/sidecar"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
)

// Intake makes items of drops.
type Intake struct {
	ledger      *ledger.Ledger
	settings    *settings.Source
	folder      *folder.Folders
	guard       *guard.Guard
	index       *index.Keeper
	recognition *recognition.Recogniser

	registrar ledger.Actor

	Announce announce
	shared   sidecar.SharedTable
	cars     chan struct{} // see sidecar.Reader
	away     away
	tops     sync.Map // the digits that have their folder in items/

	Identities *identity.Index
}

// New gives an intake that admits by the settings in force.
func New(l *ledger.Ledger, s *settings.Source, f *folder.Folders, g *guard.Guard, i *index.Keeper, r *recognition.Recogniser) *Intake {
	return &Intake{ledger: l, settings: s, folder: f, guard: g, index: i, recognition: r, registrar: l.ByRobot(RegisterStep), Identities: identity.New(l), cars: make(chan struct{}, sidecar.CarsAtOnce)}
}
