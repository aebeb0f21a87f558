package settings

import (
	"sync"

	"bagpipe/engine/ledger"
	"bagpipe/layout"
	"bagpipe/steps"
)

// Source brings what people configure into force, and gives immutable snapshots of it.
type Source struct {
	ledger *ledger.Ledger
	check  *checker

	mu     sync.Mutex // guards config
	config *Snapshot

	dirty      chan struct{}     // the settings changed at the tip
	syncTurn   sync.Mutex        // held while settings are taken in and read: by one goroutine at a time
	refused    map[string]string // what was last told of an edit that was refused, by path; syncTurn guards it
	onSettings []func(*Snapshot)
}

// checker checks settings files, each by itself and against the others. It reads the
// workspace's folder, and commits nothing.
type checker struct {
	robots map[layout.Name]steps.Builtin
	path   func(rel string) string // of a file of the workspace on disk
	inHand bool                    // rules on disk, which may be edited and not committed yet, stand in for those of a tree
	parsed parsedFiles
}

// New gives a source of which nothing is in force yet; Sync reads it. robots are those
// that definitions may name.
func New(l *ledger.Ledger, robots map[layout.Name]steps.Builtin) *Source {
	return &Source{ledger: l, check: &checker{robots: robots, path: l.Path, inHand: true}, dirty: make(chan struct{}, 1), refused: map[string]string{}}
}

// OnChange has told called with each snapshot that comes into force: in their order, one
// call at a time, before the sync that read the snapshot returns. A snapshot does not
// change. told must not call Sync. OnChange itself is called before the first sync.
func (so *Source) OnChange(told func(*Snapshot)) { so.onSettings = append(so.onSettings, told) }

// Changed receives when another writer changed the settings at the tip.
func (so *Source) Changed() <-chan struct{} { return so.dirty }
