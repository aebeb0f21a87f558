package queue

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/state"
	"bagpipe/layout"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

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
	if diff := a.Compare(b.View, now); len(diff) > 0 {
		t.Fatalf("%s", strings.Join(diff, "\n"))
	}
	itemsA, heldA, countA := a.Counts()
	itemsB, heldB, countB := b.Counts()
	if diff := cmp.Diff(countA, countB); diff != "" || itemsA != itemsB || heldA != heldB || a.Open() != b.Open() || !maps.Equal(a.Ahead(), b.Ahead()) {
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
		items := x.Compare(full.View, now)
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
		if _, err := New().Read(saved, nil, plans); !errors.Is(err, packed.ErrCheckpoint) {
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
	if _, err := s.WriteTo(&after); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before.Bytes(), after.Bytes()) {
		t.Error("the snapshot has changed")
	}
	if _, held, _ := x.Counts(); held != 100 {
		t.Errorf("%d held", held)
	}
}
