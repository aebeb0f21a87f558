package delivery

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"bagpipe/engine/fault"
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
	WaitsFor string `json:"waitsFor,omitempty"` // of one that is ready: the hold or the workflow that keeps it from being sent
}

// Place is where a delivery stands in a list.
type Place struct {
	Label  string
	Item   layout.ItemID
	Target layout.Name
}

// Place is where the row stands.
func (r Row) Place() Place { return Place{r.Label, r.Item, r.Target} }

func (p Place) compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Label, o.Label), cmp.Compare(p.Item, o.Item), cmp.Compare(p.Target, o.Target))
}

// Cursor is the place as one word; ParseCursor reads it.
func (p Place) Cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(string(p.Item) + "/" + string(p.Target) + "/" + p.Label))
}

// ParseCursor reads a place.
func ParseCursor(text string) (Place, error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	parts := strings.SplitN(string(data), "/", 3)
	if err != nil || len(parts) != 3 {
		return Place{}, fault.New(fault.Invalid, fmt.Sprintf("cursor %q: expected one that a page of deliveries gave", text))
	}
	return Place{parts[2], layout.ItemID(parts[0]), layout.Name(parts[1])}, nil
}

// Which says which deliveries are listed.
type Which struct {
	To     layout.Name   // "": to all targets
	State  string        // "": in all states
	Open   bool          // only those that go on, or wait for a person, as far as an engine has looked
	Within []layout.Name // only of these collections; none: of all
	After  *Place        // only those behind it, which are counted with the others; nil: from the first on
}

func (w Which) has(of, to layout.Name, d *layout.Delivery) bool {
	return (w.To == "" || w.To == to || d.State == layout.DeliveryUnreadable) && (w.State == "" || w.State == d.State) && (!w.Open || goesOn(d) || asksPerson(d)) &&
		(len(w.Within) == 0 || slices.Contains(w.Within, of))
}

// Rows lists deliveries by label, item and target: those to a target, in a state; "": all.
func (k *Keeper) Rows(ctx context.Context, to layout.Name, in string) ([]Row, error) {
	rows, _, err := List(ctx, k, Which{To: to, State: in}, 0)
	return rows, err
}

// unknown is the error of a name that no target in the settings has; nil of one that has.
func unknown(k *Keeper, to layout.Name) error {
	s := k.settings.Current().Settings
	if _, is := s.Targets[string(to)]; is {
		return nil
	}
	return fault.Unknown("target", string(to), " below targets: in "+layout.SettingsFile, slices.Values(s.TargetNames()[1:]))
}

// List gives the first deliveries of those that fit, by label, item and target, and how many fit,
// wherever the list begins. An item whose delivery.json cannot be read is listed for each target: it may be there. A target that neither they nor the settings have is refused.
// most 0: all of them. Unless they are open ones, every item is looked at.
func List(ctx context.Context, k *Keeper, w Which, most int) (rows []Row, fit int, err error) {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return nil, 0, err
	}
	var mu sync.Mutex // guards rows, fit and known
	known := w.To == ""
	err = visit(ctx, k, v, w.Open, func(o *object) {
		if len(o.delivery.Targets) == 0 {
			return
		}
		m, err := layout.DecodeManifest(o.manifest)
		if err != nil && o.bad == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for name, d := range o.delivery.Targets {
			if d.State == "" || !w.has(m.Collection, name, d) { // a decision, pushed, of what goes nowhere yet
				continue
			}
			fit++
			known = known || name == w.To
			row := Row{o.id, m.Collection, ledger.Printable(m.Label), name, *d, ""}
			if err := unknown(k, name); err != nil && d.Sent != nil {
				row.Message = err.Error()
			}
			if d.State == layout.DeliveryReady {
				row.WaitsFor, _ = waitsFor(k.ledger, v, o.id) // of records that cannot be read others tell
			}
			if w.After != nil && row.Place().compare(*w.After) <= 0 {
				continue
			}
			rows = append(rows, row)
			if most > 0 && len(rows) >= 2*most {
				rows = ordered(rows)[:most]
			}
		}
	})
	if err == nil && !known {
		err = unknown(k, w.To)
	}
	if rows = ordered(rows); most > 0 {
		rows = rows[:min(len(rows), most)]
	}
	return rows, fit, err
}

// delivered reports whether a target was given something and has it still, or may have it, by the records of all items.
func delivered(ctx context.Context, k *Keeper, to layout.Name) (bool, error) {
	if _, known := k.used.Load(to); known { // each item that waits asks
		return true, nil
	}
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return false, err
	}
	var found atomic.Bool
	err = visit(ctx, k, v, false, func(o *object) {
		if d := o.delivery.Targets[to]; d != nil && d.Sent != nil && d.Sent.Receipt != "" {
			found.Store(true)
			k.used.Store(to, true)
		}
	})
	return found.Load(), err
}

func ordered(rows []Row) []Row {
	slices.SortFunc(rows, func(a, b Row) int { return a.Place().compare(b.Place()) })
	return rows
}

// visit reads the items that an engine found to have something to send or to decide, or all.
func visit(ctx context.Context, k *Keeper, v gitstore.View, open bool, see func(*object)) error {
	if open {
		if looked, err := eachOpen(ctx, k, v, see); err != nil || looked {
			return err
		}
	}
	k.listing.Lock()
	defer k.listing.Unlock()
	return each(ctx, k.ledger, v, gitstore.Hash{}, see)
}
