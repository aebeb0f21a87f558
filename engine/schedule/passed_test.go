package schedule_test

import (
	"testing"
	"testing/synctest"
	"time"

	"bagpipe/engine/schedule"
)

// What counts from the last end, and is passed over, counts from then on: it is passed over once, and fired after
// the time that it says.
func TestWhatIsPassedOverCountsFromThenOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &night{t: t}
		fired := n.begin(map[string]string{"skip": "trigger: {every: 30m}\nmissed: skip", "within": "trigger: {every: 30m}\nwithin: 10m"}, 0)
		defer func() { n.kill() }()
		time.Sleep(5 * time.Minute)
		n.clock.leap(time.Hour)
		time.Sleep(20 * time.Minute)
		for _, name := range []string{"skip", "within"} {
			row, err := n.e.Schedule.Row(name)
			n.must(err)
			if len(fired(name)) != 0 || len(row.Firings) != 1 || row.Firings[0].Outcome != schedule.Missed {
				t.Errorf("%s was fired %d times: %+v", name, len(fired(name)), row.Firings)
			}
		}
		time.Sleep(15 * time.Minute)
		for _, name := range []string{"skip", "within"} {
			if got := len(fired(name)); got != 1 {
				t.Errorf("%s was fired %d times within 35 minutes", name, got)
			}
		}
	})
}
