package schedule_test

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// line is a cron line, and what a clock on the wall shows when it is due.
type line struct {
	cron  string
	fits  func(wall time.Time) bool
	fixed bool // for certain hours: an hour that is repeated counts once
}

var lines = []line{
	{"30 2 * * *", func(w time.Time) bool { return w.Hour() == 2 && w.Minute() == 30 }, true},
	{"*/15 * * * *", func(w time.Time) bool { return w.Minute()%15 == 0 }, false},
	{"5 1,2,3 * * *", func(w time.Time) bool { return w.Minute() == 5 && w.Hour() >= 1 && w.Hour() <= 3 }, true},
	{"0 * * * 0", func(w time.Time) bool { return w.Minute() == 0 && w.Weekday() == time.Sunday }, false},
	{"59 23 * * *", func(w time.Time) bool { return w.Hour() == 23 && w.Minute() == 59 }, true},
}

// model is one schedule, minute by minute.
type model struct {
	line
	zone    *time.Location
	missed  string
	through time.Time
	stopped bool
	fired   []string
}

// dueAt reports whether the schedule is due at a minute, by what the clock on the wall shows.
func (m *model) dueAt(t time.Time) bool {
	wall, before := t.In(m.zone), t.Add(-time.Minute).In(m.zone)
	if m.fits(wall) {
		for back := time.Minute; m.fixed && back <= 3*time.Hour; back += time.Minute {
			if earlier := t.Add(-back).In(m.zone); shown(earlier) == shown(wall) {
				return false
			}
		}
		return true
	}
	_, was := before.Zone()
	_, is := wall.Zone()
	for left := time.Minute; left <= time.Duration(is-was)*time.Second; left += time.Minute { // what was left out
		if m.fits(before.Add(left).In(time.FixedZone("", was))) && left < time.Duration(is-was)*time.Second+time.Minute {
			return true
		}
	}
	return false
}

func shown(t time.Time) string { return t.Format("2006-01-02 15:04") }

// look is what the schedule does when the clock shows a time.
func (m *model) look(clock time.Time) {
	if m.stopped {
		return
	}
	var last time.Time
	for t := m.through.Truncate(time.Minute).Add(time.Minute); !t.After(clock); t = t.Add(time.Minute) {
		if t.After(m.through) && m.dueAt(t) {
			last = t
		}
	}
	if last.IsZero() {
		return
	}
	m.through = last
	if m.missed == "skip" && clock.Sub(last) > time.Minute {
		return
	}
	m.fired = append(m.fired, last.UTC().Format(time.RFC3339))
	if clock.After(m.through) {
		m.through = clock // what fell due before its end is absorbed
	}
}

// transitions are nights on which the clocks of eight zones are changed, or not.
var transitions = map[string][]string{
	"UTC": {"2026-03-29T00:00:00Z"}, "Europe/Berlin": {"2026-03-28T22:00:00Z", "2026-10-24T21:00:00Z"}, "America/New_York": {"2026-03-08T04:00:00Z", "2026-11-01T03:00:00Z"},
	"Australia/Lord_Howe": {"2026-10-03T12:00:00Z", "2026-04-04T11:00:00Z"}, "America/St_Johns": {"2026-03-08T02:00:00Z", "2026-11-01T02:00:00Z"},
	"Asia/Kathmandu": {"2026-03-28T18:00:00Z"}, "Pacific/Apia": {"2026-04-04T10:00:00Z"}, "Africa/Casablanca": {"2026-02-14T22:00:00Z", "2026-03-21T22:00:00Z"},
}

// The keeper of schedules, in the nights on which clocks are changed, does what a model does that
// looks at each minute: with clocks that leap ahead and back, machines that sleep, schedules that
// are stopped, started and changed, and keepers that are killed.
func TestTheKeeperAgainstAModel(t *testing.T) {
	t.Parallel()
	for name, nights := range transitions {
		if testing.Short() && name != "Europe/Berlin" {
			continue
		}
		for i, night := range nights {
			t.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(name, "/", "-"), i), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { oneNight(t, name, night, int64(i+len(name))) })
			})
		}
	}
}

// clock is the machine's, which the test puts forward and back.
type clock struct {
	mu  sync.Mutex
	off time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off)
}

func (c *clock) leap(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += d
}

// night is one workspace with its schedules, and their models.
type night struct {
	t      *testing.T
	e      *engine.Engine
	clock  *clock
	models map[string]*model
	mu     sync.Mutex
	fired  map[string][]string
	kill   func()
}

