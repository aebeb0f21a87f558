package schedule

import (
	"testing"
	"time"
)

// A schedule that is due in weeks is not looked at before, unless the clock was put back.
func TestWhatIsDueInWeeksIsNotLookedAt(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	a := newAgenda()
	if a.see(now); !a.ripe("far", now) {
		t.Error("one that was never looked at waits")
	}
	a.plan("far", now.Add(40*24*time.Hour))
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {23 * time.Hour, false}, {22*time.Hour + 59*time.Minute, true}} {
		at := now.Add(step.after)
		a.rest()
		a.see(at)
		if got := a.ripe("far", at); got != step.want || a.idle(at) == step.want {
			t.Errorf("after %s it is to be looked at: %v, and none is: %v", step.after, got, a.idle(at))
		}
	}
}
