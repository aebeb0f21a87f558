package packed

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// itemOptions compare items with what only this package sees of them.
var itemOptions = cmp.Options{cmp.AllowUnexported(Step{}, overlaid{}), cmp.Comparer(func(a, b *state.Definition) bool { return a == b }),
	cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })}

// TestPackKeepsEverything: an item comes out of its bytes as it went in, but for the
// messages of completed steps. Every field is set at random, so that one that is new
// and not packed is found.
func TestPackKeepsEverything(t *testing.T) {
	d := plan(t)
	rapid.Check(t, func(t *rapid.T) {
		it := &Item{ID: layout.ItemIDOf(rapid.Uint64Range(0, 1<<56-1).Draw(t, "id"))}
		scramble(t, reflect.ValueOf(it).Elem(), d)
		n := NewNames()
		b := Pack(nil, n, it)
		got, ok := Unpack(b, n, it.ID)
		if !ok {
			t.Fatal("damaged")
		}
		for run, i := range it.Steps() {
			if s := &run.Steps[i]; s.Status == state.Completed {
				s.Message = ""
			}
		}
		if diff := cmp.Diff(it, got, itemOptions...); diff != "" {
			t.Fatal(diff)
		}
		bare, ok := UnpackBare(b, n, it.ID)
		for run, i := range got.Steps() {
			run.Steps[i].Blocked, run.Steps[i].own = nil, overlaid{}
		}
		for run, i := range bare.Steps() {
			run.Steps[i].own = overlaid{}
		}
		if diff := cmp.Diff(got, bare, itemOptions...); !ok || diff != "" {
			t.Fatal("bare: ", ok, diff)
		}
		var g Outline
		if !g.Read(b) || g.Traits != it.Traits() {
			t.Fatalf("traits %b, want %b", g.Traits, it.Traits())
		}
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		if _, ok := Unpack(b[:cut], n, it.ID); ok {
			t.Fatalf("cut at %d of %d it still is whole", cut, len(b))
		}
		if g.Read(b[:cut]) {
			t.Fatalf("cut at %d of %d it still looks whole", cut, len(b))
		}
	})
}

// scramble sets every field of a struct.
func scramble(t *rapid.T, v reflect.Value, d *state.Definition) {
	text := rapid.StringN(0, 6, 20)
	moment := func() time.Time {
		if rapid.IntRange(0, 3).Draw(t, "none") == 0 {
			return time.Time{}
		}
		return t0.Add(time.Duration(rapid.Int64Range(-1e15, 1e15).Draw(t, "at")))
	}
	reason := func() *state.Reason {
		switch rapid.IntRange(0, 7).Draw(t, "why") {
		case 0:
			return nil
		case 1:
			return state.ManualReason()
		case 2:
			return state.DateReason(moment())
		case 3:
			return state.RequiresReason([]string{"a", "b"})
		case 4:
			return &state.Reason{Code: text.Draw(t, "code"), Text: text.Draw(t, "text"), Until: moment(), Steps: []string{"x"}}
		case 5:
			return state.FailedReason()
		case 6:
			return state.DoneReason(state.Completed)
		}
		return state.WorkflowFailedReason()
	}
	it := v.Addr().Interface().(*Item)
	it.Collection, it.Label, it.Batch, it.Lane = "maps", text.Draw(t, "label"), text.Draw(t, "batch"), "normal"
	it.Created, it.Broken, it.Gone = moment(), text.Draw(t, "broken"), rapid.Bool().Draw(t, "gone")
	if rapid.Bool().Draw(t, "child") {
		it.Parent = &layout.Parent{Item: it.ID, Workflow: "w.1", Step: "a", Name: text.Draw(t, "name"), Generation: 2}
	}
	if it.Held = rapid.Bool().Draw(t, "held"); it.Held {
		it.HeldBy = text.Draw(t, "by")
	}
	it.Milestones = map[layout.Name]time.Time{"registered": t0, "deposited": t0.Add(time.Hour)}
	it.Facets = []string{text.Draw(t, "facet"), ""}
	for r := range rapid.IntRange(0, 2).Draw(t, "runs") {
		run := Run{Name: fmt.Sprintf("w.%d", r+1), Plan: d, Status: state.Failed, Steps: make([]Step, len(d.Steps)), Internal: text.Draw(t, "internal")}
		if run.Internal != "" {
			run.InternalAt = t0
		}
		for i := range run.Steps {
			s := &run.Steps[i]
			s.Status = rapid.SampledFrom([]state.Status{state.Waiting, state.InProgress, state.Completed, state.Skipped, state.Failed}).Draw(t, "status")
			s.Since, s.Message, s.Kind, s.Skip = moment(), text.Draw(t, "message"), text.Draw(t, "kind"), text.Draw(t, "skip")
			if s.Attempts = rapid.IntRange(0, 300).Draw(t, "attempts"); s.Attempts > 0 {
				s.Current, s.Runner = layout.AttemptKey{N: 7, Engine: eng}, text.Draw(t, "runner")
				s.Waited, s.Ran, s.Failures = time.Minute, 1234*time.Millisecond, 2
			}
			s.Blocked, s.own.but, s.own.blocked = reason(), reason(), reason()
			s.own.control, s.own.skip, s.Children = reason(), text.Draw(t, "ownSkip"), rapid.IntRange(0, 3).Draw(t, "children")
			s.CPU = time.Duration(rapid.SampledFrom([]int64{0, 0, 1, 90_000}).Draw(t, "cpu")) * time.Millisecond
			s.Idle = time.Duration(rapid.SampledFrom([]int64{0, 0, 1, 90_000}).Draw(t, "idle")) * time.Millisecond
			s.Again = rapid.Bool().Draw(t, "again")
			s.Tried = []Tried{{State: state.Deferred, Ended: moment(), Waited: time.Second}, {State: state.Failed, Ended: moment(), Ran: 7 * time.Millisecond}}
			s.Ends = []End{{At: moment(), Attempt: layout.AttemptKey{N: 3, Engine: eng}, Failed: true}}
		}
		it.Runs = append(it.Runs, run)
	}
	for _, part := range []any{*it, Run{}, Step{}, Last{}, overlaid{}} {
		if n := reflect.TypeOf(part).NumField(); n != map[string]int{"Item": 14, "Run": 6, "Step": 14, "Last": 6, "overlaid": 4}[reflect.TypeOf(part).Name()] {
			t.Fatalf("%T has %d fields: pack the new one, set it here, and count it", part, n)
		}
	}
}
