package gitstore

import "sync/atomic"

// herald tells of the moves of the branch, and then answers the callers of the group:
// one goroutine, which begins and ends with the owner. The owner builds the next group
// meanwhile. Every edit is applied to the trees, which are the owner's, so that it
// never sees less than what was committed before it.
//
// What others did is told by the owner itself, after all that was handed over here and
// before the next edit is applied.
type herald struct {
	s     *Store
	news  chan news
	open  atomic.Int32 // news handed over and not told yet
	ended chan struct{}
}

// news is what a group came to.
type news struct {
	move     *Advance // nil: it moved nothing
	answered []*request
	told     chan struct{} // closed when all before it has been told; nil: nobody waits
}

// fewCallers are answered by the owner when the herald has nothing to do: waking it
// would take them longer.
const fewCallers = 8

func newHerald(s *Store) *herald {
	return &herald{s: s, news: make(chan news, 1), ended: make(chan struct{})}
}

func (h *herald) run() {
	defer close(h.ended)
	for n := range h.news {
		h.tell(n)
		h.open.Add(-1)
	}
}

func (h *herald) tell(n news) {
	if n.move != nil {
		h.s.advance(*n.move)
	}
	for _, r := range n.answered {
		close(r.done)
	}
	if n.told != nil {
		close(n.told)
	}
}

// hand takes over a group's end; the owner may use the slice again.
func (h *herald) hand(move *Advance, answered []*request) {
	if h.open.Load() == 0 && len(answered) <= fewCallers {
		h.tell(news{move: move, answered: answered})
		return
	}
	h.send(news{move: move, answered: append([]*request(nil), answered...)})
}

// settled returns when everything handed over has been told.
func (h *herald) settled() {
	if h.open.Load() == 0 {
		return
	}
	told := make(chan struct{})
	h.send(news{told: told})
	<-told
}

func (h *herald) send(n news) {
	h.open.Add(1)
	h.news <- n
}

// end tells what is left, and stops.
func (h *herald) end() {
	close(h.news)
	<-h.ended
}
