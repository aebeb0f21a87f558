package schedule_test

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/queue"
	"bagpipe/engine/schedule"
	"bagpipe/engine/timetable"
	"bagpipe/steps"

	"github.com/google/go-cmp/cmp"
)

// begin starts a keeper of schedules that were written so, whose firings take so long, and gives how often
// each was fired, and when by a clock that is right.
func (n *night) begin(files map[string]string, takes time.Duration) (fired func(name string) []time.Time) {
	n.clock = &clock{}
	root := filepath.Join(n.t.TempDir(), "ws")
	o := engine.Options{Now: n.clock.now, Random: rand.New(rand.NewSource(1)), Robots: steps.Builtins(), Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()},
		Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}}
	n.must(engine.Init(n.t.Context(), root, o))
	n.must(os.MkdirAll(filepath.Join(root, "schedules"), 0o777))
	for name, more := range files {
		n.must(os.WriteFile(filepath.Join(root, "schedules", name+".yaml"), fmt.Appendf(nil, "schema: 1\nname: %s\ndo: {start: accession}\n%s\n", name, more), 0o666))
	}
	var err error
	n.e, err = engine.Open(n.t.Context(), root, o)
	n.must(err)
	var mu sync.Mutex
	at := map[string][]time.Time{}
	deed := func(ctx context.Context, d timetable.Do) (string, bool, error) {
		mu.Lock()
		at[d.By] = append(at[d.By], time.Now())
		mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(takes):
		}
		return "done", false, ctx.Err()
	}
	k := schedule.New(n.e.Ledger, n.e.Settings, map[string]schedule.Deed{"start": deed}, func(*queue.Named) (int, error) { return 0, nil })
	ctx, cancel := context.WithCancel(n.t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		k.Run(ctx, ctx, func(text string, bad bool) {
			if bad {
				n.t.Error(text)
			}
		})
	})
	n.kill = func() { cancel(); done.Wait(); n.must(n.e.Close()) }
	time.Sleep(time.Second)
	return func(name string) []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return at[name]
	}
}

// A clock that is two hours behind the last commit keeps what is due by the clock from being fired, and is
// told of; once it is right that is fired again, and nothing twice.
func TestAClockThatIsBehindStopsCronAndAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &night{t: t}
		fired := n.begin(map[string]string{"cron": "trigger: {cron: '*/15 * * * *'}", "at": "trigger: {at: '2000-01-01T01:10:00Z'}"}, 0)
		defer func() { n.kill() }()
		time.Sleep(time.Hour)
		if got := len(fired("cron")); got != 4 {
			t.Fatalf("fired %d times in an hour", got)
		}
		n.clock.leap(-2 * time.Hour)
		time.Sleep(time.Hour)
		behind, err := n.e.Schedule.Behind()
		n.must(err)
		if got := len(fired("cron")); got != 4 || behind < 55*time.Minute || behind > 65*time.Minute {
			t.Errorf("fired %d times, and behind by %s", got, behind)
		}
		n.clock.leap(2 * time.Hour)
		time.Sleep(20 * time.Minute)
		behind, err = n.e.Schedule.Behind()
		n.must(err)
		// What was missed is fired once, and what fell due since.
		if got := len(fired("cron")); got != 6 || len(fired("at")) != 1 || behind != 0 {
			t.Errorf("fired %d times, at %d times, and behind by %s", got, len(fired("at")), behind)
		}
		row, err := n.e.Schedule.Row("cron")
		n.must(err)
		if len(row.Firings) != 6 {
			t.Errorf("%d due times of 6 firings", len(row.Firings))
		}
	})
}

// However often the clock is put back, what is due every ten minutes waits no longer than that.
func TestAClockThatIsPutBackLetsNothingWaitLongerThanAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &night{t: t}
		fired := n.begin(map[string]string{"every": "trigger: {every: 10m}"}, 0)
		defer func() { n.kill() }()
		random, leaps := rand.New(rand.NewSource(1)), 40
		if testing.Short() {
			leaps = 20
		}
		for range leaps {
			time.Sleep(time.Duration(11+random.Intn(25)) * time.Minute)
			n.clock.leap(time.Duration(random.Intn(6*60)-5*60) * time.Minute)
		}
		all := fired("every")
		for i := 1; i < len(all); i++ {
			if i > 1 && all[i].Sub(all[i-2]) < time.Minute { // a leap ahead makes one due at once
				t.Fatalf("firings %d to %d came within %s", i-2, i, all[i].Sub(all[i-2]))
			}
			if waited := all[i].Sub(all[i-1]); waited > 20*time.Minute+5*time.Second { // begun, and put back just before it was due
				t.Errorf("firing %d came %s after the one before", i, waited)
			}
		}
		if len(all) < leaps {
			t.Errorf("fired %d times", len(all))
		}
		row, err := n.e.Schedule.Row("every")
		n.must(err)
		if len(row.Firings) != 20 {
			t.Errorf("%d firings are on record, not the last 20", len(row.Firings))
		}
		for i := 1; i < len(row.Firings); i++ {
			if !row.Firings[i].Due.Before(row.Firings[i-1].Due) {
				t.Errorf("firings are not by their due times")
			}
		}
	})
}

