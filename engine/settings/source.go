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
	robots map[layout.Name]steps.Builtin

	mu     sync.Mutex // guards config
	config *Snapshot

	dirty      chan struct{} // the settings changed at the tip
	syncTurn   sync.Mutex    // held while settings are taken in and read: by one goroutine at a time
	ruled      parsedRules
	onSettings []func(*Snapshot)
}

// New gives a source of which nothing is in force yet; Sync reads it. robots are those
// that definitions may name.
func New(l *ledger.Ledger, robots map[layout.Name]steps.Builtin) *Source {
	return &Source{ledger: l, robots: robots, dirty: make(chan struct{}, 1)}
}

// OnChange has told called with each snapshot that comes into force, before the sync that
// read it returns. It is called before the first sync.
func (so *Source) OnChange(told func(*Snapshot)) { so.onSettings = append(so.onSettings, told) }

// Changed receives when another writer changed the settings at the tip.
func (so *Source) Changed() <-chan struct{} { return so.dirty }
