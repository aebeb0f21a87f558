package queue

import (
	"sync"
	"time"

	"bagpipe/engine/queue/internal/groups"
	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/queue/internal/turns"
	"bagpipe/layout"
)

// Index holds all items, packed, and what of them is ready. Its own methods change it;
// its View asks, and can be handed out without them.
type Index struct{ View }

// store is what an index knows. Methods that begin with a small letter want mu locked.
type store struct {
	mu    sync.Mutex // guards all below
	names *packed.Names
	table packed.Table
	count counts
	queues
	handed
	marked
	others *groups.Groups
	scratch
	wake chan struct{}
}

// queues are the steps that are ready, or will be at a time.
type queues struct {
	ready    map[readyKey]*turns.Tree // may hold entries that are no longer true; Take looks again
	accounts turns.Account
	dated    turns.Heap[dated] // steps whose time is to come
	order    *ordered          // what Take hands out by; nil: lanes and turns
	lanes    Lanes
}

// handed is what was handed out, and what may be.
type handed struct {
	taken  map[slot]bool                          // handed out, and not returned
	claims map[slot]claimed                       // handed out, and not in progress yet
	only   func(Entry) (is bool, again time.Time) // what may be handed out; nil: everything
	limits Limits
	early  *slot // taken for ready while TakeNext looks; nil otherwise
}

// marked are items by what is asked often, with their creation in ms.
type marked struct {
	runs   map[uint64]bool  // a step is in progress
	people map[uint64]int64 // a step waits for a person
	off    map[uint64]int64 // a step is out of the flow
}

// scratch is room to look at items in.
type scratch struct {
	was, is, at packed.Outline
	buf         []byte
}

// New makes an empty index.
func New() *Index {
	x := &store{
		names: packed.NewNames(), count: newCounts(), wake: make(chan struct{}, 1),
		queues: queues{ready: map[readyKey]*turns.Tree{}},
		handed: handed{taken: map[slot]bool{}, claims: map[slot]claimed{}},
		marked: newMarked(),
	}
	x.others = groups.New(itemsOf{x})
	return &Index{View{x}}
}

// itemsOf is an index as it is known to what items make of one another.
type itemsOf struct{ x *store }

func (i itemsOf) Item(id layout.ItemID) *Item { return i.x.item(id) }

func (i itemsOf) Again(id layout.ItemID) { i.x.again(id) }

func (i itemsOf) Rank(lane layout.Name) int { return i.x.rank(lane) }

func newMarked() marked {
	return marked{runs: map[uint64]bool{}, people: map[uint64]int64{}, off: map[uint64]int64{}}
}

// related gives an item that others know of; nil otherwise.
func (x *store) related(id layout.ItemID) *Item {
	if b := x.table.Get(packed.BitsOf(id)); b != nil && packed.TraitsOf(b)&(Gathered|Kin|Broken) != 0 {
		return x.item(id)
	}
	return nil
}

// item gives a copy of an item; nil when there is none.
func (x *store) item(id layout.ItemID) *Item { return x.read(id, packed.Unpack) }

func (x *store) read(id layout.ItemID, unpack func([]byte, *packed.Names, layout.ItemID) (*Item, bool)) *Item {
	b := x.table.Get(packed.BitsOf(id))
	if b == nil {
		return nil
	}
	it, ok := unpack(b, x.names, id)
	if !ok {
		panic("queue: item " + string(id) + " cannot be unpacked") // it was packed here, or checked
	}
	return it
}

// View asks an index, which changes meanwhile: each answer is of one moment. It is as
// cheap to copy as a pointer, and any goroutine may use it.
type View struct{ s *store }
