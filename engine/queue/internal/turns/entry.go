package turns

import "cmp"

// Entry is a ready step of an item.
type Entry struct {
	Created int64  // of the item, in ms
	Item    uint64 // the bits of its identifier
	Run     uint32 // the number of the run's name
	Place   uint16 // of the run among the item's
	N       uint16 // the step's place in the definition
}

// Compare has the oldest item first, then the order of its runs and their steps.
func (e Entry) Compare(o Entry) int {
	return cmp.Or(cmp.Compare(e.Created, o.Created), cmp.Compare(e.Item, o.Item), cmp.Compare(e.Place, o.Place), cmp.Compare(e.Run, o.Run), cmp.Compare(e.N, o.N))
}

// Place is where an entry stands, by the numbers of names.
type Place struct{ Lane, Collection, Batch uint64 }

func (p Place) level(depth int) uint64 { return [...]uint64{p.Lane, p.Collection, p.Batch}[depth] }
