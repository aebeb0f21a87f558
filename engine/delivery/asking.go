package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// Asking is how many deliveries to a target wait in one state: for a person, or to be tried again.
type Asking struct {
	Target  layout.Name `json:"target"`
	State   string      `json:"state"` // waits, failed, unreadable, delivered where the settings have the target no more, or tried again: ready; unconfirmed where it is to be taken back
	Count   int         `json:"deliveries"`
	Next    time.Time   `json:"next,omitzero"`     // of those tried again, the first
	Message string      `json:"message,omitempty"` // why that did not go
}

// asksPerson reports whether a delivery goes no further without a person.
func asksPerson(d *layout.Delivery) bool {
	return d.State == layout.DeliveryWaits || d.State == layout.DeliveryFailed || d.State == layout.DeliveryUnreadable || notTakenBack(d) && !toTakeBack(d)
}

// TriedAgain reports whether they are tried again by themselves.
func (a Asking) TriedAgain() bool {
	return !a.Next.IsZero()
}

// Wrong reports whether something kept them that is nobody's decision: they are tried again, or what is known of them cannot be read.
func (a Asking) Wrong() bool {
	return a.TriedAgain() || a.State == layout.DeliveryUnreadable
}

// triedAgain reports whether a delivery did not go, or was not taken back, and is tried again by itself.
func triedAgain(d *layout.Delivery) bool {
	return d.Message != "" && (d.State == layout.DeliveryReady || toTakeBack(d))
}

// lastLook is an engine's last look at all items; nil: there was none, or none that tells which ask a person.
func lastLook(l *ledger.Ledger) (*look, error) {
	return lookIn(l.Root)
}

func lookIn(root string) (*look, error) {
	data, err := os.ReadFile(lookFile(root))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var last look
	if json.Unmarshal(data, &last) != nil || last.Asks == nil {
		return nil, nil // the next run looks anew
	}
	return &last, nil
}

// eachOpen reads the items that an engine's last look found to have something to send or to wait for a person, and those that
// changed since. looked is false where there was no look.
func eachOpen(ctx context.Context, k *Keeper, v gitstore.View, see func(*object)) (looked bool, err error) {
	last, err := lastLook(k.ledger)
	if err != nil || last == nil {
		return false, err
	}
	items := append(*last.Asks, last.Open...) // an item may be in both
	slices.Sort(items)
	items = slices.Compact(items)
	for _, id := range items {
		if err := ctx.Err(); err != nil {
			return true, err
		}
		if o := lookAt(v, id); o != nil {
			see(o)
		}
	}
	since, err := gitstore.ParseHash(last.Tree)
	if err != nil {
		return true, nil // the next run looks anew
	}
	if there, err := k.ledger.Store.HasTree(since); err != nil || !there {
		return true, nil
	}
	var mu sync.Mutex // held while see is called
	return true, each(ctx, k.ledger, v, since, func(o *object) {
		if _, seen := slices.BinarySearch(items, o.id); seen {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		see(o)
	})
}

// removedTargets are those that were sent something, as of an engine's last look, and that the settings have no more.
func removedTargets(k *Keeper) ([]layout.Name, error) {
	last, err := lastLook(k.ledger)
	if err != nil || last == nil {
		return nil, err
	}
	targets := k.settings.Current().Settings.Targets
	return slices.DeleteFunc(last.Held, func(to layout.Name) bool { _, is := targets[string(to)]; return is }), nil
}

// askRemoved tells, for each item that it holds or may hold, of a target that the settings have no more: nothing can be taken
// back from there. All items are looked at where there is such a target.
func askRemoved(ctx context.Context, k *Keeper, v gitstore.View, removed []layout.Name, tell func(to layout.Name)) error {
	if len(removed) == 0 {
		return nil
	}
	var mu sync.Mutex // held while tell is called
	return visit(ctx, k, v, false, func(o *object) {
		mu.Lock()
		defer mu.Unlock()
		for _, to := range removed {
			if d := o.delivery.Targets[to]; d != nil && d.Sent != nil {
				tell(to)
			}
		}
	})
}

// Asked counts the deliveries that wait for a person or are tried again, by target and state.
// Without an engine's look there are none.
func Asked(ctx context.Context, k *Keeper) ([]Asking, error) {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	type kind struct {
		to    layout.Name
		state string
		again bool
	}
	count := map[kind]*Asking{}
	removed, err := removedTargets(k)
	if err != nil {
		return nil, err
	}
	_, err = eachOpen(ctx, k, v, func(o *object) {
		for to, d := range o.delivery.Targets {
			if !asksPerson(d) && !triedAgain(d) || d.Sent != nil && slices.Contains(removed, to) { // of these askRemoved tells
				continue
			}
			key := kind{to, d.State, triedAgain(d)}
			a := count[key]
			if a == nil {
				a = &Asking{Target: to, State: d.State}
				count[key] = a
			}
			a.Count++
			if (key.again || d.State == layout.DeliveryUnreadable) && (a.Message == "" || d.After.Before(a.Next)) {
				a.Next, a.Message = d.After, d.Message
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if err := askRemoved(ctx, k, v, removed, func(to layout.Name) {
		key := kind{to, layout.DeliveryDelivered, false}
		if count[key] == nil {
			count[key] = &Asking{Target: to, State: layout.DeliveryDelivered, Message: "the target is not below targets: in " + layout.SettingsFile + " any more"}
		}
		count[key].Count++
	}); err != nil {
		return nil, err
	}
	asking := make([]Asking, 0, len(count))
	for _, a := range count {
		asking = append(asking, *a)
	}
	slices.SortFunc(asking, func(a, b Asking) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.State, b.State), a.Next.Compare(b.Next))
	})
	return asking, nil
}
