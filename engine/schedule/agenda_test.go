package schedule

import (
	"testing"
	"time"
)

// A schedule that is due in weeks is looked at once a day, and at once where the clock was put back.
func TestWhatIsDueInWeeksIsSeldomLookedAt(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	a := newAgenda()
	if !a.ripe("far", now) {
		t.Error("one that was never looked at waits")
	}
	a.plan("far", now.Add(40*24*time.Hour), now)
	for after, want := range map[time.Duration]bool{0: false, 23 * time.Hour: false, 24 * time.Hour: true, -2 * time.Hour: true} {
		a.rest()
		if got := a.ripe("far", now.Add(after)); got != want || a.idle(now.Add(after)) == want {
			t.Errorf("after %s it is to be looked at: %v, and none is: %v", after, got, a.idle(now.Add(after)))
		}
	}
}
