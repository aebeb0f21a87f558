package queue

import (
	"testing"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// begun is a crowd of two items, of which the first has begun its first step.
func begun(t *testing.T, lanes ...layout.Name) (c *crowd, e Entry) {
	t.Helper()
	c = newCrowd(t, Lanes{Names: []layout.Name{"express", "normal"}})
	c.drop("maps", "", lanes[0])
	e, ok, _ := c.x.Take(t0, nil)
	if !ok {
		t.Fatal("nothing is ready")
	}
	c.drop("maps", "", lanes[1])
	c.work1(e.Item, e.N)
	return c, e
}

// work1 puts an item as it is while step n is in progress.
func (c *crowd) work1(it *Item, n int) {
	at := c.items[it.ID]
	at.Runs[0].Steps[n].Status, at.Runs[0].Steps[n].Blocked = state.InProgress, state.RunningReason("host:7", layout.AttemptKey{N: 1, Engine: eng})
	at.Runs[0].Steps[n].NoteOwn()
	c.x.Put(at)
}

// The step after one that is about to end is handed out where it would be the next, and what
// was handed out so is not handed out again until it is given back.
func TestTheStepAfterOneIsHandedOutWhereItWouldBeNext(t *testing.T) {
	c, e := begun(t, "normal", "normal")
	next, ok := c.x.TakeNext(t0, e, e.N+1, nil)
	if !ok || next.Item.ID != e.Item.ID || next.N != e.N+1 || next.Step != "b" {
		t.Fatalf("%+v, %v", next, ok)
	}
	if _, again := c.x.TakeNext(t0, e, e.N+1, nil); again {
		t.Error("it is handed out twice")
	}
	c.stand(c.items[e.Item.ID], e.N)
	c.x.Return(e)
	if other, ok, _ := c.x.Take(t0, nil); !ok || other.Item.ID == e.Item.ID {
		t.Errorf("%+v, %v, want the other item", other.Item, ok)
	}
	c.x.Return(next)
	if back, ok, _ := c.x.Take(t0, nil); !ok || back.Item.ID != e.Item.ID || back.N != next.N {
		t.Errorf("given back, it is not handed out: %+v, %v", back, ok)
	}
}

// Where it would not be the next, or does not wait for the step before it alone, it is left to
// Take, which hands it out once.
func TestTheStepAfterOneWaitsForItsTurn(t *testing.T) {
	for name, set := range map[string]func(c *crowd, e Entry){
		"an urgent one": nil,
		"a limit": func(c *crowd, _ Entry) {
			c.x.SetLimits(Limits{Step: func(_ string, s *state.Step) int { return limitOf(s, "b") }})
		},
		"not let":        nil,
		"narrowed":       func(c *crowd, _ Entry) { c.x.Only(func(Entry) (bool, time.Time) { return true, time.Time{} }) },
		"held":           func(c *crowd, e Entry) { it := c.items[e.Item.ID]; it.Held = true; c.x.Put(it) },
		"ready already":  func(c *crowd, e Entry) { c.stand(c.items[e.Item.ID], e.N) },
		"another's turn": nil,
	} {
		t.Run(name, func(t *testing.T) {
			lane := layout.Name("normal")
			var may func(StepID, *state.Step) bool
			switch name {
			case "an urgent one":
				lane = "express"
			case "not let":
				may = func(id StepID, _ *state.Step) bool { return id.Step != "b" }
			}
			c, e := begun(t, "normal", lane)
			switch {
			case name == "a limit": // one other is at it
				other := c.items[c.drop("maps", "", "normal")]
				c.stand(other, 1)
				c.work1(other, 2)
			case name == "another's turn": // the collection has had its take
				c.drop("letters", "", "normal")
			}
			if set != nil {
				set(c, e)
			}
			if got, ok := c.x.TakeNext(t0, e, e.N+1, may); ok {
				t.Fatalf("%+v was handed out", got)
			}
			c.x.SetLimits(Limits{})
			c.x.Only(nil)
			it := c.items[e.Item.ID]
			it.Held = false
			c.stand(it, e.N)
			c.x.Return(e)
			seen := 0
			for {
				got, ok, _ := c.x.Take(t0, nil)
				if !ok {
					break
				}
				if got.Item.ID == e.Item.ID && got.N == e.N+1 {
					seen++
				}
			}
			if seen != 1 {
				t.Errorf("then it was handed out %d times", seen)
			}
		})
	}
}

func limitOf(s *state.Step, name string) int {
	if s.Name == name {
		return 1
	}
	return 0
}
