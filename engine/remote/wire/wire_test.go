package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/steps"

	"github.com/google/go-cmp/cmp"
)

// What a robot answers is the same on the other side.
func TestAnEndIsWhatTheRobotAnswered(t *testing.T) {
	full := steps.Result{Status: steps.Skipped, Message: "two\nlines", Metadata: map[string]any{"pages": "3"}, Milestones: []layout.Name{"read"}, Choose: []layout.Name{"map"},
		Inventory: &layout.Inventory{Schema: 1, Files: map[string]layout.InventoryFile{"a": {Size: 1}}},
		Outputs:   []steps.Output{{From: "derived", To: "derived/ocr"}, {From: "b\xff%", To: "content"}}, Remove: []layout.RelPath{"derived/bag"},
		Children: []steps.Child{{From: "children/x", Name: "n\xfe", Label: "L", Collection: "c", Lane: "high", Metadata: map[string]any{"k": "v"}}}}
	for name, c := range map[string]struct {
		res steps.Result
		err error
	}{
		"full":        {full, nil},
		"plain":       {steps.Result{Status: steps.Completed}, nil},
		"content":     {steps.Result{Status: steps.Completed, Milestones: []layout.Name{"seen"}}, steps.ContentFailure("torn")},
		"system":      {steps.Result{Status: steps.Completed}, steps.SystemFailure("no model")},
		"later":       {steps.Result{Status: steps.Completed}, &steps.Later{Reason: "busy", After: time.Minute}},
		"unavailable": {steps.Result{Status: steps.Completed}, &steps.Unavailable{Err: errors.New("not there")}},
		"returned":    {steps.Result{Status: steps.Completed}, context.Canceled},
	} {
		data, err := wire.EncodeDocument(wire.EndOf(c.res, c.err))
		if err != nil {
			t.Fatal(err)
		}
		var end wire.End
		if err := wire.Decode(data, &end); err != nil {
			t.Fatal(err)
		}
		res, failure, bad := end.Result()
		if bad != nil {
			t.Fatalf("%s: %v", name, bad)
		}
		if c.err != nil {
			c.res.Message = res.Message // the failure's words
		}
		if diff := cmp.Diff(c.res, res); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		if (failure == nil) != (c.err == nil) || failure != nil && (failure.Error() != c.err.Error() || steps.KindOf(failure) != steps.KindOf(c.err)) {
			t.Errorf("%s: failure %v, want %v", name, failure, c.err)
		}
	}
}

// Paths that lead out, an end without a word, milestones that are no names: refused.
func TestABadEndIsRefused(t *testing.T) {
	for _, end := range []wire.End{
		{How: wire.Done, Outputs: []wire.Output{{From: "../x", To: "content"}}},
		{How: wire.Done, Outputs: []wire.Output{{From: "x", To: "/etc"}}},
		{How: wire.Done, Remove: []string{"a/../../b"}},
		{How: wire.Done, Children: []wire.Child{{From: "%zz"}}},
		{How: wire.Done, Reached: wire.Reached{Milestones: []layout.Name{"a b"}}},
		{How: "perhaps"},
	} {
		if _, _, bad := end.Result(); bad == nil {
			t.Errorf("%+v is taken", end)
		}
	}
}

func TestOtherProtocolsAndLargeMessagesAreRefused(t *testing.T) {
	var version *wire.VersionError
	for _, data := range []string{`{"v":2}`, `{"v":0}`, `{}`} {
		if err := wire.Decode([]byte(data), &wire.Beat{}); !errors.As(err, &version) {
			t.Errorf("%s: %v", data, err)
		}
	}
	if err := wire.Decode([]byte(`{"v":1,"comes":"later"}`), &wire.Beat{}); err != nil {
		t.Errorf("an unknown key: %v", err)
	}
	if _, err := wire.Encode(wire.Refusal{Head: wire.Now(), Refused: strings.Repeat("x", wire.MaxMessage)}); err == nil {
		t.Error("a message beyond the limit is encoded")
	}
}

