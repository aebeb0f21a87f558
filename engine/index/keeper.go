package index

import (
	"sync"
	"sync/atomic"

	"bagpipe/engine/control"
	"bagpipe/engine/guard"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/settings"
)

// Keeper keeps the queue's index current from the ledger.
type Keeper struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	control  *control.Panel
	guard    *guard.Guard

	loading sync.Mutex // held while the index is filled; before noting

	noting sync.Mutex // held while the index takes in a move, or is copied; before mu
	noted  queue.Item // the item taken in last, whose memory the next one takes; noting guards it

	mu      sync.Mutex   // guards the next three
	index   *queue.Index // nil until Load
	derived derived      // what index was derived from
	ended   func(Ended)  // told of this engine's ended steps while it runs; nil: not

	lent     sync.Map                 // the workers that this engine lent steps to: layout.EngineID
	facets   atomic.Pointer[[]string] // the paths whose values the index holds; set when it is begun
	saving   sync.WaitGroup           // checkpoints being written,
	saveTurn sync.Mutex               // one at a time
}

// New gives a keeper of an index that is not loaded.
func New(l *ledger.Ledger, s *settings.Source, c *control.Panel, g *guard.Guard) *Keeper {
	ke := &Keeper{ledger: l, settings: s, control: c, guard: g}
	ke.facets.Store(&[]string{})
	return ke
}

// Loaded is the index; nil before Load.
func (ke *Keeper) Loaded() *queue.Index {
	ke.mu.Lock()
	defer ke.mu.Unlock()
	return ke.index
}

// Close waits for the checkpoint that is being written.
func (ke *Keeper) Close() { ke.saving.Wait() }
