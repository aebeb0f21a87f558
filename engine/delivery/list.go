package delivery

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// Row is one delivery as listed.
type Row struct {
	Item       layout.ItemID `json:"item"`
	Collection layout.Name   `json:"collection"`
	Label      string        `json:"label"`
	Target     layout.Name   `json:"target"`
	layout.Delivery
}

// Which says which deliveries are listed.
type Which struct {
	To     layout.Name   // "": to all targets
	State  string        // "": in all states
	Open   bool          // only those that go on, or wait for a person, as far as an engine has looked
	Within []layout.Name // only of these collections; none: of all
}

func (w Which) has(of, to layout.Name, d *layout.Delivery) bool {
	return (w.To == "" || w.To == to) && (w.State == "" || w.State == d.State) && (!w.Open || goesOn(d) || asksPerson(d)) &&
		(len(w.Within) == 0 || slices.Contains(w.Within, of))
}

// Rows lists deliveries by label, item and target: those to a target, in a state; "": all.
func (k *Keeper) Rows(ctx context.Context, to layout.Name, in string) ([]Row, error) {
	rows, _, err := List(ctx, k, Which{To: to, State: in}, 0)
	return rows, err
}

// List gives the first deliveries of those that fit, by label, item and target, and how many fit.
// most 0: all of them. Unless they are open ones, every item is looked at.
func List(ctx context.Context, k *Keeper, w Which, most int) (rows []Row, fit int, err error) {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return nil, 0, err
	}
	var mu sync.Mutex // guards rows and fit
	err = visit(ctx, k, v, w.Open, func(o *object) {
		if len(o.delivery.Targets) == 0 {
			return
		}
		m, err := layout.DecodeManifest(o.manifest)
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for name, d := range o.delivery.Targets {
			if !w.has(m.Collection, name, d) {
				continue
			}
			fit++
			rows = append(rows, Row{o.id, m.Collection, ledger.Printable(m.Label), name, *d})
			if most > 0 && len(rows) >= 2*most {
				rows = ordered(rows)[:most]
			}
		}
	})
	if rows = ordered(rows); most > 0 {
		rows = rows[:min(len(rows), most)]
	}
	return rows, fit, err
}

func ordered(rows []Row) []Row {
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Label, b.Label), cmp.Compare(a.Item, b.Item), cmp.Compare(a.Target, b.Target))
	})
	return rows
}

// visit reads the items that an engine found to have something to send or to decide, or all.
func visit(ctx context.Context, k *Keeper, v gitstore.View, open bool, see func(*object)) error {
	if open {
		candidates, looked, err := candidates(k.ledger)
		if err != nil {
			return err
		}
		if looked {
			return eachOf(ctx, v, candidates, see)
		}
	}
	k.listing.Lock()
	defer k.listing.Unlock()
	return each(ctx, k.ledger, v, gitstore.Hash{}, see)
}
