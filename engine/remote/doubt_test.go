package remote

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bagpipe/engine/remote/bus"
	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
)

// standing is a broker whose stream stands as the test says.
type standing struct {
	noBroker
	at    string // its epoch
	there uint64
	lost  error // of Look
	queue bus.Queue
	none  error // of Queue: the consumer is gone
}

func (b *standing) Look(context.Context) (string, uint64, error) { return b.at, b.there, b.lost }
func (b *standing) Queue(context.Context, string) (bus.Queue, error) {
	return b.queue, b.none
}

// A stream is doubted that is gone, another's, or behind; or whose consumer is gone, or delivers nothing for five
// seconds while workers pull and have free slots.
func TestAStreamThatIsDoubted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*standing)
		age    time.Duration
		busy   bool
		want   string // "": it is relied on
	}{
		"all is well":        {func(*standing) {}, time.Minute, false, ""},
		"gone":               {func(b *standing) { b.lost = bus.ErrNoStream }, 0, true, "it is gone"},
		"another's":          {func(b *standing) { b.at = "then" }, 0, true, "another's"},
		"behind":             {func(b *standing) { b.there = 0 }, 6 * time.Second, true, "it holds 0 offers, and 1 were put into it"},
		"not yet there":      {func(b *standing) { b.there = 0 }, 4 * time.Second, true, ""},
		"no consumer":        {func(b *standing) { b.none = errors.New("no such consumer") }, 6 * time.Second, false, "delivers nothing"},
		"delivers nothing":   {func(b *standing) { b.queue.Pulling = 1 }, 6 * time.Second, false, "delivers nothing (1 wait, 1 pull)"},
		"for a moment":       {func(b *standing) { b.queue.Pulling = 1 }, 4 * time.Second, false, ""},
		"all slots are busy": {func(b *standing) { b.queue.Pulling = 1 }, time.Minute, true, ""},
	} {
		r, _, _ := lentOne(t)
		b := &standing{at: "now", there: 1, queue: bus.Queue{Pending: 1}}
		c.change(b)
		r.place.Broker, r.epoch = b, "now"
		want := wire.Want{Robot: "ocr"}
		r.offers["1"] = &offer{id: "1", sent: r.rooms.Now().Add(-c.age), demand: demand{Want: want, class: want.Class()}}
		w := &worker{Hello: wire.Hello{Name: "w", Engine: "5c1e9a71", Slots: 1, Robots: []wire.Robot{{Name: "ocr"}}}, state: StateReady}
		if c.busy {
			r.busy[w.Engine] = 1
		}
		r.workers["w"] = w
		err := stream{r}.doubt(t.Context())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// refusing is a broker that takes no offers for so many times, and then tells what it took.
type refusing struct {
	noBroker
	times int
	took  chan []bus.Message
}

func (b *refusing) Publish(_ context.Context, all []bus.Message) ([]uint64, error) {
	if b.times--; b.times >= 0 {
		return nil, errors.New("no leader")
	}
	b.took <- all
	return make([]uint64, len(all)), nil
}

// Offers that the stream did not take are put into it again, and are not missed there meanwhile.
func TestOffersThatTheStreamDidNotTake(t *testing.T) {
	r, _, _ := lentOne(t)
	b := &refusing{times: 2, took: make(chan []bus.Message, 1)}
	r.place.Broker = b
	r.offers["1"] = &offer{id: "1", demand: demand{class: "ocr"}}
	for range b.times {
		if err := (stream{r}).publish(t.Context()); err == nil || !r.offers["1"].sent.IsZero() {
			t.Fatalf("refused: %v, sent %s", err, r.offers["1"].sent)
		}
	}
	r.epoch = "now"
	r.place.Broker = &standing{at: r.epoch}
	r.feed.begun = r.rooms.Now()
	if err := (stream{r}).doubt(t.Context()); err != nil {
		t.Errorf("a stream that was made just now: %v", err)
	}
	r.feed.begun = r.rooms.Now().Add(-time.Minute)
	if err := (stream{r}).doubt(t.Context()); err == nil || !strings.Contains(err.Error(), "took no offers") {
		t.Errorf("a stream that takes none: %v", err)
	}
	r.place.Broker, b.times = b, 1
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { stream{r}.publishing(ctx) })
	signal(r.fresh)
	if all := <-b.took; len(all) != 1 || all[0].Class != "ocr" {
		t.Errorf("put again: %v", all)
	}
	stop()
	wg.Wait()
	if r.feed.failed != 0 {
		t.Errorf("%d failures in a row after one that went well", r.feed.failed)
	}
}

// clearingAway is a broker that tells what is taken out of its stream.
type clearingAway struct {
	noBroker
	before map[string]uint64 // by class
	err    error
}

func (b *clearingAway) Publish(_ context.Context, all []bus.Message) (places []uint64, err error) {
	for range all {
		places = append(places, uint64(len(places)+1))
	}
	return places, nil
}