// What falls due while a firing of 25 minutes runs is absorbed, done after it, or done in its place.
func TestOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &night{t: t}
		const line = "trigger: {cron: '*/10 * * * *'}\noverlap: "
		fired := n.begin(map[string]string{"skip": line + "skip", "wait": line + "wait", "all": line + "wait\nmissed: all", "replace": line + "replace"}, 25*time.Minute)
		defer func() { n.kill() }()
		begun := time.Now()
		time.Sleep(90*time.Minute + 30*time.Second)
		for name, want := range map[string][]int{"skip": {10, 40, 70}, "wait": {10, 35, 60, 85}, "all": {10, 35, 60, 85}, "replace": {10, 20, 30, 40, 50, 60, 70, 80, 90}} {
			var got []int
			for _, at := range fired(name) {
				got = append(got, int(at.Sub(begun).Round(time.Minute).Minutes()))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: fired at minutes (-want +got):\n%s", name, diff)
			}
		}
		for name, want := range map[string]string{"skip": schedule.Completed, "replace": schedule.Replaced} {
			row, err := n.e.Schedule.Row(name)
			n.must(err)
			if got := row.Firings[1].Outcome; got != want {
				t.Errorf("%s: the firing before the last is %q", name, got)
			}
		}
		row, err := n.e.Schedule.Row("all")
		n.must(err)
		for i, f := range row.Firings { // each due time has its turn
			if want := 10 * (len(row.Firings) - i); int(f.Due.Sub(begun).Round(time.Minute).Minutes()) != want {
				t.Errorf("all: firing %d was due at %s, want minute %d", i, f.Due, want)
			}
		}
	})
}

// What was missed has its turn each, though firings may not overlap; what falls due while one of them
// runs is absorbed.
func TestEachMissedTimeHasItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &night{t: t}
		n.begin(map[string]string{"all": "trigger: {cron: '*/10 * * * *'}\nmissed: all"}, 3*time.Minute)
		defer func() { n.kill() }()
		begun := time.Now()
		time.Sleep(5 * time.Minute)
		n.clock.leap(35*time.Minute + 5*time.Second)
		time.Sleep(25 * time.Minute)
		row, err := n.e.Schedule.Row("all")
		n.must(err)
		var got []int
		for _, f := range row.Firings {
			got = append(got, int(f.Due.Sub(begun).Round(time.Minute).Minutes()))
		}
		slices.Sort(got)
		if diff := cmp.Diff([]int{10, 20, 30, 40, 60}, got); diff != "" {
			t.Errorf("fired for minutes (-want +got):\n%s", diff)
		}
	})
}

// A clock that was weeks ahead for a while, and is right again, keeps a schedule from being fired no longer than
// until somebody commits by the right one.
func TestAClockThatWasWeeksAheadIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &night{t: t}
		fired := n.begin(map[string]string{"cron": "trigger: {cron: '*/15 * * * *'}", "other": "trigger: {cron: '0 0 1 7 *'}"}, 0)
		defer func() { n.kill() }()
		n.clock.leap(40 * 24 * time.Hour)
		time.Sleep(20 * time.Minute)
		n.clock.leap(-40 * 24 * time.Hour)
		before := len(fired("cron"))
		time.Sleep(time.Hour)
		if got := len(fired("cron")); got != before || before == 0 {
			t.Errorf("fired %d times, and %d while the clock was behind the last commit", before, got-before)
		}
		_, err := n.e.Schedule.Set(t.Context(), n.e.Ledger.ByPerson(), "other", schedule.Order{Status: schedule.Stopped})
		n.must(err)
		time.Sleep(time.Hour)
		if got := len(fired("cron")) - before; got != 4 {
			t.Errorf("fired %d times in an hour by the right clock", got)
		}
	})
}
