package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"bagpipe/layout"
)

// Asking is how many deliveries to a target wait in one state: for a person, or to be tried again.
type Asking struct {
	Target  layout.Name `json:"target"`
	State   string      `json:"state"` // waits, failed, or ready: tried again
	Count   int         `json:"deliveries"`
	Next    time.Time   `json:"next,omitzero"`     // of those tried again, the first
	Message string      `json:"message,omitempty"` // why that did not go
}

// asksPerson reports whether a delivery goes no further without a person.
func asksPerson(d *layout.Delivery) bool {
	return d.State == layout.DeliveryWaits || d.State == layout.DeliveryFailed
}

// triedAgain reports whether a delivery did not go, and goes by itself later.
func triedAgain(d *layout.Delivery) bool {
	return d.State == layout.DeliveryReady && d.Message != ""
}

// Asked counts the deliveries that wait for a person or are tried again, by target and state.
// Candidates are those of an engine's last look; how each stands is read at the tip.
func Asked(ctx context.Context, k *Keeper) ([]Asking, error) {
	data, err := os.ReadFile(lookFile(k.ledger))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var l look
	if json.Unmarshal(data, &l) != nil || l.Asks == nil {
		return nil, nil // the next run looks anew
	}
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	count := map[[2]string]*Asking{}
	candidates := append(*l.Asks, l.Open...) // an item may be in both
	slices.Sort(candidates)
	for _, id := range slices.Compact(candidates) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o, err := readObject(v, id)
		if err != nil || o == nil {
			continue // a run tells of it
		}
		for to, d := range o.delivery.Targets {
			if !asksPerson(d) && !triedAgain(d) {
				continue
			}
			key := [2]string{string(to), d.State}
			a := count[key]
			if a == nil {
				a = &Asking{Target: to, State: d.State}
				count[key] = a
			}
			a.Count++
			if triedAgain(d) && (a.Message == "" || d.After.Before(a.Next)) {
				a.Next, a.Message = d.After, d.Message
			}
		}
	}
	asking := make([]Asking, 0, len(count))
	for _, a := range count {
		asking = append(asking, *a)
	}
	slices.SortFunc(asking, func(a, b Asking) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.State, b.State))
	})
	return asking, nil
}
