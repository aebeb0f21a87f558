package state

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"bagpipe/layout"

	"github.com/google/go-cmp/cmp"
)

// drivenRecord is the record of an item that went through any history.
func drivenRecord(t testing.TB, r *rand.Rand) []byte {
	d := dice(func(n int) int { return r.IntN(n) })
	s := newSite(d, engineA, engineB)
	for range r.IntN(60) {
		s.act(t, d)
	}
	return s.x.Encode()
}

// sameAsDecode reports whether the Scan took the record, and fails unless Decode makes
// the same of it.
func sameAsDecode(t *testing.T, q *Scan, data []byte) bool {
	t.Helper()
	got, ok := q.read(data)
	if !ok {
		return false
	}
	want, err := decode(data)
	if err != nil {
		t.Fatalf("taken, and Decode says: %v\n%s", err, data)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("taken otherwise than by Decode:\n%s\n%s", cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })), data)
	}
	return true
}

// damage changes a few bytes, or lines, of a record.
func damage(r *rand.Rand, data []byte) []byte {
	data = bytes.Clone(data)
	lines := bytes.SplitAfter(data, []byte("\n"))
	switch i, k := r.IntN(len(lines)), r.IntN(len(lines)); r.IntN(6) {
	case 0:
		lines[i] = lines[k]
	case 1:
		lines[i], lines[k] = lines[k], lines[i]
	case 2:
		lines[i] = nil
	case 3:
		return data[:r.IntN(len(data))]
	case 4:
		data[r.IntN(len(data))] = byte(r.IntN(256))
		return data
	case 5:
		at := r.IntN(len(data))
		bit := []string{`"`, `\"`, `\u0041`, "0", ".", "-", "e3", "null", "{}", ",", " ", `"x": 1,`, "9999", "é", "\xff"}
		return append(append(bytes.Clone(data[:at]), bit[r.IntN(len(bit))]...), data[at:]...)
	}
	return bytes.Join(lines, nil)
}

// A Scan, whose memory is used again and again, reads every record as Decode does,
// or leaves it to Decode.
func TestScanIsDecode(t *testing.T) {
	q, taken, all := &Scan{}, 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 5))
		data := drivenRecord(t, r)
		if sameAsDecode(t, q, data) {
			taken++
		}
		all++
		for range 60 {
			sameAsDecode(t, q, damage(r, data))
		}
	}
	if taken < all/2 {
		t.Errorf("of %d records of our own only %d were taken", all, taken)
	}
}

// What DecodeNew leaves out of a record is as in the one before it; the rest is as Decode reads it. What events
// made of the one before encodes to the record, and to nothing else; no event alters an intent.
func TestDecodeNewLeavesOutWhatIsAsBefore(t *testing.T) {
	q, left := &Scan{}, 0
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 11))
		d := dice(func(n int) int { return r.IntN(n) })
		s := newSite(d, engineA, engineB)
		var o Outline
		before, intents := &Execution{}, map[layout.IntentKey]Intent{}
		for range 30 {
			s.act(t, d)
			data := s.x.Encode()
			for k, was := range intents {
				if is := s.x.Intents[k]; !reflect.DeepEqual(is, was) {
					t.Fatalf("an event altered intent %s: %+v, was %+v", k, is, was)
				}
			}
			intents = maps.Clone(s.x.Intents)
			other, copied := damage(r, data), o
			copied.intents, copied.flows, copied.steps = slices.Clone(o.intents), slices.Clone(o.flows), slices.Clone(o.steps)
			left += leavesOut(t, q, other, &copied, before)
			if EncodesAs(s.x, other, &copied) != bytes.Equal(other, data) {
				t.Fatalf("of two records\n%s\n%s\nit does not tell which it encodes to", data, other)
			}
			left += leavesOut(t, q, data, &o, before)
			if !EncodesAs(s.x, data, &o) || !EncodesAs(s.x, data, nil) {
				t.Fatalf("it does not encode as itself:\n%s", data)
			}
			before, _ = decode(data)
		}
	}
	if left < 5_000 {
		t.Errorf("only %d intents, steps and workflows were left out", left)
	}
}

// leavesOut counts what DecodeNew leaves out of a record, and fails where that, or what it gives, is not as Decode
// reads it.
func leavesOut(t *testing.T, q *Scan, data []byte, o *Outline, before *Execution) (left int) {
	t.Helper()
	want, errWant := decode(data)
	x, err := q.DecodeNew(data, o)
	if err != nil || errWant != nil {
		if (err == nil) != (errWant == nil) {
			t.Fatalf("%v, and Decode says: %v\n%s", err, errWant, data)
		}
		return 0
	}
	as := func(what string, is, was any) {
		t.Helper()
		if !reflect.DeepEqual(is, was) {
			t.Fatalf("%s is\n%+v\nand not\n%+v\n%s", what, is, was, data)
		}
	}
	for k, in := range want.Intents {
		is, there := x.Intents[k]
		if !there {
			left++
			is = before.Intents[k]
		}
		as("intent "+string(k), is, in)
	}
	for name, w := range want.Workflows {
		is, was := x.Workflows[name], before.Workflows[name]
		if is == nil {
			left++
			is = was
		}
		rest, wanted := *is, *w
		rest.Steps, wanted.Steps, rest.Digest, wanted.Digest = nil, nil, "", ""
		as(name, rest, wanted)
		for step, r := range w.Steps {
			of := is.Steps[step]
			if of == nil {
				left++
				of = was.Steps[step]
			}
			as(name+"/"+string(step), of, r)
		}
	}
	for k := range x.Intents {
		if _, there := want.Intents[k]; !there {
			t.Fatalf("intent %s is not in\n%s", k, data)
		}
	}
	return left
}