func (n *night) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func oneNight(t *testing.T, zone, begin string, seed int64) {
	at, err := time.Parse(time.RFC3339, begin)
	if err != nil {
		t.Fatal(err)
	}
	where, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewSource(seed))
	n := &night{t: t, clock: &clock{off: time.Until(at.Add(time.Second))}, models: map[string]*model{}, fired: map[string][]string{}}
	root := filepath.Join(t.TempDir(), "ws")
	o := engine.Options{Now: n.clock.now, Random: random, Robots: steps.Builtins(), Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()},
		Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}}
	n.must(engine.Init(t.Context(), root, o))
	n.must(os.MkdirAll(filepath.Join(root, "schedules"), 0o777))
	for i, l := range lines {
		missed := []string{"once", "skip"}[random.Intn(2)]
		n.write(root, fmt.Sprint("s", i), l, zone, missed)
		n.models[fmt.Sprint("s", i)] = &model{line: l, zone: where, missed: missed}
	}
	n.e, err = engine.Open(t.Context(), root, o)
	n.must(err)
	defer func() { n.must(n.e.Close()) }()
	n.start()
	for _, m := range n.models {
		m.through = n.clock.now()
	}
	for range 9 * 60 {
		time.Sleep(time.Minute - time.Second)
		n.look()
		n.disturb(random, root, zone)
	}
	n.kill()
	for name, m := range n.models {
		n.mu.Lock()
		if diff := cmp.Diff(m.fired, n.fired[name]); diff != "" {
			t.Errorf("%s of %s, missed: %s (-model +keeper):\n%s", m.cron, zone, m.missed, diff)
		}
		n.mu.Unlock()
	}
}

// look waits until the keeper has looked, and has the models look.
func (n *night) look() {
	time.Sleep(time.Second)
	for _, m := range n.models {
		m.look(n.clock.now())
	}
}

// write writes a schedule. Its deed is to start a workflow, which the test does.
func (n *night) write(root, name string, l line, zone, missed string) {
	n.must(os.WriteFile(filepath.Join(root, "schedules", name+".yaml"), fmt.Appendf(nil,
		"schema: 1\nname: %s\ntrigger: {cron: '%s'}\nzone: %s\nmissed: %s\ndo: {start: accession}\n", name, l.cron, zone, missed), 0o666))
}

// start starts a keeper that knows nothing but what is committed.
func (n *night) start() {
	deed := func(context.Context, timetable.Do) (string, bool, error) { return "done", false, nil }
	k := schedule.New(n.e.Ledger, n.e.Settings, map[string]schedule.Deed{"start": deed}, func(*queue.Named) (int, error) { return 0, nil })
	ctx, cancel := context.WithCancel(n.t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		k.Run(ctx, ctx, func(text string, bad bool) {
			words := strings.Fields(text) // schedule NAME, due TIME: …
			if len(words) < 4 || bad {
				n.t.Errorf("told %q", text)
				return
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			name := strings.TrimSuffix(words[1], ",")
			n.fired[name] = append(n.fired[name], strings.TrimSuffix(words[3], ":"))
		})
	})
	time.Sleep(time.Second) // every schedule was seen
	n.kill = func() { cancel(); done.Wait() }
}

// disturb does now and then what happens to a machine.
func (n *night) disturb(random *rand.Rand, root, zone string) {
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range n.models {
			if !yield(name) {
				return
			}
		}
	})
	name := names[random.Intn(len(names))]
	m := n.models[name]
	switch random.Intn(60) {
	case 0: // it slept, or somebody put the clock forward
		n.clock.leap(time.Duration(1+random.Intn(150)) * time.Minute)
		n.look()
	case 1: // back, by less than makes it wait for the last commit
		n.clock.leap(-time.Duration(1+random.Intn(4)) * time.Minute)
		n.look()
	case 2:
		n.kill()
		n.start()
	case 3:
		order := schedule.Stopped
		if m.stopped = !m.stopped; !m.stopped {
			order = schedule.Started
		}
		_, err := n.e.Schedule.Set(n.t.Context(), n.e.Ledger.ByPerson(), name, schedule.Order{Status: order})
		n.must(err)
		if m.through = n.clock.now(); order == schedule.Stopped {
			return
		}
	case 4: // what an older line had due was not missed by the new
		if m.stopped {
			return
		}
		m.line = lines[random.Intn(len(lines))]
		n.write(root, name, m.line, zone, m.missed)
		n.must(n.e.Settings.Sync(n.t.Context()))
		time.Sleep(time.Second)
		m.through = n.clock.now()
	}
}
