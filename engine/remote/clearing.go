package remote

import "maps"

// The rules are: a worker does not acknowledge the message of an offer that is granted to it; once a second the engine takes
// all messages of a class out of the stream that come before the first offer that still stands. A message that stays in it, as
// one before it stands or the server does not answer, is delivered again after bus's ackWait: the claim of it answers that it is
// gone, and that worker acknowledges it.

// clearing is what may be taken out of the stream; the table's lock guards it.
type clearing struct {
	spent   map[string]uint64 // by class: the last place of an offer that does not stand any more
	cleared map[string]uint64 // by class: the last place that was taken out
}

func noneSpent() clearing { return clearing{map[string]uint64{}, map[string]uint64{}} }

// spend notes that the offer at a place does not stand any more; place 0 is that of an offer which is not in the stream,
// or whose place is not told yet.
func (c *clearing) spend(class string, place uint64) {
	if place > 0 {
		c.spent[class] = max(c.spent[class], place)
	}
}

// clearable gives, by class, the place up to which no offer stands, where that is not taken out yet. first is the first
// place of a class at which one stands.
func (c *clearing) clearable(first map[string]uint64) map[string]uint64 {
	upTo := maps.Clone(c.spent)
	for class, last := range upTo {
		if stands := first[class]; stands > 0 {
			last = min(last, stands-1)
		}
		if upTo[class] = last; last <= c.cleared[class] {
			delete(upTo, class)
		}
	}
	return upTo
}
