package search

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"bagpipe/engine/query"
)

// TestEdgesMeetAsTheyAre: the lists of a part's edges, and what the young part has, give the documents that meet a box and a span, also
// where an edge is just that of the question, or beside it by next to nothing, and where more documents than fit into a list have one value.
func TestEdgesMeetAsTheyAre(t *testing.T) {
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
		case 3:
			v *= math.Copysign(1, r.Float64()-0.5) // -0, too
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
	met, lists := 0, 0
	for range 100 {
		all := make([]reach, 1+r.IntN(4000))
		same := box() // which many have
		var w writer
		var reaches []byte
		for i := range all {
			all[i] = reach{bounds: box(), located: r.IntN(9) > 0, span: span(), timed: r.IntN(9) > 0}
			if r.IntN(2) == 0 {
				all[i].bounds = same
			}
			w.reaches(i, &all[i])
			reaches = all[i].appendReach(reaches)
		}
		q := query.Query{Span: span(), From: "x"}
		asked := box()
		if r.IntN(4) == 0 {
			asked = same
		}
		q.BBox = &asked
		upTo := [edges]set{}
		for e := range edges {
			packed := map[string][]byte{}
			packEdge(packed, e, w.edges[e])
			lists = max(lists, len(packed))
			keys := slices.Sorted(maps.Keys(packed))
			value := asking(q)[e]
			i, is := slices.BinarySearch(keys, string(e.append([]byte(edgeKey(e)), value)))
			if is {
				i++
			}
			for _, key := range keys[max(i-1, 0):i] {
				if err := upTo[e].addUpTo(packed[key], e, value); err != nil {
					t.Fatal(err)
				}
			}
			var known set
			var again []edged
			for _, key := range keys {
				if b := packed[key]; len(b) > pieceBytes+8 {
					t.Fatalf("the list at %x has %d bytes", key, len(b))
				}
				if err := e.unpack(e.read([]byte(key[len(edgeKey(e)):])), packed[key], &known, func(d edged) { again = append(again, d) }); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(again, w.edges[e]) { // which packEdge put in order
				t.Fatalf("of %d values of edge %d there are %d in the lists, or others", len(w.edges[e]), e, len(again))
			}
		}
		across := func() (*set, error) {
			s := &set{}
			for i := range all {
				if all[i].crosses() {
					s.add(i)
				}
			}
			return s, nil
		}
		for _, ask := range []struct{ box, time bool }{{true, false}, {false, true}, {true, true}} {
			q := q
			if !ask.box {
				q.BBox = nil
			}
			if !ask.time {
				q.From = ""
			}
			var part, young set
			for i := range all {
				part.add(i)
				young.add(i)
			}
			if err := part.meet(q, func(e edge, _ value) (*set, error) { s := upTo[e]; return &s, nil }, across); err != nil {
				t.Fatal(err)
			}
			for i := 0; i*reachPlaces < len(all); i++ {
				if err := young.reached(i, reaches[i*reachPlaces*reachBytes:min((i+1)*reachPlaces, len(all))*reachBytes], q); err != nil {
					t.Fatal(err)
				}
			}
			for i, of := range all {
				want := (!ask.box || of.located && of.bounds.Meets(asked)) && (!ask.time || of.timed && of.span.Meets(q.Span))
				if part.has(i) != want || young.has(i) != want {
					t.Fatalf("%+v in %v and %v: %v, and in the young part %v", of, q.BBox, q.Span, part.has(i), young.has(i))
				}
				if want {
					met++
				}
			}
		}
	}
	if met == 0 || lists < 4 {
		t.Fatalf("%d met, in %d lists", met, lists)
	}
}
