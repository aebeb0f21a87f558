package state

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

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

// sameAsDecode fails unless the Scan and Decode make the same of a record. It reports
// whether they could read the record.
func sameAsDecode(t *testing.T, q *Scan, data []byte) bool {
	t.Helper()
	got, err := q.Decode(data)
	want, wantErr := Decode(data)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%v, and Decode says: %v\n%s", err, wantErr, data)
	}
	if err == nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("read otherwise than by Decode:\n%s\n%s", cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })), data)
	}
	return err == nil
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

// A Scan, whose memory is used again and again, reads every record as Decode does.
func TestScanIsDecode(t *testing.T) {
	q, damaged := &Scan{}, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 5))
		data := drivenRecord(t, r)
		if !sameAsDecode(t, q, data) {
			t.Fatalf("seed %d: a record of our own was refused", seed)
		}
		for range 60 {
			if !sameAsDecode(t, q, damage(r, data)) {
				damaged++
			}
		}
	}
	if damaged == 0 {
		t.Error("no damage was refused")
	}
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
	for len(data) < 2000 {
		data = drivenRecord(b, r)
	}
	b.Run("scan", func(b *testing.B) {
		for b.Loop() {
			if _, err := q.Decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("general", func(b *testing.B) {
		for b.Loop() {
			if _, err := Decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
