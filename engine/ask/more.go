package ask

import (
	"context"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/layout"
)

// More narrows a listing further: by what several values may be given of. It stands apart,
// as a Filter can be compared.
type More struct {
	Within []layout.Name          // the collections that the asker reaches; none: all
	Text   string                 // somewhere in the label, whatever the case, or the beginning of the identifier
	Chosen map[string][]string    // of each facet, as Facets lists it, one of the values
	Only   map[layout.ItemID]bool // nil: all
}

func (m *More) fits(li *Lists, it *queue.Item, now time.Time) bool {
	if len(m.Within) > 0 && !slices.Contains(m.Within, it.Collection) {
		return false
	}
	if m.Only != nil && !m.Only[it.ID] {
		return false
	}
	if m.Text != "" && !strings.HasPrefix(string(it.ID), strings.ToLower(m.Text)) && !strings.Contains(strings.ToLower(it.Label), strings.ToLower(m.Text)) {
		return false
	}
	if len(m.Chosen) == 0 {
		return true
	}
	has := map[string]bool{}
	li.facetsOf(it, now, func(facet, value string) {
		if slices.Contains(m.Chosen[facet], value) {
			has[facet] = true
		}
	})
	return len(has) == len(m.Chosen)
}

// Manifest says what an item is.
func (de *Details) Manifest(id layout.ItemID) (layout.Manifest, error) {
	_, rec, err := de.ledger.ReadTip(id, "")
	if err != nil {
		return layout.Manifest{}, err
	}
	return rec.Manifest, nil
}

// Stamp is a text that changes whenever an item's records do.
func (de *Details) Stamp(id layout.ItemID) (string, error) {
	v, err := de.ledger.Store.Tip()
	if err != nil {
		return "", err
	}
	return ledger.Stamp(v, id)
}

// CollectionOf is the collection of an item.
func (de *Details) CollectionOf(_ context.Context, id layout.ItemID) (layout.Name, error) {
	if it := de.index.Loaded().Item(id); it != nil {
		return it.Collection, nil
	}
	_, rec, err := de.ledger.ReadTip(id, "")
	if err != nil {
		return "", err
	}
	return rec.Manifest.Collection, nil
}
