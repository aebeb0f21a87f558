package intake

import (
	"sync"

	"bagpipe/engine/inbox"
	"bagpipe/layout"
)

// announce has people hear of an item before they hear of its steps: robots may end one
// while the rest of the item's group is still being registered.
type announce struct {
	mu   sync.Mutex // guards held
	held map[layout.ItemID][]func()
}

// hold keeps what is told of the steps of drops until they are released.
func (a *announce) hold(taken []inbox.Taken) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held == nil {
		a.held = map[layout.ItemID][]func(){}
	}
	for _, t := range taken {
		a.held[t.ID] = nil
	}
}

// Step tells of an item's step now, or when the item is released.
func (a *announce) Step(id layout.ItemID, tell func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if late, ok := a.held[id]; ok {
		a.held[id] = append(late, tell)
		return
	}
	tell()
}

// release tells what was held of an item; those that come later wait for it.
func (a *announce) release(id layout.ItemID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, tell := range a.held[id] {
		tell()
	}
	delete(a.held, id)
}
