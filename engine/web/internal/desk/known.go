package desk

import (
	"context"
	"sync"

	"bagpipe/layout"
)

// refs remembers which items the names that programs use lead to: to find one by anything but
// its identifier, every manifest is read. Its lock guards the map.
type refs struct {
	mu    sync.Mutex
	found map[string]layout.ItemID
}

const mostRefs = 100_000

func (r *refs) look(ref string) (layout.ItemID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, ok := r.found[ref]
	return id, ok
}

func (r *refs) note(ref string, id layout.ItemID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found == nil || len(r.found) >= mostRefs {
		r.found = map[string]layout.ItemID{}
	}
	r.found[ref] = id
}

// Object is Item for the names that programs use again and again.
func (d *Desk) Object(ctx context.Context, ref string) (layout.ItemID, error) {
	if id, other := layout.ParseItemID(ref); other == nil { // a program that acts on thousands has no record of each read for it
		if of, err := d.Ask.CollectionOf(ctx, id); err == nil && Who(ctx).Reaches(string(of)) {
			return id, nil
		}
	}
	if id, ok := d.refs.look(ref); ok {
		if m, err := d.Ask.Manifest(id); err == nil && m.Identified(ref) && d.Reach(ctx, id) == nil {
			return id, nil
		}
	}
	id, err := d.Item(ctx, ref)
	if err == nil && string(id) != ref {
		d.refs.note(ref, id)
	}
	return id, err
}
