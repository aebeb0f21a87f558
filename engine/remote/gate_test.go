package remote

import (
	"errors"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/attempt"
	"bagpipe/engine/queue"
	"bagpipe/engine/remote/bus"
	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/steps"
)

// telling has a worker that hears its orders.
type telling struct {
	noBroker
	told func(wire.Orders)
}

func (b *telling) Tell(_ layout.Name, data []byte) {
	var o wire.Orders
	if wire.Decode(data, &o) == nil && b.told != nil {
		go b.told(o)
	}
}

var _ Broker = (*bus.Engine)(nil)

// A worker that lost three attempts in a row must answer a ping before it is granted another.
func TestAWorkerThatLostThreeMustAnswer(t *testing.T) {
	for _, answers := range []bool{false, true} {
		r, _, _ := lentOne(t)
		line := &telling{}
		r.place.Broker, r.rooms.Guests, r.rooms.Report = line, noGuests{}, func(string) {}
		hello := wire.Hello{Head: wire.Now(), Name: "w", Engine: "5c1e9a71", Slots: 1, Robots: []wire.Robot{{Name: "ocr"}}}
		if welcome := (gate{r}).hello("w", hello); welcome.Refused != "" {
			t.Fatal(welcome.Refused)
		}
		r.workers["w"].lapses = mostLapses
		if answers {
			line.told = func(o wire.Orders) {
				if o.Beat {
					r.beat("w", wire.Beat{Head: wire.Now(), Engine: "5c1e9a71", State: StateReady})
				}
			}
		}
		want := wire.Want{Robot: "ocr"}
		away := &attempt.Away{Work: &attempt.Work{Entry: queue.Entry{Item: &queue.Item{}}}}
		r.offers["1"] = &offer{id: "1", demand: demand{Want: want, class: want.Class()}, work: away}
		r.closing = true // whoever comes so far is granted nothing all the same
		g := r.claim("w", wire.Claim{Head: wire.Now(), Engine: "5c1e9a71", Offer: "1", Epoch: r.epoch})
		if strings.Contains(g.Return, "does not answer") == answers || g.Return == "" {
			t.Errorf("answers %v: %+v", answers, g)
		}
	}
}

// A worker that did not hear the grant of a small step asks again, and hears what its robot is given with it.
func TestARepeatedGrantCarriesTheCall(t *testing.T) {
	for _, quick := range []bool{true, false} {
		r, l, _ := lentOne(t)
		r.rooms.Robots = map[layout.Name]steps.Builtin{"noop": {Fileless: true}}
		r.workers["w"] = &worker{Hello: wire.Hello{Name: "w", Engine: l.ref.Key.Engine, Slots: 1}, state: StateReady}
		l.robot, l.asked = "noop", asked{offer: "1", quick: quick}
		r.granted["1"] = l
		for range 2 {
			g := r.claim("w", wire.Claim{Head: wire.Now(), Engine: l.ref.Key.Engine, Offer: "1", Epoch: r.epoch})
			if g.Held != l.held || (g.Call != nil) != quick || quick && g.Call.Robot != "noop" {
				t.Errorf("quick %v: granted %+v", quick, g)
			}
		}
	}
}

// A grant whose call is more, with the item's records, than a message carries goes without it.
func TestAGrantGoesWithoutALargeCall(t *testing.T) {
	for size, carried := range map[int]bool{1 << 10: true, wire.MaxCarrying: false} {
		records := wire.Records{Execution: []byte(`"` + strings.Repeat("x", size) + `"`)}
		data, err := encoded(wire.Grant{Head: wire.Now(), Lease: time.Second, Call: &wire.Call{Head: wire.Now(), Records: records}})
		var g wire.Grant
		if err = errors.Join(err, wire.Decode(data, &g)); err != nil || g.Lease != time.Second || (g.Call != nil) != carried {
			t.Errorf("%d bytes: %v, %+v", size, err, g)
		}
	}
}

// A worker that is silent, or said that it ends, is forgotten; one that works, or has attempts, is not.
func TestWhoIsForgotten(t *testing.T) {
	for _, c := range []struct {
		state   string
		attempt bool
		want    bool
	}{{StateReady, false, false}, {StateDraining, false, false}, {StateSilent, false, true}, {StateGone, false, true}, {StateGone, true, false}} {
		r, l, _ := lentOne(t)
		r.place.Broker = &noBroker{}
		w := &worker{Hello: wire.Hello{Name: "w", Engine: "5c1e9a71", Slots: 1}, state: StateReady}
		if c.attempt {
			w.Engine = l.ref.Key.Engine
		}
		r.workers["w"] = w
		r.beat("w", wire.Beat{Head: wire.Now(), Engine: w.Engine, State: c.state})
		answer := r.control(wire.Operator, wire.Control{Head: wire.Now(), Verb: wire.Forget, Worker: "w"})
		if forgotten := r.workers["w"] == nil; forgotten != c.want || (answer.Refused == "") != c.want {
			t.Errorf("%+v: %+v", c, answer)
		}
	}
}
