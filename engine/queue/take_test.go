package queue

import (
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"testing"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// chain is a workflow of five steps in a row.
const chain = `schema: 1
name: w
steps:
  - name: register
  - name: a
    robot: noop
  - name: b
    robot: noop
  - name: c
    robot: noop
  - name: d
    robot: noop
`

// crowd is items that are worked on as a run does, without records: an item's steps
// are done one after the other.
type crowd struct {
	x     *Index
	plan  *state.Definition
	items map[layout.ItemID]*Item
	next  uint64
}

func newCrowd(t interface{ Fatal(...any) }, lanes Lanes) *crowd {
	d, err := state.ParseDefinition("w.yaml", []byte(chain), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{x: New(), plan: d, items: map[layout.ItemID]*Item{}}
	c.x.SetLanes(lanes)
	return c
}

func (c *crowd) drop(collection layout.Name, batch string, lane layout.Name) layout.ItemID {
	c.next++
	it := &Item{ID: layout.ItemIDOf(c.next * 0x9e3779b97f4a7c15 >> 8), Collection: collection, Batch: batch, Lane: lane,
		Label: fmt.Sprint(c.next), Created: t0.Add(time.Duration(c.next) * time.Second)}
	it.Runs = []Run{{Name: workflow, Plan: c.plan, Status: state.InProgress, Steps: make([]Step, len(c.plan.Steps))}}
	c.items[it.ID] = it
	c.stand(it, 0)
	return it.ID
}

// stand puts an item as it is with done steps after the first.
func (c *crowd) stand(it *Item, done int) {
	for i := range it.Runs[0].Steps {
		s := &it.Runs[0].Steps[i]
		*s = Step{Status: state.Waiting, Since: it.Created}
		switch {
		case i <= done:
			s.Status, s.Blocked = state.Completed, state.DoneReason(state.Completed)
		case i > done+1:
			s.Blocked = state.RequiresReason([]string{c.plan.Steps[i-1].Name})
		}
		s.NoteOwn()
	}
	if done == len(it.Runs[0].Steps)-1 {
		it.Runs[0].Status = state.Completed
	}
	c.x.Put(it)
}

// work does one step; ok is false when there is none.
func (c *crowd) work() (id layout.ItemID, finished, ok bool) {
	e, ok, _ := c.x.Take(t0, nil)
	if !ok {
		return "", false, false
	}
	it := c.items[e.Item.ID]
	c.stand(it, e.N)
	c.x.Return(e)
	return it.ID, e.N == len(c.plan.Steps)-1, true
}

// TestASingleItemIsNotStarvedByABatch: one item dropped after a batch of thousands is
// done within the time of 20 others, in the same collection and in another.
func TestASingleItemIsNotStarvedByABatch(t *testing.T) {
	batch, steps := 25_000, 4
	if testing.Short() {
		batch = 3000
	}
	for _, collection := range []layout.Name{"maps", "letters"} {
		c := newCrowd(t, Lanes{Names: []layout.Name{"normal"}})
		for range batch {
			c.drop("maps", "delivery", "normal")
		}
		for range 1000 { // it is under way
			c.work()
		}
		single := c.drop(collection, "", "normal")
		taken := 0
		for {
			id, finished, ok := c.work()
			if !ok {
				t.Fatal("nothing is ready, and it is not done")
			}
			taken++
			if id == single && finished {
				break
			}
		}
		if taken > 20*steps {
			t.Errorf("in %s it took the time of %d others", collection, taken/steps)
		}
	}
}

// TestShares: whatever is dropped, and whatever is done meanwhile, of collections
// that have something ready all the time none gets more than one take more than
// another, nor does a batch within its collection.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(t, Lanes{Names: []layout.Name{"normal"}})
		collections := []layout.Name{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "collections")]
		batches := []string{"", "x", "y"}
		const each = 60
		sizes := map[string]int{}
		for _, col := range collections {
			for _, b := range batches[:rapid.IntRange(1, 3).Draw(t, "batches")] {
				n := rapid.IntRange(1, 4).Draw(t, "size") * each
				sizes[string(col)+"/"+b] = n
				for range n {
					c.drop(col, b, "normal")
				}
			}
		}
		took := map[string]int{}
		for range each {
			id, _, ok := c.work()
			if !ok {
				break
			}
			it := c.items[id]
			took[string(it.Collection)]++
			took[string(it.Collection)+"/"+it.Batch]++
			for key, n := range took {
				for other, m := range took {
					alike := len(key) == 1 && len(other) == 1 || len(key) > 1 && len(other) > 1 && key[0] == other[0]
					if alike && (n-m > 2 || m-n > 2) {
						t.Fatalf("%s got %d and %s %d: %v", key, n, other, m, took)
					}
				}
			}
		}
		for key := range sizes {
			if took[key] == 0 && len(sizes) <= each/2 {
				t.Fatalf("%s got nothing in %d takes: %v", key, each, took)
			}
		}
	})
}

