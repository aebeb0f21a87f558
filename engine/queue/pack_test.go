package queue

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// itemOptions compare items with what only this package sees of them.
var itemOptions = cmp.Options{cmp.AllowUnexported(Step{}), cmp.Comparer(func(a, b *state.Definition) bool { return a == b }),
	cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })}

// TestPackKeepsEverything: an item comes out of its bytes as it went in, but for the
// messages of completed steps. Every field is set at random, so that one that is new
// and not packed is found.
func TestPackKeepsEverything(t *testing.T) {
	d := plan(t)
	rapid.Check(t, func(t *rapid.T) {
		it := &Item{ID: layout.ItemIDOf(rapid.Uint64Range(0, 1<<56-1).Draw(t, "id"))}
		scramble(t, reflect.ValueOf(it).Elem(), d)
		n := newNames()
		b := pack(nil, n, it)
		got, ok := unpack(b, n, it.ID)
		if !ok {
			t.Fatal("damaged")
		}
		for r := range it.Runs {
			for i := range it.Runs[r].Steps {
				if s := &it.Runs[r].Steps[i]; s.Status == state.Completed {
					s.Message = ""
				}
			}
		}
		if diff := cmp.Diff(it, got, itemOptions...); diff != "" {
			t.Fatal(diff)
		}
		var g glance
		if !g.look(b) || g.traits != it.Traits() {
			t.Fatalf("traits %b, want %b", g.traits, it.Traits())
		}
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		if _, ok := unpack(b[:cut], n, it.ID); ok {
			t.Fatalf("cut at %d of %d it still is whole", cut, len(b))
		}
		if g.look(b[:cut]) {
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
			s.Blocked, s.own, s.ungated = reason(), reason(), reason()
			s.control, s.ownSkip, s.Children = reason(), text.Draw(t, "ownSkip"), rapid.IntRange(0, 3).Draw(t, "children")
			s.Again = rapid.Bool().Draw(t, "again")
			s.Tried = []Tried{{State: state.Deferred, Ended: moment(), Waited: time.Second}, {State: state.Failed, Ended: moment(), Ran: 7 * time.Millisecond}}
			s.Ends = []End{{At: moment(), Attempt: layout.AttemptKey{N: 3, Engine: eng}, Failed: true}}
		}
		it.Runs = append(it.Runs, run)
	}
	for _, part := range []any{*it, Run{}, Step{}} {
		if n := reflect.TypeOf(part).NumField(); n != map[string]int{"Item": 14, "Run": 6, "Step": 20}[reflect.TypeOf(part).Name()] {
			t.Fatalf("%T has %d fields: pack the new one, set it here, and count it", part, n)
		}
	}
}

// scanned is an index of a world by a full scan.
func scanned(w *world, now time.Time) *Index {
	x := newIndex()
	f := x.Fill()
	for i := range w.items {
		f.Put(w.item(i, now))
	}
	f.Done()
	return x
}

// same compares two indexes by everything they answer.
func same(t interface{ Fatalf(string, ...any) }, a, b *Index, now time.Time) {
	if diff := a.Compare(b, now); len(diff) > 0 {
		t.Fatalf("%s", strings.Join(diff, "\n"))
	}
	itemsA, heldA, countA := a.Counts()
	itemsB, heldB, countB := b.Counts()
	if diff := cmp.Diff(countA, countB); diff != "" || itemsA != itemsB || heldA != heldB || a.Open() != b.Open() || a.Ahead() != b.Ahead() {
		t.Fatalf("%d %d %s", itemsA-itemsB, heldA-heldB, diff)
	}
	readyA, waitsA := a.Queue(now, Question{})
	readyB, waitsB := b.Queue(now, Question{})
	if len(readyA) != len(readyB) || len(waitsA) != len(waitsB) {
		t.Fatalf("%d and %d ready, %d and %d wait", len(readyA), len(readyB), len(waitsA), len(waitsB))
	}
}

// TestEveryWayToTheIndexIsTheSame: item by item, from a scan, and from a checkpoint
// that is some events old, the index is the same; a damaged checkpoint is refused.
func TestEveryWayToTheIndexIsTheSame(t *testing.T) {
	d := plan(t)
	plans := func(string) *state.Definition { return d }
	rapid.Check(t, func(t *rapid.T) {
		w := &world{plan: d}
		random := rand.New(rand.NewSource(int64(rapid.Int32().Draw(t, "seed"))))
		x, now := newIndex(), t0
		var saved []byte
		since := map[int]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "s")) * time.Second)
			i := len(w.items) - 1
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case len(w.items) == 0 || what == 0:
				w.add(t, random, rapid.IntRange(0, 2).Draw(t, "rank"))
				i++
			case what == 1:
				saved, since = checkpoint(t, x), map[int]bool{}
				continue
			case what == 2:
				if e, ok, _ := x.Take(now, nil); ok && rapid.Bool().Draw(t, "return") {
					x.Return(e)
				}
				continue
			default:
				i = rapid.IntRange(0, i).Draw(t, "item")
				happen(t, w, i, now, random)
			}
			since[i] = true
			x.Put(w.item(i, now))
		}
		full := scanned(w, now)
		items := x.Compare(full, now)
		if len(items) > 0 {
			t.Fatalf("%s", strings.Join(items, "\n"))
		}
		if saved == nil {
			return
		}
		again := newIndex()
		if tree, err := again.Read(saved, nil, plans); err != nil || tree != "tree" {
			t.Fatalf("%s, %v", tree, err)
		}
		f := again.Fill()
		for i := range since {
			f.Put(w.item(i, now))
		}
		f.Done()
		again.Settle(now)
		full.Settle(now)
		same(t, again, full, now)

		at := rapid.IntRange(0, len(saved)-1).Draw(t, "at")
		if rapid.Bool().Draw(t, "flip") {
			saved[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		} else {
			saved = saved[:at]
		}
		if _, err := New().Read(saved, nil, plans); !errors.Is(err, ErrCheckpoint) {
			t.Fatalf("a damaged checkpoint was taken: %v", err)
		}
	})
}

func checkpoint(t interface{ Fatal(...any) }, x *Index) []byte {
	s, ok := x.Snapshot("tree", nil)
	if !ok {
		t.Fatal("no snapshot")
	}
	var out bytes.Buffer
	if _, err := s.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A snapshot does not change with the index it was made of.
func TestSnapshotStays(t *testing.T) {
	w := &world{plan: plan(t)}
	random := rand.New(rand.NewSource(1))
	x := newIndex()
	for i := range 100 {
		w.add(t, random, 0)
		x.Put(w.item(i, t0))
	}
	s, _ := x.Snapshot("tree", nil)
	var before, after bytes.Buffer
	if _, err := s.WriteTo(&before); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := state.Apply(w.items[i], w.plan, state.Hold{Key: layout.IntentKey(fmt.Sprint(i)), At: t0, Text: "so"}); err != nil {
			t.Fatal(err)
		}
		x.Put(w.item(i, t0))
	}
	x.Remove(w.items[0].Item)
	if _, err := s.WriteTo(&after); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before.Bytes(), after.Bytes()) {
		t.Error("the snapshot has changed")
	}
	if _, held, _ := x.Counts(); held != 99 {
		t.Errorf("%d held", held)
	}
}