// A worker of many slots tells of all that runs, whatever its robots say of their progress.
func TestBeatsOfManyAttemptsAreMessages(t *testing.T) {
	beat := wire.Beat{Head: wire.Now(), Engine: "5c1e9a70", State: "ready"}
	for n := range 10_000 {
		held := wire.Held{Item: "3fa9c0d2e1b7a45", Workflow: strings.Repeat("w", 64) + ".1", Step: layout.Name(strings.Repeat("s", 64)), Attempt: fmt.Sprintf("%d-5c1e9a70", n+1), Nonce: strings.Repeat("f", 32)}
		beat.Running = append(beat.Running, wire.Told{Held: held, Note: strings.Repeat("\x01ü", 2000), Percent: 99})
	}
	told := 0
	for _, part := range beat.Parts() {
		if _, err := wire.Encode(part); err != nil {
			t.Fatal(err)
		}
		if part.Engine != beat.Engine || part.State != beat.State {
			t.Errorf("a part is of %s, %s", part.Engine, part.State)
		}
		for _, one := range part.Running {
			if told++; one.Attempt != fmt.Sprintf("%d-5c1e9a70", told) {
				t.Fatalf("attempt %s is told as number %d", one.Attempt, told)
			}
		}
	}
	if told != 10_000 {
		t.Errorf("%d attempts are told of", told)
	}
	if parts := (wire.Beat{}).Parts(); len(parts) != 1 {
		t.Errorf("nothing runs: %d beats", len(parts))
	}
}

// Names hold dots, which part words in subjects.
func TestSubjectsNameTheWorker(t *testing.T) {
	for _, name := range []layout.Name{"w1", "gpu.room-2.w_1"} {
		got, verb, ok := wire.Asker(wire.AskSubject(name, wire.VerbClaim))
		if !ok || got != name || verb != wire.VerbClaim {
			t.Errorf("%s: %s %s %v", name, got, verb, ok)
		}
	}
	for _, subject := range []string{"bagpipe.ask.", "bagpipe.ask.w1", "bagpipe.ask.a b.claim", "other"} {
		if _, _, ok := wire.Asker(subject); ok {
			t.Errorf("%q names a worker", subject)
		}
	}
}

// Two steps share a class only where they want the same.
func TestClasses(t *testing.T) {
	gpu := map[string]string{"gpu": "a100"}
	seen := map[string]bool{}
	for _, w := range []wire.Want{{Robot: "ocr"}, {Robot: "ocr", Labels: gpu}, {Robot: "ocr", Labels: map[string]string{"gpu": "a100", "ram": "big"}},
		{Robot: "ocr", Name: "w1"}, {Robot: "ocr", Name: "w1", Labels: gpu}, {Robot: "ocr2"}, {Robot: "ocr", Version: "4.1"}, {Robot: "ocr", Version: "4.2", Labels: gpu}} {
		if seen[w.Class()] || w.Class() != (wire.Want{Robot: w.Robot, Version: w.Version, Labels: w.Labels, Name: w.Name}).Class() {
			t.Errorf("%s: class %s", w, w.Class())
		}
		seen[w.Class()] = true
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range []wire.Message{wire.Hello{Head: wire.Now(), Name: "w"}, wire.Beat{Head: wire.Now(), Running: []wire.Told{{Percent: 3}}}, wire.Claim{Head: wire.Now(), Offer: "1"},
		wire.EndOf(steps.Result{Outputs: []steps.Output{{From: "a", To: "content"}}}, nil)} {
		data, err := wire.EncodeDocument(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, m := range []wire.Message{&wire.Hello{}, &wire.Beat{}, &wire.Claim{}, &wire.Offer{}, &wire.Grant{}, &wire.Orders{}, &wire.Control{}, &wire.Call{}} {
			_ = wire.Decode(data, m)
		}
		var end wire.End
		if wire.Decode(data, &end) != nil {
			return
		}
		res, _, bad := end.Result()
		if bad != nil {
			return
		}
		for _, o := range res.Outputs {
			if _, err := layout.ParseRelPath(string(o.From)); err != nil {
				t.Errorf("%q is let through", o.From)
			}
		}
		if _, err := json.Marshal(end); err != nil {
			t.Error(err)
		}
	})
}

// Why a step waits for workers tells one that has the robot, and takes nothing, from none that has it.
func TestUnmet(t *testing.T) {
	w := wire.Want{Robot: "ocr"}
	one := func(state, robot string) wire.Status {
		return wire.Status{Workers: []wire.WorkerStatus{{Name: "w2", State: state, Robots: []wire.Robot{{Name: layout.Name(robot)}}}}}
	}
	for _, c := range []struct {
		status wire.Status
		want   string
	}{
		{one("ready", "ocr"), ""},
		{one("draining", "ocr"), "needs ocr: w2 has it, and is draining"},
		{one("ready", "scan"), "needs ocr: 1 worker connected, none has it"},
		{one("silent", "ocr"), "needs ocr: 0 workers connected, none has it"},
	} {
		if got := w.Unmet(c.status, true); got != c.want {
			t.Errorf("%+v: %q", c.status.Workers, got)
		}
	}
}
