package attempt

import (
	"bagpipe/engine/control"
	"bagpipe/engine/folder"
	"bagpipe/engine/guard"
	"bagpipe/engine/index"
	"bagpipe/engine/intake/recognition"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/steps"
)

// rooms are the rooms of the floors below, and the built-in robots.
type rooms struct {
	ledger      *ledger.Ledger
	settings    *settings.Source
	folder      *folder.Folders
	guard       *guard.Guard
	control     *control.Panel
	index       *index.Keeper
	recognition *recognition.Recogniser
	robots      map[layout.Name]steps.Builtin
}

// Rooms are what attempts need of the floors below.
type Rooms struct {
	Ledger      *ledger.Ledger
	Settings    *settings.Source
	Folder      *folder.Folders
	Guard       *guard.Guard
	Control     *control.Panel
	Index       *index.Keeper
	Recognition *recognition.Recogniser
	Robots      map[layout.Name]steps.Builtin
}
