package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"

	"bagpipe/layout"
)

// Asking is how many deliveries to a target wait for a person in one state.
type Asking struct {
	Target layout.Name `json:"target"`
	State  string      `json:"state"` // waits, or failed
	Count  int         `json:"deliveries"`
}

// asksPerson reports whether a delivery goes no further without a person.
func asksPerson(d *layout.Delivery) bool {
	return d.State == layout.DeliveryWaits || d.State == layout.DeliveryFailed
}

// Asked counts the deliveries that wait for a person, by target and state. Candidates are
// those of an engine's last look; how each stands is read at the tip.
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
	count := map[Asking]int{}
	for _, id := range *l.Asks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o, err := readObject(v, id)
		if err != nil || o == nil {
			continue // a run tells of it
		}
		for to, d := range o.delivery.Targets {
			if asksPerson(d) {
				count[Asking{Target: to, State: d.State}]++
			}
		}
	}
	asking := make([]Asking, 0, len(count))
	for a, n := range count {
		a.Count = n
		asking = append(asking, a)
	}
	slices.SortFunc(asking, func(a, b Asking) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.State, b.State))
	})
	return asking, nil
}
