package schedule_test

import (
	"math/rand"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/schedule"
	"bagpipe/layout"
	"bagpipe/steps"
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

// Firings by hand that come within one millisecond are each on record, with a log of its own.
func TestFiringsOfOneInstantHaveALogEach(t *testing.T) {
	n, instant := &night{t: t}, time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	root := filepath.Join(t.TempDir(), "ws")
	o := engine.Options{Now: func() time.Time { return instant }, Random: rand.New(rand.NewSource(1)), Robots: steps.Builtins(), Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()},
		Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}}
	n.must(engine.Init(t.Context(), root, o))
	n.must(os.MkdirAll(filepath.Join(root, "schedules"), 0o777))
	n.must(os.WriteFile(filepath.Join(root, "schedules/s.yaml"), []byte("schema: 1\nname: s\ntrigger: {cron: '0 0 1 1 *'}\ndo: {command: [sh, -c, 'echo due $BAGPIPE_DUE']}\n"), 0o666))
	e, err := engine.Open(t.Context(), root, o)
	n.must(err)
	defer func() { n.must(e.Close()) }()
	for range 3 {
		_, _, err := e.Schedule.Fire(t.Context(), e.Ledger.ByPerson(), "s", nil)
		n.must(err)
	}
	row, err := e.Schedule.Row("s")
	n.must(err)
	if len(row.Firings) != 3 {
		t.Fatalf("%d firings are on record", len(row.Firings))
	}
	for _, f := range row.Firings {
		data, err := os.ReadFile(filepath.Join(root, f.Log))
		n.must(err)
		if want := "due " + layout.FormatTime(f.Due) + "\n"; string(data) != want {
			t.Errorf("%s has %q, want %q", f.Log, data, want)
		}
	}
}
