package state

import (
	"errors"
	"time"

	"bagpipe/layout"

	"pgregory.net/rapid"
)

// drawExecution makes a record two engines may have written, through Apply.
func drawExecution(t *rapid.T, d *Definition, x *Execution, engine layout.EngineID, name string) *Execution {
	x = copyOf(t, x)
	x.Compute(wf, d)
	now := t0
	for i := range rapid.IntRange(0, 12).Draw(t, name) {
		now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "s")) * time.Second)
		step := layout.Name(d.Steps[rapid.IntRange(1, len(d.Steps)-1).Draw(t, "step")].Name)
		_, s := x.Find(wf, step)
		cur, _, _ := s.Current()
		key := layout.IntentKey(layout.FormatTime(now) + string(rune('a'+i)) + name + "-" + string(engine))
		events := []Event{
			Claim{Workflow: wf, Step: step, Attempt: x.NextKey(step, engine), At: now, Runner: name},
			End{Workflow: wf, Step: step, Attempt: cur, State: rapid.SampledFrom([]Status{Completed, Skipped, Failed, Deferred}).Draw(t, "end"), Started: now, At: now, RetryAt: now,
				Progress: rapid.SampledFrom([]*Progress{nil, {At: now, Note: "page 3", Percent: -1}, {At: now, Percent: 40}}).Draw(t, "progress"),
				Yield: Yield{Content: rapid.Bool().Draw(t, "content"), Children: rapid.SampledFrom([]int{0, 0, 3, 500}).Draw(t, "children"), CPU: rapid.SampledFrom([]time.Duration{0, time.Second, 1234 * time.Millisecond}).Draw(t, "cpu"),
					Idle:   rapid.SampledFrom([]time.Duration{0, 20 * time.Millisecond, time.Hour}).Draw(t, "idle"),
					Chosen: rapid.SampledFrom([][]layout.Name{nil, {}, {"a"}, {"a", "b"}}).Draw(t, "chosen")}},
			Decide{Workflow: wf, Step: step, Attempt: x.NextKey(step, engine), State: rapid.SampledFrom([]Status{Completed, Skipped, Failed}).Draw(t, "decide"), At: now, By: name + " <" + name + "@example.org>"},
			Lost{Key: key, Workflow: wf, Step: step, Attempt: cur, At: now, By: name},
			Retry{Key: key, Workflow: wf, Step: step, At: now, By: name},
			Hold{Key: key, At: now, By: name},
			Release{Key: func() (layout.IntentKey, error) { return key, nil }, At: now, By: name},
		}
		ev := rapid.SampledFrom(events).Draw(t, "event")
		if end, ok := ev.(End); ok && end.Attempt.Engine != engine {
			continue // one writer per attempt
		}
		before := copyOf(t, x)
		var illegal *IllegalError
		if _, err := Apply(x, d, ev); err != nil && !errors.As(err, &illegal) {
			t.Fatal(err)
		}
		if made := Unclaimed(before, x, Person{}); len(made) > 0 {
			t.Fatalf("%+v, which is lawful, is said to be made up: %q", ev, made)
		}
	}
	return x
}

func joined(t *rapid.T, d *Definition, a, b *Execution) *Execution {
	x, err := Join(a, b)
	if err != nil {
		t.Fatal(err)
	}
	x.Compute(wf, d)
	return x
}