func (b *clearingAway) Clear(_ context.Context, class string, before uint64) error {
	b.before[class] = before
	return b.err
}

// What does not stand any more is taken out of the stream up to the first offer of its class that stands, once; not while its claim is
// being committed, and not by places in a stream before.
func TestWhatIsTakenOutOfTheStream(t *testing.T) {
	r, _, _ := lentOne(t)
	b := &clearingAway{}
	r.place.Broker, r.epoch = b, "one"
	offered := func(n int, robot layout.Name) *offer {
		want := wire.Want{Robot: robot}
		o := &offer{id: "one." + strconv.Itoa(n), demand: demand{Want: want, class: want.Class()}}
		r.offers[o.id] = o
		return o
	}
	first, second, third, early := offered(1, "ocr"), offered(2, "ocr"), offered(3, "ocr"), offered(4, "scan")
	r.withhold(early) // before the server has told its place
	stream{r}.put("one", []*offer{first, second, early, third}, []uint64{1, 2, 3, 4}, nil)
	cleared := func(want map[string]uint64) {
		t.Helper()
		b.before = map[string]uint64{}
		if (stream{r}).clear(t.Context()); !maps.Equal(b.before, want) {
			t.Errorf("taken out: %v, want %v", b.before, want)
		}
	}
	ocr, scan := first.demand.class, early.demand.class
	cleared(map[string]uint64{scan: 4})
	r.withhold(second)
	r.table.claim(first)
	cleared(map[string]uint64{})
	r.withhold(first)
	b.err = errors.New("no answer")
	cleared(map[string]uint64{ocr: 3})
	b.err = nil
	cleared(map[string]uint64{ocr: 3})
	cleared(map[string]uint64{})
	r.epoch, r.clearing = "two", noneSpent()
	stream{r}.put("one", []*offer{third}, []uint64{9}, nil)
	third.place = 0
	r.withhold(third)
	cleared(map[string]uint64{})
}

// On offer is twice as much as slots are free, at least 16 and at most 4,096.
func TestHowMuchIsOnOffer(t *testing.T) {
	for free, want := range map[int]int{0: 16, 8: 16, 9: 18, 100: 200, 2048: 4096, 10_000: 4096} {
		if got := mostAtOnce(free); got != want {
			t.Errorf("%d free slots: %d on offer, want %d", free, got, want)
		}
	}
}

// An offer whose claim is being committed leaves room for another, and takes a free slot of those that are counted.
func TestAnOfferThatIsClaimedIsNotOnOffer(t *testing.T) {
	for slots, most := range map[int]int{0: 16, 20: 40} {
		tab := newTable(Rooms{Now: time.Now, Version: "1"})
		tab.workers["w"] = &worker{Hello: wire.Hello{Name: "w", Engine: "0000abc0", Slots: slots}, state: StateReady}
		offers := 0
		fill := func() (more int) {
			for ; !tab.enough(); more++ {
				offers++
				o := &offer{id: strconv.Itoa(offers)}
				tab.offers[o.id] = o
			}
			return more
		}
		if n := fill(); n != most {
			t.Fatalf("%d slots: %d are on offer, want %d", slots, n, most)
		}
		one, want := tab.offers["1"], max(16, 2*(slots-1))-(most-1)
		if tab.claim(one); fill() != max(0, want) {
			t.Errorf("%d slots: one is claimed, and %d are offered in its place, want %d", slots, offers-most, max(0, want))
		}
		tab.enter(&loan{ref: layout.AttemptRef{Key: layout.AttemptKey{N: 1, Engine: "0000abc0"}}})
		if tab.withhold(one); fill() != 0 {
			t.Errorf("%d slots: granted, it leaves room for another once more", slots)
		}
	}
}

// New offers wait for others while enough of their class are in the stream, and never where a class has few.
func TestOffersGatherWhereThereAreEnough(t *testing.T) {
	r, _, _ := lentOne(t)
	put := func(robot layout.Name, n int, sent time.Time, claiming bool) {
		want := wire.Want{Robot: robot}
		for range n {
			r.serial++
			id := strconv.Itoa(r.serial)
			r.offers[id] = &offer{id: id, sent: sent, claiming: claiming, demand: demand{Want: want, class: want.Class()}}
		}
	}
	now := r.rooms.Now()
	for n, c := range []struct {
		robot    layout.Name
		n        int
		sent     time.Time
		claiming bool
		want     bool
	}{
		{"ocr", 1, time.Time{}, false, false},
		{"ocr", ampleOffers - 1, now, false, false},
		{"ocr", 1, now, true, false},
		{"ocr", 1, now, false, true},
		{"scan", ampleOffers, now, false, true},
		{"tag", 1, time.Time{}, false, false},
	} {
		if put(c.robot, c.n, c.sent, c.claiming); (stream{r}).ample() != c.want {
			t.Errorf("after %d: ample is %v", n, !c.want)
		}
	}
}
