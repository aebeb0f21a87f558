package state

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"

	"bagpipe/layout"

	"github.com/google/go-cmp/cmp"
)

func TestCodecKeepsWhatItDoesNotKnow(t *testing.T) {
	d := trial(t)
	x := started(t, d)
	var doc map[string]any
	if err := json.Unmarshal(x.Encode(), &doc); err != nil {
		t.Fatal(err)
	}
	doc["later"] = map[string]any{"b": []any{1, "x", nil}, "a": true}
	w := doc["workflows"].(map[string]any)[wf].(map[string]any)
	w["colour"] = "réd <1>"
	w["steps"].(map[string]any)["unpack"].(map[string]any)["cost"] = 12.5
	in, err := layout.EncodeJSON(doc)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(in)
	if err != nil {
		t.Fatal(err)
	}
	got.Compute(wf, d)
	if string(got.Encode()) != string(in) {
		t.Error(cmp.Diff(string(in), string(got.Encode())))
	}
	var newer *layout.SchemaError
	if _, err := Decode([]byte(`{"schema": 2}`)); !errors.As(err, &newer) {
		t.Errorf("newer schema: %v", err)
	}
}

// A record from any history is read as it was written, statuses and all.
func TestCodecRoundTrip(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		d := dice(func(n int) int { return r.IntN(n) })
		s := newSite(d, engineA, engineB)
		for range 60 {
			s.act(t, d)
		}
		if back := s.fork(t, engineA); string(back.x.Encode()) != string(s.x.Encode()) {
			t.Fatalf("seed %d:\n%s", seed, cmp.Diff(string(s.x.Encode()), string(back.x.Encode())))
		}
	}
}

func FuzzDecode(f *testing.F) {
	d := trial(f)
	x := started(f, d)
	f.Add(x.Encode())
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		d := dice(func(n int) int { return r.IntN(n) })
		s := newSite(d, engineA)
		for range 40 {
			s.act(f, d)
		}
		f.Add(s.x.Encode())
	}
	f.Add([]byte(`{"item":"3fa9c0d2e1b7a45","workflows":{"a.1":{"definition":{"name":"a","digest":"b"},"steps":{"x":{"attempts":{"1-5c1e9a70":{"state":"failed"}}}}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Decode(x.Encode())
		if err != nil {
			t.Fatalf("own encoding is refused: %v\n%s", err, x.Encode())
		}
		if string(again.Encode()) != string(x.Encode()) {
			t.Fatal("encoding is not stable")
		}
	})
}
