package fixity

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"bagpipe/layout"
)

// filledBook has items with two copies each, verified at random times of a year.
func filledBook(items int) (*book, time.Time) {
	b := &book{loaded: true, items: map[layout.ItemID][]lastLook{}, oldest: map[layout.Name]*looks{}}
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range items {
		d := layout.Deposits{}
		for _, name := range []layout.Name{"one", "two"} {
			d.Note(name, 1, layout.DepositCopy{Verified: now.Add(-time.Duration(random.IntN(365*24)) * time.Hour)})
		}
		b.put(layout.ItemID(fmt.Sprintf("%015x", i)), d)
	}
	return b, now
}

// The copies come in the order of their last looks, each item once, and again once it was put back
// or looked at.
func TestBookOrder(t *testing.T) {
	b, now := filledBook(1000)
	every := map[layout.Name]time.Duration{"one": 90 * 24 * time.Hour, "two": 30 * 24 * time.Hour}
	last, seen := time.Time{}, map[layout.ItemID]int{}
	var first *dueCopies
	for {
		d := b.next(now, every)
		if d == nil {
			break
		}
		if first == nil {
			first = d
		}
		if d.oldest.Before(last) || len(d.copies[d.target]) != 1 {
			t.Fatalf("%+v after %v", d, last)
		}
		last = d.oldest
		seen[d.item]++
		n := layout.Deposits{}
		for _, l := range b.items[d.item] {
			at := l.at
			if len(d.copies[l.target]) > 0 {
				at = now
			}
			n.Note(l.target, l.version, layout.DepositCopy{Verified: at})
		}
		b.put(d.item, n)
	}
	if len(seen) < 900 {
		t.Errorf("%d items of 1000 were due", len(seen))
	}
	b.again(first) // it was looked at meanwhile
	if d := b.next(now, every); d != nil {
		t.Errorf("%+v is due still", d)
	}
	b.put(first.item, layout.Deposits{})
	for _, l := range *b.oldest[first.target] {
		if l.item == first.item && b.holds(first.target, l) {
			t.Error("an item without copies is held")
		}
	}
}

// BenchmarkNextDue finds the next of 1,000,000 copies.
func BenchmarkNextDue(b *testing.B) {
	book, now := filledBook(500_000)
	every := map[layout.Name]time.Duration{"one": time.Hour, "two": time.Hour}
	for b.Loop() {
		d := book.next(now, every)
		if d == nil {
			b.Fatal("none")
		}
		book.again(d)
	}
}
