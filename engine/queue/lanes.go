package queue

import (
	"slices"

	"bagpipe/engine/queue/internal/turns"
	"bagpipe/layout"
)

// eachReady visits what stands in the queues, ready or not any more.
func (x *store) eachReady(visit func(turns.Entry, readyKey, turns.Place)) {
	for key, root := range x.ready {
		root.Each(func(e turns.Entry, p turns.Place) { visit(e, key, p) })
	}
}

// Lanes are the lanes, the most urgent first. Without weights each gets a take for
// every twenty of the one before it; with them, lanes share by weight. A lane that
// is not listed comes last.
type Lanes struct {
	Names   []layout.Name
	Weights map[layout.Name]float64
}

// laneShare is how many takes of a lane there are for one of the next.
const laneShare = 20

// SetLanes replaces the lanes; what is ready is put in order anew.
func (i *Index) SetLanes(l Lanes) {
	x := i.s
	x.mu.Lock()
	defer x.mu.Unlock()
	same := slices.Equal(l.Names, x.lanes.Names) && len(l.Weights) == len(x.lanes.Weights)
	for k, w := range l.Weights {
		same = same && x.lanes.Weights[k] == w
	}
	if same {
		return
	}
	x.lanes = l
	x.others.Rerank()
	x.rebuild(func(turns.Entry, readyKey, turns.Place) bool { return true })
	x.signal()
}

// rebuild puts what is ready into its queues anew, as far as keep wants it.
func (x *store) rebuild(keep func(turns.Entry, readyKey, turns.Place) bool) {
	type standing struct {
		turns.Entry
		readyKey
		turns.Place
	}
	var all []standing
	x.eachReady(func(e turns.Entry, key readyKey, p turns.Place) {
		if keep(e, key, p) {
			all = append(all, standing{e, key, p})
		}
	})
	x.accounts, x.ready = turns.Account{}, map[readyKey]*turns.Tree{}
	for _, s := range all {
		x.pushReady(s.Entry, s.readyKey, s.Place)
	}
}

// lane gives a lane's place, and how far a take moves its turn on.
func (x *store) lane(number uint64) (rank int, stride float64) {
	name := layout.Name(x.names.Text(number))
	rank = x.rank(name)
	if len(x.lanes.Weights) > 0 {
		w := x.lanes.Weights[name]
		if w <= 0 {
			w = 1
		}
		return rank, 1 / w
	}
	stride = 1
	for range min(rank, 6) {
		stride *= laneShare
	}
	return rank, stride
}

// rank is a lane's place.
func (x *store) rank(name layout.Name) int {
	if rank := slices.Index(x.lanes.Names, name); rank >= 0 {
		return rank
	}
	return len(x.lanes.Names)
}
