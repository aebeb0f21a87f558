package gitstore

import "sync/atomic"

// announcer tells of the moves of the branch, and then answers the callers of the group:
// one goroutine, which begins and ends with the owner. The owner builds the next group
// meanwhile. Every edit is applied to the trees, which are the owner's, so that it never
// sees less than was committed before it.
//
// The owner itself tells of other writers' moves, after all news handed over and before
// the next edit is applied.
type announcer struct {
	advance func(Advance)
	news    chan news
	open    atomic.Int32 // news handed over and not told yet
	ended   chan struct{}
}

// news is the end of a group.
type news struct {
	move     *Advance // nil: it moved nothing
	answered []*request
	told     chan struct{} // closed when all news before it has been told; nil: not awaited
}

// fewCallers are answered by the owner when the announcer has nothing to do: to wake it
// would take them longer.
const fewCallers = 8

// answeredAtOnce are the callers of a part of a large group: enough that what observers do once for each call weighs little.
const answeredAtOnce = 250

func newAnnouncer(advance func(Advance)) *announcer {
	return &announcer{advance: advance, news: make(chan news, 1), ended: make(chan struct{})}
}

func (a *announcer) run() {
	defer close(a.ended)
	for n := range a.news {
		a.tell(n)
		a.open.Add(-1)
	}
}

// tell tells of a move, and answers its callers: those of a large group in parts, as each would
// wait for what is told of all others, and the owner then for all of them.
func (a *announcer) tell(n news) {
	told := 0
	for rest := n.answered; ; {
		part := rest[:min(len(rest), answeredAtOnce)]
		rest = rest[len(part):]
		if n.move != nil {
			move := *n.move
			if move.More = len(rest) > 0; move.More {
				move.Changes = move.Changes[:part[len(part)-1].changes]
			}
			move.Changes, told = move.Changes[told:], len(move.Changes)
			a.advance(move)
		}
		for _, r := range part {
			close(r.done)
		}
		if len(rest) == 0 {
			break
		}
	}
	if n.told != nil {
		close(n.told)
	}
}

// hand takes over a group's end; the owner may use the slice again.
func (a *announcer) hand(move *Advance, answered []*request) {
	if a.open.Load() == 0 && len(answered) <= fewCallers {
		a.tell(news{move: move, answered: answered})
		return
	}
	a.send(news{move: move, answered: append([]*request(nil), answered...)})
}

// settled returns when all news handed over has been told.
func (a *announcer) settled() {
	if a.open.Load() == 0 {
		return
	}
	told := make(chan struct{})
	a.send(news{told: told})
	<-told
}

func (a *announcer) send(n news) {
	a.open.Add(1)
	a.news <- n
}

// end tells the news that is left, and stops.
func (a *announcer) end() {
	close(a.news)
	<-a.ended
}
