package ask

import (
	"bagpipe/engine/attempt"
	"bagpipe/engine/control"
	"bagpipe/engine/folder"
	"bagpipe/engine/guard"
	"bagpipe/engine/index"
	"bagpipe/engine/intake"
	"bagpipe/engine/intake/recognition"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
)

// Answers answers what people ask of a workspace. It writes nothing.
type Answers struct {
	ledger      *ledger.Ledger
	settings    *settings.Source
	folder      *folder.Folders
	guard       *guard.Guard
	control     *control.Panel
	index       *index.Keeper
	recognition *recognition.Recogniser
	intake      *intake.Intake
	attempt     *attempt.Attempts
}

// Rooms are what answers need of the floors below.
type Rooms struct {
	Ledger      *ledger.Ledger
	Settings    *settings.Source
	Folder      *folder.Folders
	Guard       *guard.Guard
	Control     *control.Panel
	Index       *index.Keeper
	Recognition *recognition.Recogniser
	Intake      *intake.Intake
	Attempt     *attempt.Attempts
}

// New gives answers from the records; those from the index want it loaded.
func New(r Rooms) *Answers {
	return &Answers{ledger: r.Ledger, settings: r.Settings, folder: r.Folder, guard: r.Guard, control: r.Control, index: r.Index, recognition: r.Recognition, intake: r.Intake, attempt: r.Attempt}
}
