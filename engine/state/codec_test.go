package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"bagpipe/layout"

	"github.com/google/go-cmp/cmp"
)

func TestANewerSchemaIsRefused(t *testing.T) {
	var newer *layout.SchemaError
	if _, err := Decode([]byte(`{"schema": 2}`)); !errors.As(err, &newer) {
		t.Errorf("newer schema: %v", err)
	}
}

// Processor time is read as it was written, and written as it was read: the audit makes each
// record again.
func TestProcessorTimeIsReadAsItWasWritten(t *testing.T) {
	id, k := testID(t), layout.AttemptKey{N: 1, Engine: "24fdba93"}
	for n := range 3000 {
		for _, cpu := range []time.Duration{time.Duration(n) * time.Microsecond, time.Duration(n) * time.Millisecond} {
			x := &Execution{Item: id, Workflows: map[string]*Workflow{wf: {Name: "trial", Digest: "sha256:" + strings.Repeat("a", 64), StartedWith: "sha256:" + strings.Repeat("a", 64), Created: t0, Steps: map[layout.Name]*StepRecord{
				"unpack": {Attempts: map[layout.AttemptKey]Attempt{k: {State: Completed, Started: t0, Ended: t0, Yield: Yield{CPU: cpu, Idle: cpu}}}}}}}}
			written := x.Encode()
			read, err := Decode(written)
			if err != nil {
				t.Fatal(err)
			}
			if again := read.Encode(); !bytes.Equal(again, written) {
				t.Fatalf("%v is written anew as %s, and was %s", cpu, again, written)
			}
		}
	}
}

// enrich puts keys of a later version into every object of a record: the record
// itself, intents, workflows and their definitions, steps, attempts, progress.
func enrich(doc map[string]any, d dice) (keys int) {
	add := func(o map[string]any) {
		for range d(3) {
			o[pick(d, []string{"x", "State", "zeta 1", "é", `a"b`, "later\n", "Status", "", "a.b", "#", "\u2028"})] = pick(d, []any{
				nil, true, "réd <1>", json.Number("12.5"), json.Number("12345678901234567890"), json.Number("1e400"), []any{}, map[string]any{},
				[]any{json.Number("1"), "x", nil, []any{}}, map[string]any{"b": []any{map[string]any{"c": "\u0000"}}, "a": false}})
			keys++
		}
	}
	each := func(v any, f func(map[string]any)) {
		if o, ok := v.(map[string]any); ok {
			for _, k := range slices.Sorted(maps.Keys(o)) {
				f(o[k].(map[string]any))
			}
		}
	}
	add(doc)
	each(doc["intents"], add)
	each(doc["workflows"], func(w map[string]any) {
		add(w)
		add(w["definition"].(map[string]any))
		each(w["steps"], func(s map[string]any) {
			add(s)
			each(s["attempts"], func(a map[string]any) {
				add(a)
				if p, ok := a["progress"].(map[string]any); ok {
					add(p)
				}
			})
		})
	})
	return keys
}

// enriched is a drawn record with keys of a later version in it.
func enriched(t testing.TB, d dice, s *site) (x *Execution, in string, keys int) {
	t.Helper()
	var doc map[string]any
	r := json.NewDecoder(bytes.NewReader(s.x.Encode()))
	r.UseNumber()
	if err := r.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	keys = enrich(doc, d)
	data, err := layout.EncodeJSON(doc)
	if err != nil {
		t.Fatal(err)
	}
	if x, err = Decode(data); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	x.Manifest, x.Since, x.Around = s.x.Manifest, s.x.Since, s.around
	computeAll(s, x)
	return x, string(data), keys
}

// What this version does not know survives at every level: reading and writing,
// events, and a join with a copy that has none of it.
func TestCodecKeepsWhatItDoesNotKnow(t *testing.T) {
	all, happened := 0, 0
	for seed := range uint64(300) {
		keepsUnknown(t, seed, &all, &happened)
	}
	if all < 3000 || happened < 500 {
		t.Errorf("only %d unknown keys, and %d events upon them", all, happened)
	}
}

