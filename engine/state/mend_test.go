package state

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"bagpipe/layout"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// plansOf knows one definition.
func plansOf(d *Definition) Plans {
	return func(digest string) *Definition {
		if digest == d.Digest {
			return d
		}
		return nil
	}
}

// copyOf is a record as read from its file.
func copyOf(t interface {
	Helper()
	Fatal(...any)
}, x *Execution) *Execution {
	t.Helper()
	out, err := Decode(x.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// halfDone has a completed unpack, a running ocr and a hold.
func halfDone(t *testing.T, d *Definition) *Execution {
	x := started(t, d)
	run(t, x, d, "unpack", End{State: Completed})
	for _, ev := range []Event{
		Claim{Workflow: wf, Step: "ocr", Attempt: layout.AttemptKey{N: 1, Engine: engineB}, At: t0, Runner: "h:2"},
		Hold{Key: "01-A", At: t0, By: "P", Text: "rights"},
	} {
		if _, err := Apply(x, d, ev); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func TestMendPutsRight(t *testing.T) {
	d := trial(t)
	other := layout.AttemptKey{N: 7, Engine: "cccccccc"}
	one := layout.AttemptKey{N: 1, Engine: engineA}
	at := func(x *Execution, step layout.Name) *StepRecord { _, s := x.Find(wf, step); return s }
	done := Attempt{State: Completed, Started: t0, Ended: t0, By: "x"}
	for _, c := range []struct {
		name, want string
		tamper     func(x *Execution)
	}{
		{"attempt removed", "removed attempt 1-5c1e9a70 (completed) of trial.1/unpack", func(x *Execution) { delete(at(x, "unpack").Attempts, one) }},
		{"running attempt removed", "removed attempt 1-b0b0b0b0 (in-progress) of trial.1/ocr", func(x *Execution) { at(x, "ocr").Attempts = nil }},
		{"step removed", "removed attempt 1-5c1e9a70", func(x *Execution) { delete(x.Workflows[wf].Steps, "unpack") }},
		{"ended attempt altered", "changed attempt 1-5c1e9a70 (completed)", func(x *Execution) {
			a := at(x, "unpack").Attempts[one]
			a.Message = "zzz"
			at(x, "unpack").Attempts[one] = a
		}},
		{"ended attempt begun again", "changed attempt 1-5c1e9a70 (completed)", func(x *Execution) { at(x, "unpack").Attempts[one] = Attempt{State: InProgress, Claimed: t0} }},
		{"running attempt of another runner", "changed attempt 1-b0b0b0b0 (in-progress)", func(x *Execution) {
			at(x, "ocr").Attempts[layout.AttemptKey{N: 1, Engine: engineB}] = Attempt{State: Completed, Ended: t0, Runner: "elsewhere:1"}
		}},
		{"running attempt claimed at another time", "changed attempt 1-b0b0b0b0 (in-progress)", func(x *Execution) {
			k := layout.AttemptKey{N: 1, Engine: engineB}
			a := at(x, "ocr").Attempts[k]
			a.Progress, a.Claimed = &Progress{At: t0, Percent: 5}, t0.Add(time.Second)
			at(x, "ocr").Attempts[k] = a
		}},
		{"hold removed", "removed the hold of 2026-11-20T10:00:00Z by P", func(x *Execution) { delete(x.Intents, "01-A") }},
		{"hold altered", "changed the hold", func(x *Execution) { i := x.Intents["01-A"]; i.Kind = "note"; x.Intents["01-A"] = i }},
		{"retry of nothing", "added the retry", func(x *Execution) {
			x.Intents["02-A"] = Intent{Kind: RetryIntent, At: t0, By: "P", Workflow: wf, Step: "unpack", Attempt: layout.AttemptKey{N: 99, Engine: engineA}}
		}},
		{"milestone removed", "removed the milestone registered", func(x *Execution) { delete(x.Milestones, "registered") }},
		{"milestone later", "changed the milestone registered", func(x *Execution) { x.Milestones["registered"] = t0.Add(time.Hour) }},
		{"milestone earlier", "changed the milestone registered", func(x *Execution) { x.Milestones["registered"] = t0.Add(-time.Hour) }},
		{"milestone made up", "added the milestone archived, which no step reached", func(x *Execution) { x.Milestones["archived"] = t0.Add(-time.Hour) }},
		{"workflow removed", "removed workflow trial.1", func(x *Execution) { delete(x.Workflows, wf) }},
		{"workflow by another definition", "changed the definition", func(x *Execution) { x.Workflows[wf].Digest, x.Workflows[wf].StartedWith = "sha256:ff", "sha256:ff" }},
		{"step not needed after all", "the steps not needed", func(x *Execution) { x.Workflows[wf].Skip = map[layout.Name]string{"store": "no"} }},
		{"workflow without definition", "added workflow trial.2, whose definition is not to be found", func(x *Execution) {
			x.Workflows["trial.2"] = &Workflow{Name: "trial", Digest: "sha256:ff", StartedWith: "sha256:ff", Created: t0}
		}},
		{"workflow of another name", "added workflow other.1, whose definition is that of trial", func(x *Execution) {
			x.Workflows["other.1"] = &Workflow{Name: "other", Digest: d.Digest, StartedWith: d.Digest, Created: t0}
		}},
		{"migration to nowhere", "added the migrate of 2026-11-20T10:00:00Z by P, to a definition that is not to be found", func(x *Execution) {
			x.Intents["03-A"] = Intent{Kind: MigrateIntent, At: t0, By: "P", Workflow: wf, Digest: "sha256:ff"}
		}},
		{"reset of nothing", "added the reset", func(x *Execution) {
			x.Intents["03-A"] = Intent{Kind: ResetIntent, At: t0, By: "P", Workflow: wf, Step: "unpack", Attempt: layout.AttemptKey{N: 99, Engine: engineA}}
		}},
		{"step out of order", "added attempt 7-cccccccc (completed) of trial.1/approve, which waits for thumbs", func(x *Execution) { at(x, "approve").put(other, done) }},
		{"chain out of order", "of trial.1/store, which waits for approve", func(x *Execution) { at(x, "approve").put(other, done); at(x, "store").put(other, done) }},
		{"step of no definition", "which is not in the definition", func(x *Execution) {
			x.Workflows[wf].Steps["extra"] = &StepRecord{Attempts: map[layout.AttemptKey]Attempt{other: done}}
		}},
		{"number too high", "whose number is too high", func(x *Execution) {
			at(x, "unpack").put(layout.AttemptKey{N: layout.MaxAttempt, Engine: engineB}, done)
		}},
	} {
		before := copyOf(t, halfDone(t, d))
		now := copyOf(t, before)
		c.tamper(now)
		mended, breaches := Mend(before, copyOf(t, now), plansOf(d))
		if !strings.Contains(strings.Join(breaches, "; "), c.want) {
			t.Errorf("%s: %q, want %q", c.name, breaches, c.want)
		}
		before.Recompute(plansOf(d))
		if diff := cmp.Diff(string(before.Encode()), string(mended.Encode())); diff != "" {
			t.Errorf("%s: not as before:\n%s", c.name, diff)
		}
	}
}

func TestMendTakesWhatIsLegal(t *testing.T) {
	d := trial(t)
	for name, change := range map[string]func(x *Execution){
		"a hold":    func(x *Execution) { x.Intents["02-B"] = Intent{Kind: HoldIntent, At: t0, By: "P"} },
		"a release": func(x *Execution) { x.Intents["02-B"] = Intent{Kind: ReleaseIntent, At: t0, By: "P", Target: "01-A"} },
		"another's step": func(x *Execution) {
			_, s := x.Find(wf, "thumbs")
			s.put(layout.AttemptKey{N: 1, Engine: "cccccccc"}, Attempt{State: Completed, Started: t0, Ended: t0, Runner: "h:3"})
		},
		"a running ended": func(x *Execution) {
			_, s := x.Find(wf, "ocr")
			s.put(layout.AttemptKey{N: 1, Engine: engineB}, Attempt{State: Failed, Claimed: t0, Runner: "h:2", Kind: SystemKind, Started: t0, Ended: t0})
		},
		"a running came on": func(x *Execution) {
			k := layout.AttemptKey{N: 1, Engine: engineB}
			_, s := x.Find(wf, "ocr")
			a := s.Attempts[k]
			a.Progress = &Progress{At: t0, Note: "page 12", Percent: 40}
			s.put(k, a)
		},
		"dropped by its own": func(x *Execution) {
			_, s := x.Find(wf, "ocr")
			s.Attempts = map[layout.AttemptKey]Attempt{{N: 2, Engine: engineB}: {State: InProgress, Claimed: t0, Runner: "h:2"}}
		},
		"another workflow": func(x *Execution) {
			x.Workflows["trial.2"] = &Workflow{Name: "trial", Digest: d.Digest, StartedWith: d.Digest, Created: t0, Steps: map[layout.Name]*StepRecord{}}
		},
	} {
		before := copyOf(t, halfDone(t, d))
		now := copyOf(t, before)
		change(now)
		now = copyOf(t, now)
		if mended, breaches := Mend(before, now, plansOf(d)); mended != now {
			t.Errorf("%s: %q", name, breaches)
		}
	}
}

func TestForgedAndProgressed(t *testing.T) {
	d := trial(t)
	before := halfDone(t, d)
	now := copyOf(t, before)
	_, s := now.Find(wf, "ocr")
	s.put(layout.AttemptKey{N: 1, Engine: engineB}, Attempt{State: Completed, Claimed: t0, Runner: "h:2", Ended: t0})
	if got := Forged(before, now, engineB); len(got) != 1 || !strings.Contains(got[0], "1-b0b0b0b0 (completed) of trial.1/ocr") {
		t.Errorf("forged: %q", got)
	}
	if got := Forged(before, now, engineA); got != nil {
		t.Errorf("forged in another's name: %q", got)
	}
	if !Progressed(before, now) || Progressed(before, before) {
		t.Error("progress is a new completed attempt")
	}
}

// What engines do, and any join of it, needs no mending; so mended records are no
// cause for others to mend.
func TestMendLeavesLegalHistoriesAlone(t *testing.T) {
	d := trial(t)
	root := started(t, d)
	rapid.Check(t, func(t *rapid.T) {
		base := drawExecution(t, d, root, engineA, "base")
		a := drawExecution(t, d, base, engineA, "a")
		b := drawExecution(t, d, base, engineB, "b")
		for name, now := range map[string]*Execution{"own": a, "join": joined(t, d, a, b)} {
			for _, before := range []*Execution{base, a} {
				if _, breaches := Mend(copyOf(t, before), copyOf(t, now), plansOf(d)); len(breaches) > 0 {
					t.Fatalf("%s: %q\nbefore %s\nnow %s", name, breaches, before.Encode(), now.Encode())
				}
			}
		}
	})
}

// Whatever is done to a record, all that was acknowledged is in the mended one;
// mending again changes nothing, and so does any other writer's mending of it.
func TestMendLosesNothing(t *testing.T) {
	d := trial(t)
	root := started(t, d)
	rapid.Check(t, func(t *rapid.T) {
		before := copyOf(t, drawExecution(t, d, root, engineA, "before"))
		now := copyOf(t, drawExecution(t, d, before, engineB, "meanwhile"))
		tamper(t, now)
		now = copyOf(t, now)
		mended, breaches := Mend(before, now, plansOf(d))
		if held := holdsAll(mended, before); held != "" {
			t.Fatalf("%s is not in the mended record (%q)\nbefore %s\nnow %s\nmended %s", held, breaches, before.Encode(), now.Encode(), mended.Encode())
		}
		mended = copyOf(t, mended)
		for name, was := range map[string]*Execution{"before": before, "mended": mended} {
			if _, again := Mend(was, copyOf(t, mended), plansOf(d)); len(again) > 0 {
				t.Fatalf("mended again, from %s: %q\n%s", name, again, mended.Encode())
			}
		}
	})
}

// holdsAll names what of before is not in x as it was.
func holdsAll(x, before *Execution) string {
	for k, i := range before.Intents {
		if got, there := x.Intents[k]; !there || string(got.encode(nil)) != string(i.encode(nil)) {
			return "intent " + string(k)
		}
	}
	for n, at := range before.Milestones {
		if got, there := x.Milestones[n]; !there || got.After(at) {
			return "milestone " + string(n)
		}
	}
	for name, w := range before.Workflows {
		for step, s := range w.Steps {
			for k, a := range s.Attempts {
				got, there := x.attempt(name, step, k)
				if a.open() && !there {
					continue
				}
				if !there || !follows(a, got) {
					return "attempt " + k.String() + " of " + string(step)
				}
			}
		}
	}
	return ""
}

// tamper removes, alters and makes up, at random.
func tamper(t *rapid.T, x *Execution) {
	w := x.Workflows[wf]
	for range rapid.IntRange(1, 6).Draw(t, "tampers") {
		step := rapid.SampledFrom([]layout.Name{"register", "unpack", "ocr", "thumbs", "approve", "store", "extra"}).Draw(t, "at")
		s := w.Steps[step]
		if s == nil {
			s = &StepRecord{}
			w.Steps[step] = s
		}
		keys := s.Keys()
		key := layout.AttemptKey{N: rapid.IntRange(1, 4).Draw(t, "n"), Engine: rapid.SampledFrom([]layout.EngineID{engineA, engineB, "cccccccc"}).Draw(t, "engine")}
		end := rapid.SampledFrom([]Status{InProgress, Completed, Skipped, Failed, Deferred}).Draw(t, "state")
		switch rapid.IntRange(0, 7).Draw(t, "how") {
		case 0:
			delete(w.Steps, step)
		case 1:
			if len(keys) > 0 {
				delete(s.Attempts, keys[0])
			}
		case 2:
			if len(keys) > 0 {
				a := s.Attempts[keys[0]]
				a.State, a.Message = end, "tampered"
				s.Attempts[keys[0]] = a
			}
		case 3:
			s.put(key, Attempt{State: end, Claimed: t0, Ended: t0, Runner: "x:1"})
		case 4:
			for k := range x.Intents {
				delete(x.Intents, k)
			}
		case 5:
			x.Milestones[rapid.SampledFrom([]layout.Name{"registered", "approved", "archived"}).Draw(t, "m")] = t0.Add(time.Duration(rapid.IntRange(-5, 5).Draw(t, "by")) * time.Second)
		case 6:
			w.NotBefore = t0.Add(time.Hour)
		case 7:
			x.Intents[layout.IntentKey("zz-"+string(key.Engine))] = Intent{Kind: RetryIntent, At: t0, By: "x", Workflow: wf, Step: "unpack", Attempt: key}
		}
	}
}

const manifestText = `{"schema": 1, "item": "ITEM", "version": 1, "collection": "default", "label": "a", "lane": "normal",
 "created": "2026-11-20T10:00:00Z", "source": {"name": "a", "kind": "file", "files": 1, "bytes": 2, "digest": "sha256:aa", "taken": "2026-11-20T10:00:00Z", "by": "A"},
 "metadata": {}, "inventory": {"digest": "sha256:bb", "files": 1, "bytes": 2}}`

func TestMendManifest(t *testing.T) {
	before := strings.Replace(manifestText, "ITEM", string(testID(t)), 1)
	for _, c := range []struct{ old, new, want string }{
		{`"label": "a"`, `"label": "better"`, ""},
		{`"metadata": {}`, `"metadata": {"note": 1}, "x": 2`, ""},
		{`"lane": "normal"`, `"lane": "urgent"`, ""},
		{`"lane": "normal"`, `"lane": "../up"`, "changed lane in manifest.json"},
		{`"metadata": {}`, `"type": "map", "identifiers": {"barcode": "1"}, "metadata": {}`, ""},
		{`"metadata": {}`, `"recognition": {"verdict": "yes", "rule": "a/b"}, "metadata": {}`, "changed recognition in manifest.json"},
		{`"version": 1`, `"version": 2`, "changed version in manifest.json"},
		{`"digest": "sha256:aa"`, `"digest": "sha256:ff"`, "changed source.digest in manifest.json"},
		{`"label": "a"`, `"label": "a", "parent": {"item": "ITEM", "workflow": "w.1", "step": "s", "name": "n", "generation": 1}`, "changed parent in manifest.json"},
		{`"digest": "sha256:bb"`, `"digest": "sha256:ff"`, "changed inventory.digest in manifest.json"},
		{`, "inventory": {"digest": "sha256:bb", "files": 1, "bytes": 2}`, ``, "changed inventory in manifest.json"},
		{`"metadata": {}`, `"Source": {"digest": "sha256:ff"}, "metadata": {}`, "changed what the item is"},
		{`"label": "a"`, `"label": 5`, "cannot be used"},
		{`"schema": 1`, `"schema": 99`, "schema 99 is newer"},
		{`{"schema"`, `oops{"schema"`, "cannot be used"},
	} {
		now := strings.Replace(before, c.old, strings.Replace(c.new, "ITEM", string(testID(t)), 1), 1)
		mended, breaches := MendManifest([]byte(before), []byte(now), false, false)
		if c.want == "" {
			if len(breaches) > 0 || string(mended) != now {
				t.Errorf("%s: refused: %q", c.new, breaches)
			}
			continue
		}
		if !strings.Contains(strings.Join(breaches, "; "), c.want) {
			t.Errorf("%s: %q, want %q", c.new, breaches, c.want)
		}
		if again, more := MendManifest([]byte(before), mended, false, false); len(more) > 0 || string(again) != string(mended) {
			t.Errorf("%s: mended again: %q", c.new, more)
		}
	}
	// Mending keeps what may be changed.
	now := strings.Replace(strings.Replace(before, `"label": "a"`, `"label": "better"`, 1), "sha256:aa", "sha256:ff", 1)
	mended, _ := MendManifest([]byte(before), []byte(now), false, false)
	var m struct{ Label string }
	if err := json.Unmarshal(mended, &m); err != nil || m.Label != "better" {
		t.Errorf("the label is %q: %v", m.Label, err)
	}
	renewed := strings.Replace(before, "sha256:bb", "sha256:cc", 1)
	if _, breaches := MendManifest([]byte(before), []byte(renewed), true, false); len(breaches) > 0 {
		t.Errorf("a new inventory: %q", breaches)
	}
}

// The same of histories with every event there is: several workflows, resets,
// migrations, internal errors.
func TestMendLeavesLegalWorldsAlone(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 4))
		d := dice(func(n int) int { return r.IntN(n) })
		base := newSite(d, engineA)
		for range 25 {
			base.act(t, d)
		}
		a, b := base.fork(t, engineA), base.fork(t, engineB)
		for range 40 {
			pick(d, []*site{a, b}).act(t, d)
		}
		plans := func(digest string) *Definition {
			for _, def := range base.defs {
				if def.Digest == digest {
					return def
				}
			}
			return nil
		}
		united, err := Join(a.x, b.x)
		if err != nil {
			t.Fatal(err)
		}
		computeAll(base, united)
		for name, now := range map[string]*Execution{"own": a.x, "join": united} {
			for _, before := range []*Execution{base.x, a.x} {
				if _, breaches := Mend(copyOf(t, before), copyOf(t, now), plans); len(breaches) > 0 {
					t.Fatalf("seed %d, %s: %q\nbefore %s\nnow %s", seed, name, breaches, before.Encode(), now.Encode())
				}
			}
		}
	}
}

// Whose child an item is stands for good.
func TestMendManifestKeepsTheParent(t *testing.T) {
	const parent = `"parent": {"item": "9b21ca57e86dd0b", "workflow": "w.1", "step": "s", "name": "n", "generation": 1}, "label": "a"`
	before := strings.Replace(strings.Replace(manifestText, "ITEM", string(testID(t)), 1), `"label": "a"`, parent, 1)
	for old, new := range map[string]string{
		parent: `"label": "a"`, `"workflow": "w.1"`: `"workflow": "w.2"`, `"name": "n"`: `"name": "m"`, `"generation": 1`: `"generation": 0`,
		`"item": "9b21ca57e86dd0b"`: `"item": "9b21ca57e86dd0c"`, `"step": "s"`: `"step": "../s"`,
	} {
		mended, breaches := MendManifest([]byte(before), []byte(strings.Replace(before, old, new, 1)), false, false)
		if len(breaches) == 0 {
			t.Errorf("%s: taken", new)
		}
		m, err := layout.DecodeManifest(mended)
		if err != nil || m.Parent == nil || m.Parent.Item != "9b21ca57e86dd0b" || m.Parent.Workflow != "w.1" || m.Parent.Step != "s" || m.Parent.Name != "n" || m.Parent.Generation != 1 {
			t.Errorf("%s: %+v, %v", new, m.Parent, err)
		}
	}
}

// An intent is its committer's own, or is merely brought along; an engine notes those of anybody.
func TestIntentsInAnothersNameAreUnclaimed(t *testing.T) {
	before := &Execution{Intents: map[layout.IntentKey]Intent{"a": {Kind: HoldIntent, By: "Boss <boss@x.org>"}}}
	for _, c := range []struct {
		by   string
		who  Person
		want string
	}{
		{"Eve <eve@x.org>", Person{Address: "<eve@x.org>", Hand: true}, ""},
		{"Boss <boss@x.org>", Person{Address: "<eve@x.org>", Hand: true}, "added release b in the name of Boss"},
		{"Boss <boss@x.org>", Person{Address: "<eve@x.org>"}, "added release b in the name of Boss"},
		{"host:1 at lab", Person{Address: "<eve@x.org>", Hand: true}, ""}, // as where a revert of a revert brings one back
		{"the board", Person{Address: "<eve@x.org>", Hand: true}, `added release b in the name of "the board", which is not theirs`},
		{"", Person{Address: "<eve@x.org>", Hand: true}, `added release b in the name of ""`},
		{"host:1 at lab", Person{Address: "<bagpipe@lab>"}, ""},
		{"Boss <boss@x.org>", Person{}, ""},
	} {
		now := &Execution{Intents: map[layout.IntentKey]Intent{"a": before.Intents["a"], "b": {Kind: ReleaseIntent, Target: "a", By: c.by}}}
		got := strings.Join(Unclaimed(before, now, c.who), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("by %s, committed by %+v: %q, not %q", c.by, c.who, got, c.want)
		}
	}
}
