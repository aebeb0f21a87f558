package remote

import (
	"fmt"
	"testing"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"

	"pgregory.net/rapid"
)

// However workers come, change and go, and attempts begin and end, the free slots that are kept are those that are counted.
func TestFreeSlotsAreThoseCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := newTable(Rooms{Version: "1"})
		var demands []demand
		for _, robot := range []layout.Name{"ocr", "scan"} {
			for _, builtin := range []bool{false, true} {
				want := wire.Want{Robot: robot, Builtin: builtin}
				demands = append(demands, demand{Want: want, class: want.Class()})
			}
		}
		some := func(of []layout.Name, label string) layout.Name { return rapid.SampledFrom(of).Draw(t, label) }
		names := []layout.Name{"a", "b", "c"}
		id := func(name layout.Name) layout.EngineID { return layout.EngineID("engine-" + name) }
		serial := 0
		t.Repeat(map[string]func(*rapid.T){
			"hello": func(t *rapid.T) {
				name := some(names, "who")
				w := &worker{Hello: wire.Hello{Name: name, Engine: id(name), Build: "1", Slots: rapid.IntRange(1, 3).Draw(t, "slots"),
					Robots: []wire.Robot{{Name: some([]layout.Name{"ocr", "scan"}, "robot"), Builtin: rapid.Bool().Draw(t, "builtin")}}}, state: StateReady}
				tab.workers[name] = w
				tab.serve(w)
			},
			"changes": func(t *rapid.T) {
				if w := tab.workers[some(names, "who")]; w != nil {
					w.stopped = rapid.Bool().Draw(t, "stopped")
					w.state = rapid.SampledFrom([]string{StateReady, StateSilent, StateDraining}).Draw(t, "state")
					tab.serve(w)
				}
			},
			"begins": func(t *rapid.T) {
				serial++
				tab.enter(&loan{ref: layout.AttemptRef{Item: layout.ItemID(fmt.Sprint(serial)), Key: layout.AttemptKey{N: 1, Engine: id(some(names, "who"))}}})
			},
			"ends": func(t *rapid.T) {
				for _, l := range tab.loans {
					if !l.ending {
						tab.conclude(l)
						return
					}
				}
			},
			"": func(t *rapid.T) {
				all := 0
				for _, w := range tab.workers {
					if w.works() {
						all += max(0, w.Slots-tab.running(w))
					}
				}
				if got := tab.allFree(); got != all {
					t.Fatalf("%d are free, and %d were counted", all, got)
				}
				for _, d := range demands {
					free, able := 0, 0
					for _, w := range tab.workers {
						if w.works() && w.meets(d, "1") {
							able++
							free += max(0, w.Slots-tab.running(w))
						}
					}
					if f, a := tab.free(d); f != free || a != able {
						t.Fatalf("%+v: %d free at %d, and %d at %d were counted", d.Want, free, able, f, a)
					}
				}
			},
		})
	})
}