func keepsUnknown(t testing.TB, seed uint64, all, happened *int) {
	r := rand.New(rand.NewPCG(seed, 4))
	d := dice(func(n int) int { return r.IntN(n) })
	s := newSite(d, engineA, engineB)
	for range 40 {
		s.act(t, d)
	}
	x, in, keys := enriched(t, d, s)
	if got := string(x.Encode()); got != in {
		t.Fatalf("seed %d: %s", seed, cmp.Diff(in, got))
	}
	joined, err := Join(x, s.x)
	if err != nil {
		t.Fatal(err)
	}
	computeAll(s, joined)
	if got, want := unknownOf(joined, false), unknownOf(x, false); !got.holds(want) {
		t.Fatalf("seed %d: the join lost keys:\n%s", seed, cmp.Diff(want, got))
	}
	*all += keys
	for range 20 {
		before := unknownOf(x, true)
		ev := s.draw(d)
		plan := s.planFor(ev)
		if plan == nil && !isOfItem(ev) {
			continue
		}
		if _, err := Apply(x, plan, ev); err == nil {
			*happened++
		}
		if after := unknownOf(x, true); !after.holds(before) {
			t.Fatalf("seed %d: %T lost keys:\n%s", seed, ev, cmp.Diff(before, after))
		}
		s.x = x // the next event is drawn for what is now
	}
}

// levels are the unknown keys of a record, by their place.
type levels map[string]string

// holds reports whether all that was is there, but for attempts that an engine dropped
// and for those whose end their writer wrote anew.
func (l levels) holds(was levels) bool {
	for place := range was {
		if _, there := l[place]; !there {
			return false
		}
	}
	return true
}

// unknownOf lists them; without those of intents and attempts, which have one writer,
// so that of two copies either may be taken.
func unknownOf(x *Execution, all bool) levels {
	l := levels{}
	add := func(place string, u unknown) {
		for k, v := range u {
			l[place+"|"+k] = v
		}
	}
	add("", x.unknown)
	for k, i := range x.Intents {
		if all {
			add("intent "+string(k), i.unknown)
		}
	}
	for name, w := range x.Workflows {
		add(name, w.unknown)
		add(name+" definition", w.unknownOfDefinition)
		for step, s := range w.Steps {
			add(name+"/"+string(step), s.unknown)
			for k, a := range s.Attempts {
				if !all || a.State == Deferred || a.State == InProgress {
					continue // its engine may drop it, or write it anew
				}
				at := name + "/" + string(step) + " " + k.String()
				add(at, a.unknown)
				if a.Progress != nil {
					add(at+" progress", a.Progress.unknown)
				}
			}
		}
	}
	return l
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
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 5))
		d := dice(func(n int) int { return r.IntN(n) })
		s := newSite(d, engineA)
		for range 20 {
			s.act(f, d)
		}
		_, in, _ := enriched(f, d, s)
		f.Add([]byte(in))
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
		if missing := keysLost(data, x.Encode()); missing != "" {
			t.Fatalf("lost %s", missing)
		}
	})
}

// keysLost names a key of in that is not in out, at the same place: of any object but
// those whose values are computed, and of what is written only where it says something.
func keysLost(in, out []byte) string {
	var a, b any
	if json.Unmarshal(in, &a) != nil || json.Unmarshal(out, &b) != nil {
		return "" // a number that Go cannot hold
	}
	return keyLost("", a, b)
}

// leftOut are the known keys that are computed, or written only where they have a value.
var leftOut = map[string]bool{"ended": true, "elapsed": true, "kind": true, "notBefore": true, "claimed": true, "started": true, "runner": true, "version": true, "by": true,
	"message": true, "text": true, "children": true, "startedBy": true, "startedWith": true, "skip": true, "attempts": true, "percent": true, "note": true, "at": true,
	"workflow": true, "step": true, "attempt": true, "target": true, "digest": true, "status": true, "intents": true, "milestones": true, "workflows": true}

func keyLost(at string, a, b any) string {
	in, ok := a.(map[string]any)
	if !ok {
		return ""
	}
	out, _ := b.(map[string]any)
	for k, v := range in {
		w, there := out[k]
		if !there && !leftOut[k] {
			return at + "." + k
		}
		if there {
			if lost := keyLost(at+"."+k, v, w); lost != "" {
				return lost
			}
		}
	}
	return ""
}
