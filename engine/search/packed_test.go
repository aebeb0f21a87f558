package search

import (
	"math/rand/v2"
	"testing"
	"time"

	"bagpipe/engine/query"
)

// TestRoundedReachesMeetAsTheyAre: what is kept rounded is found as if it were not, also where an end is just that of the question, or
// beside it by less than is kept.
func TestRoundedReachesMeetAsTheyAre(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	coordinate := func(most float64) float64 {
		v := float64(r.IntN(21)-10) * most / 10
		switch r.IntN(4) {
		case 0:
			v += float64(r.IntN(5)-2) * 1e-9
		case 1:
			v += float64(r.IntN(5)-2) * 1e-7
		case 2:
			v = (r.Float64()*2 - 1) * most
		}
		return min(max(v, -most), most)
	}
	box := func() query.Box {
		s, n := coordinate(90), coordinate(90)
		b := query.Box{coordinate(180), min(s, n), coordinate(180), max(s, n)}
		if r.IntN(3) == 0 {
			b[2], b[3] = b[0], b[1]
		}
		return b
	}
	moment := func() time.Time {
		m := time.Unix(60*int64(r.IntN(21)-10), 0)
		switch r.IntN(5) {
		case 0:
			m = m.Add(time.Duration(r.IntN(5)-2) * time.Nanosecond)
		case 1:
			m = m.Add(time.Duration(r.IntN(5)-2) * time.Millisecond)
		case 2:
			m = m.Add(-time.Millisecond)
		case 3:
			m = []time.Time{{}, time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), m}[r.IntN(4)]
		}
		return m
	}
	span := func() query.Span {
		a, b := moment(), moment()
		if b.Before(a) {
			a, b = b, a
		}
		return query.Span{Start: a, End: b}
	}
	boxes, spans := 0, 0
	for range 300 {
		all := make([]reach, 200)
		var bounds, times, exact []byte
		for i := range all {
			all[i] = reach{bounds: box(), located: r.IntN(9) > 0, span: span(), timed: r.IntN(9) > 0}
			var a, b bool
			bounds, a = all[i].appendBounds(bounds)
			if times, b = all[i].appendTimes(times); a || b {
				exact = all[i].appendExact(exact, i)
			}
		}
		asked, when := box(), span()
		var near, then set
		for i := range all {
			near.add(i)
			then.add(i)
		}
		find := func(place int) (reach, error) {
			r, is := exacts(exact).find(place)
			if !is {
				return r, errOther
			}
			return r, nil
		}
		if err := near.within(0, bounds, asked, find); err != nil {
			t.Fatal(err)
		}
		if err := then.during(0, times, when, find); err != nil {
			t.Fatal(err)
		}
		for i, of := range all {
			want := of.located && of.bounds.Meets(asked)
			if near.has(i) != want {
				t.Fatalf("%v within %v: %v", of.bounds, asked, near.has(i))
			}
			boxes += int(bit(want))
			if want = of.timed && of.span.Meets(when); then.has(i) != want {
				t.Fatalf("%v during %v: %v", of.span, when, then.has(i))
			}
			spans += int(bit(want))
		}
	}
	if boxes == 0 || spans == 0 {
		t.Fatal("nothing met")
	}
}