// TestNoLaneStarves: while the lanes above have enough to do, the lowest gets its
// share: one of twenty of the lane before it, or by weight.
func TestNoLaneStarves(t *testing.T) {
	for kind := range 4 {
		lanes := Lanes{Names: []layout.Name{"urgent", "normal", "low"}[:2+kind/2]}
		weighted := kind%2 == 0
		if weighted {
			lanes.Weights = map[layout.Name]float64{"urgent": 5, "normal": 3, "low": 1}
		}
		c := newCrowd(t, lanes)
		const n = 450
		for _, l := range lanes.Names {
			for range n * 2 {
				c.drop("maps", "", l)
			}
		}
		takes := map[layout.Name]int{}
		for range n * len(lanes.Names) {
			id, _, ok := c.work()
			if !ok {
				t.Fatal("nothing is ready")
			}
			takes[c.items[id].Lane]++
		}
		total := n * len(lanes.Names)
		for i, l := range lanes.Names {
			want := 1.0
			for range i {
				want /= laneShare
			}
			sum := 1.0 + 1.0/laneShare
			if len(lanes.Names) == 3 {
				sum += 1.0 / laneShare / laneShare
			}
			if weighted {
				want, sum = lanes.Weights[l], 8
				if len(lanes.Names) == 3 {
					sum = 9
				}
			}
			if share := want / sum * float64(total); float64(takes[l]) < share-3 || float64(takes[l]) > share+3 {
				t.Fatalf("%s got %d of %d, want about %.0f: %v", l, takes[l], total, share, takes)
			}
		}
	}
}

// TestPreviewIsTheOrder: what is listed is what is handed out, in that order.
func TestPreviewIsTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(t, Lanes{Names: []layout.Name{"urgent", "normal"}})
		random := rand.New(rand.NewSource(int64(rapid.Int32().Draw(t, "seed"))))
		for range rapid.IntRange(0, 60).Draw(t, "items") {
			id := c.drop([]layout.Name{"a", "b"}[random.Intn(2)], []string{"", "x"}[random.Intn(2)], []layout.Name{"urgent", "normal", "other"}[random.Intn(3)])
			c.stand(c.items[id], random.Intn(4))
		}
		for range rapid.IntRange(0, 20).Draw(t, "done") {
			c.work()
		}
		ready, _ := c.x.Queue(t0, Question{})
		limit := rapid.IntRange(1, 10).Draw(t, "limit")
		page, _ := c.x.Queue(t0, Question{Limit: limit})
		var listed, first, taken []string
		for _, e := range ready {
			listed = append(listed, e.Item.Label+string(e.Step))
		}
		for _, e := range page {
			first = append(first, e.Item.Label+string(e.Step))
		}
		for {
			e, ok, _ := c.x.Take(t0, nil)
			if !ok {
				break
			}
			taken = append(taken, e.Item.Label+string(e.Step))
		}
		if !slices.Equal(listed, taken) {
			t.Fatalf("listed %v\ntaken  %v", listed, taken)
		}
		if !slices.Equal(first, listed[:min(limit, len(listed))]) {
			t.Fatalf("the first %d are %v of %v", limit, first, listed)
		}
	})
}

// TestCollectionsAtTheirLimitArePassedOver: they do not hold up the others.
func TestCollectionsAtTheirLimitArePassedOver(t *testing.T) {
	c := newCrowd(t, Lanes{Names: []layout.Name{"normal"}})
	c.x.SetLimits(Limits{Collection: func(n layout.Name) int { return map[layout.Name]int{"a": 1}[n] }})
	for range 3 {
		c.drop("a", "", "normal")
	}
	c.drop("b", "", "normal")
	var got string
	for {
		e, ok, limited := c.x.Take(t0, nil)
		if !ok {
			if !limited {
				t.Error("nothing is said of the limit")
			}
			break
		}
		got += string(e.Item.Collection)
	}
	if got != "ab" {
		t.Errorf("handed out of %s, want a and b", got)
	}
}

// BenchmarkTake takes and finishes the steps of 1,000, 10,000 and 100,000 items, the
// sizes turn by turn: the time of one item must not grow with their number. It counts
// the processor's time, the best of the rounds, as other programs run beside it.
func BenchmarkTake(b *testing.B) {
	sizes := []int{1000, 10_000, 100_000}
	best := make([]time.Duration, len(sizes))
	for b.Loop() {
		for s, n := range sizes {
			times := sizes[len(sizes)-1] / n // so that all are as long
			var used time.Duration
			for range times {
				used += finishAll(b, n)
			}
			if each := used / time.Duration(times*n); best[s] == 0 || each < best[s] {
				best[s] = each
			}
		}
	}
	for s, n := range sizes {
		b.ReportMetric(float64(best[s].Nanoseconds()), fmt.Sprintf("ns/item-of-%d", n))
	}
	b.ReportMetric(float64(slices.Max(best))/float64(slices.Min(best)), "x-spread") // at most 1.3
	b.ReportMetric(0, "ns/op")
}

// finishAll takes and finishes every step of n items; it gives the processor's time.
func finishAll(b *testing.B, n int) time.Duration {
	c := newCrowd(b, Lanes{Names: []layout.Name{"normal"}})
	for i := range n {
		c.drop(layout.Name([]string{"a", "b", "c"}[i%3]), fmt.Sprint(i/5000), "normal")
	}
	c.items = nil // what the index holds alone counts, for the collector as well
	runtime.GC()
	start := processor(b)
	for {
		e, ok, _ := c.x.Take(t0, nil)
		if !ok {
			return processor(b) - start
		}
		c.stand(e.Item, e.N)
		c.x.Return(e)
	}
}

// processor is the time this process has spent on all cores.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