// A record that Decode gave stays as it is, whatever is read after it.
func TestDecodedIsKept(t *testing.T) {
	kept := map[string]*Execution{}
	for seed := range uint64(50) {
		data := drivenRecord(t, rand.New(rand.NewPCG(seed, 8)))
		x, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		kept[string(data)] = x
	}
	for data, x := range kept {
		want, err := decode([]byte(data))
		if err != nil || !reflect.DeepEqual(x, want) {
			t.Fatalf("it changed (%v):\n%s", err, cmp.Diff(want, x, cmp.Exporter(func(reflect.Type) bool { return true })))
		}
	}
}

// What a record is refused for, the general reader reads.
func TestScanFallsBack(t *testing.T) {
	q := &Scan{}
	r := rand.New(rand.NewPCG(1, 1))
	data := drivenRecord(t, r)
	for len(data) < 1000 || !sameAsDecode(t, q, data) {
		data = drivenRecord(t, r)
	}
	for _, change := range [][2]string{{`"schema": 1`, `"later": {"a": [1]}, "schema": 1`}, {`"status": "`, `"remark": "x", "status": "`},
		{`"intents"`, `"\u0069ntents"`}} {
		other := []byte(strings.Replace(string(data), change[0], change[1], 1))
		if _, ok := q.read(other); ok {
			t.Errorf("%s was taken", change[1])
		}
		want, err := decode(other)
		if err != nil {
			t.Fatal(err)
		}
		got, err := q.Decode(other)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n%s", change[1], err, got.Encode())
		}
	}
	newer := []byte(strings.Replace(string(data), `"schema": 1`, `"schema": 99`, 1))
	var schema *layout.SchemaError
	if _, err := q.Decode(newer); !asSchema(err, &schema) {
		t.Errorf("a newer schema: %v", err)
	}
}

func asSchema(err error, to **layout.SchemaError) (is bool) {
	*to, is = err.(*layout.SchemaError)
	return is
}

func FuzzScan(f *testing.F) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 6))
		data := drivenRecord(f, r)
		f.Add(data)
		f.Add(damage(r, data))
	}
	q := &Scan{}
	f.Fuzz(func(t *testing.T, data []byte) { sameAsDecode(t, q, data) })
}

func BenchmarkDecode(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 3))
	q, data := &Scan{}, []byte{}
	for ok := false; len(data) < 2000 || !ok; _, ok = q.read(data) {
		data = drivenRecord(b, r)
	}
	b.Run("scan", func(b *testing.B) {
		for b.Loop() {
			if _, ok := q.read(data); !ok {
				b.Fatal("refused")
			}
		}
	})
	b.Run("kept", func(b *testing.B) {
		for b.Loop() {
			if _, err := Decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("general", func(b *testing.B) {
		for b.Loop() {
			if _, err := decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Each field of an attempt counts when two are compared.
func TestSameAttempts(t *testing.T) {
	var fields []reflect.StructField
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Attempt]()) {
		if !f.Anonymous {
			fields = append(fields, f)
		}
	}
	values := map[reflect.Type]any{reflect.TypeFor[time.Time](): t0, reflect.TypeFor[*Progress](): &Progress{Note: "page 3"}, reflect.TypeFor[[]layout.Name](): []layout.Name{},
		reflect.TypeFor[Status](): Failed, reflect.TypeFor[string](): "a", reflect.TypeFor[float64](): 1.5, reflect.TypeFor[int](): 3, reflect.TypeFor[bool](): true, reflect.TypeFor[time.Duration](): time.Second}
	for _, f := range fields {
		a, b := Attempt{}, Attempt{}
		if f.Name == "unknown" {
			b.unknown = unknown{"later": "1"}
		} else {
			reflect.ValueOf(&b).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(values[f.Type]))
		}
		if a.Same(&b) || b.Same(&a) || !b.Same(&b) {
			t.Errorf("%s is not compared", f.Name)
		}
	}
}

// A record whose intents bear on no status is computed without them as with them.
func TestRecomputeIsComputeOfEach(t *testing.T) {
	without := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 13))
		d := dice(func(n int) int { return r.IntN(n) })
		s := newSite(d, engineA)
		for range r.IntN(12) {
			s.act(t, d)
		}
		if seed%2 == 0 {
			s.x.Intents = map[layout.IntentKey]Intent{"k": {Kind: []string{HoldIntent, ReleaseIntent, RemarkIntent, OwnIntent}[r.IntN(4)], At: s.now}}
		}
		data := s.x.Encode()
		x, errX := Decode(data)
		y, errY := Decode(data)
		if errX != nil || errY != nil {
			t.Fatal(errX, errY)
		}
		if len(x.Intents) > 0 && !hasMoving(x.Intents) {
			without++
		}
		plans := func(digest string) *Definition {
			for _, def := range s.defs {
				if def.Digest == digest {
					return def
				}
			}
			return nil
		}
		x.Recompute(plans)
		for name, w := range y.Workflows {
			y.Compute(name, plans(w.Digest))
		}
		if is, want := x.Encode(), y.Encode(); !bytes.Equal(is, want) {
			t.Fatalf("it is\n%s\nand not\n%s", is, want)
		}
	}
	if without < 150 {
		t.Errorf("only %d records had such intents alone", without)
	}
}
