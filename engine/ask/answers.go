package ask

import (
	"sync"

	"bagpipe/engine/ask/internal/tally"
	"bagpipe/engine/attempt"
	"bagpipe/engine/control"
	"bagpipe/engine/folder"
	"bagpipe/engine/guard"
	"bagpipe/engine/index"
	"bagpipe/engine/intake"
	"bagpipe/engine/intake/recognition"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/settings"
)

// Answers answers what people ask of a workspace: each part one kind of question, and how
// the workspace stands from all of them. Answers write nothing.
type Answers struct {
	*Definitions
	*Drops
	*Lists
	*QueueLists
	*Activity
	*Reasons
	*Figures
	*Details

	ledger *ledger.Ledger
	folder *folder.Folders
	index  *index.Keeper
}

// Definitions tells what people configured: workflows and rules.
type Definitions struct{ settings *settings.Source }

// Drops tells of what lies in the inbox, and of collections.
type Drops struct {
	ledger      *ledger.Ledger
	settings    *settings.Source
	recognition *recognition.Recogniser
	intake      *intake.Intake
}

// Lists lists items, their steps and batches by filters, and counts them.
type Lists struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	index    *index.Keeper
	quick    quick
}

// quick answers what is counted and listed from a table of what facets count, where a program
// asks often enough to keep one. Its lock guards all but on.
type quick struct {
	on bool

	mu    sync.Mutex
	index *queue.Index
	names []string // of the table's columns
	table *tally.Table[*queue.Item]
}

// quickTable is a table, and the names of its columns.
type quickTable struct {
	*tally.Table[*queue.Item]
	names []string
}

// QueueLists lists what is ready, what waits for people and what is disabled.
type QueueLists struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	control  *control.Panel
	index    *index.Keeper
	lists    *Lists
}

// Activity tells what engines work on, and what they try again later.
type Activity struct {
	ledger  *ledger.Ledger
	folder  *folder.Folders
	index   *index.Keeper
	attempt *attempt.Attempts
}

// Reasons tells why a step waits, and what lets it go on.
type Reasons struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	index    *index.Keeper
	activity *Activity
}

// Figures tells how long steps take and how often they fail.
type Figures struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	index    *index.Keeper
}

// Details finds one item, and tells all of it.
type Details struct {
	ledger   *ledger.Ledger
	guard    *guard.Guard
	control  *control.Panel
	index    *index.Keeper
	lists    *Lists
	activity *Activity
	listings *listings
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
	lists := &Lists{ledger: r.Ledger, settings: r.Settings, index: r.Index}
	activity := &Activity{r.Ledger, r.Folder, r.Index, r.Attempt}
	return &Answers{
		&Definitions{r.Settings},
		&Drops{r.Ledger, r.Settings, r.Recognition, r.Intake},
		lists,
		&QueueLists{r.Ledger, r.Settings, r.Control, r.Index, lists},
		activity,
		&Reasons{r.Ledger, r.Settings, r.Index, activity},
		&Figures{r.Ledger, r.Settings, r.Index},
		&Details{r.Ledger, r.Guard, r.Control, r.Index, lists, activity, &listings{}},
		r.Ledger, r.Folder, r.Index,
	}
}
