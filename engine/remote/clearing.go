package remote

import (
	"context"
	"maps"
	"strings"
	"time"
)

// The rules are: a worker does not acknowledge the message of an offer that is granted to it; once a second the engine takes
// all messages of a class out of the stream that come before the first offer that still stands. A message that stays in it, as
// one before it stands or the server does not answer, is delivered again after bus's ackWait: the claim of it answers that it is gone, and
// that worker acknowledges it.

// clearing is what may be taken out of the stream; the table's lock guards it.
type clearing struct {
	spent   map[string]uint64 // by class: the last place of an offer that does not stand any more
	cleared map[string]uint64 // by class: up to which place the stream has none
}

// spend notes that an offer does not stand any more; t.mu is held.
func (t *table) spend(o *offer) {
	if o.place == 0 || !strings.HasPrefix(o.id, t.epoch+".") {
		return // it is not in the stream, or is being put into it
	}
	if t.spent == nil {
		t.spent = map[string]uint64{}
	}
	t.spent[o.demand.class] = max(t.spent[o.demand.class], o.place)
}

// placed notes the places of offers in the stream of an epoch; t.mu is held.
func (t *table) placed(epoch string, offers []*offer, places []uint64) {
	if epoch != t.epoch || len(places) != len(offers) {
		return
	}
	for i, o := range offers {
		if o.place = places[i]; t.offers[o.id] != o { // claimed meanwhile
			t.spend(o)
		}
	}
}

// clearable gives, by class, the place up to which no offer stands, where that is more than was cleared; t.mu is held.
func (t *table) clearable() map[string]uint64 {
	upTo := maps.Clone(t.spent)
	for _, o := range t.offers {
		if last, some := upTo[o.demand.class]; some && o.place > 0 && o.place <= last {
			upTo[o.demand.class] = o.place - 1
		}
	}
	maps.DeleteFunc(upTo, func(class string, last uint64) bool { return last <= t.cleared[class] })
	return upTo
}

// clearTime bounds the wait for the server to take offers out.
const clearTime = time.Second

// clear takes offers out of the stream that do not stand any more.
func (r stream) clear(ctx context.Context) {
	r.mu.Lock()
	epoch, upTo := r.epoch, r.clearable()
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, clearTime)
	defer cancel()
	for class, last := range upTo {
		if err := r.place.Broker.Clear(ctx, class, last+1); err != nil {
			r.rooms.Log.Debug("take offers out of the stream", "class", class, "err", err)
			return
		}
		r.mu.Lock()
		if r.epoch == epoch {
			if r.cleared == nil {
				r.cleared = map[string]uint64{}
			}
			r.cleared[class] = last
		}
		r.mu.Unlock()
	}
}
