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
	"bagpipe/engine/schedule"
	"bagpipe/engine/timetable"
	"bagpipe/steps"

	"github.com/google/go-cmp/cmp"
)

// anyModel is one schedule of any kind, second by second. It is told when a firing ended and what is done to the
// clock, the file and the engine, and says for which times the schedule is fired.
type anyModel struct {
	cron    *line // one of cron, every, at and queue
	every   time.Duration
	at      time.Time
	queue   bool
	hours   []int // of every and queue: the day's hours between which it is fired; none: all
	zone    *time.Location
	overlap string
	missed  string
	within  time.Duration // 0: however old

	since, through, ended, seen time.Time
	looked                      time.Time // the minute of the last look; zero: something was done since
	stopped, retimed            bool
	edited                      bool // since the last firing ended
	ready                       int  // steps of the queue, while none is fired
	now                         *run // what is fired at the moment
	runs                        []*run
}

// run is one firing.
type run struct {
	due, begun, ended time.Time
	outcome           string // "": it runs
	resumed, orphaned bool   // orphaned: its engine is gone
}

// from is when the interval begins: with the last end or start that the clock does not show as still to
// come, or when that was seen.
func (m *anyModel) from(t time.Time) time.Time {
	var last time.Time
	ahead := false
	for _, at := range []time.Time{m.since, m.ended} {
		if at.After(t) {
			ahead = true
		} else if at.After(last) {
			last = at
		}
	}
	switch {
	case !ahead:
		m.seen = time.Time{}
	case m.seen.IsZero() || m.seen.After(t):
		m.seen = t
	}
	if m.seen.After(last) {
		return m.seen
	}
	return last
}

func (m *anyModel) open(t time.Time) bool {
	if len(m.hours) == 0 {
		return true
	}
	h := t.In(m.zone).Hour()
	if m.hours[0] < m.hours[1] {
		return h >= m.hours[0] && h < m.hours[1]
	}
	return h >= m.hours[0] || h < m.hours[1]
}

// due are the times after through, up to t, at which the schedule is due.
func (m *anyModel) due(t time.Time) (all []time.Time) {
	switch {
	case m.cron != nil:
		c := model{line: *m.cron, zone: m.zone}
		for minute := m.through.Truncate(time.Minute).Add(time.Minute); !minute.After(t); minute = minute.Add(time.Minute) {
			if minute.After(m.through) && c.dueAt(minute) {
				all = append(all, minute)
			}
		}
	case m.every > 0:
		at := m.from(t).Add(m.every)
		for !m.open(at) && !at.After(t) {
			at = at.Truncate(time.Minute).Add(time.Minute)
		}
		if !at.After(t) {
			all = append(all, at)
		}
	case m.at.After(m.through) && !m.at.After(t):
		all = append(all, m.at)
	}
	return all
}

// wanted is the time for which the schedule is to be fired, and the last that is passed over.
func (m *anyModel) wanted(t time.Time) (fire, passed time.Time) {
	if m.queue {
		if m.open(t) && m.ready > 0 {
			fire = t
		}
		return fire, passed
	}
	all := m.due(t)
	old := func(due time.Time) bool { return m.within > 0 && t.Sub(due) > m.within }
	if m.missed != "all" {
		if len(all) == 0 {
			return fire, passed
		}
		last := all[len(all)-1]
		if old(last) || m.missed == "skip" && t.Sub(last) > time.Minute {
			return fire, last
		}
		return last, passed
	}
	missed := false // some was missed, and fell into no firing
	for _, due := range all {
		during := m.overlap != "wait" && slices.ContainsFunc(m.runs, func(r *run) bool {
			return r.outcome != "missed" && r.outcome != "replaced" && due.After(r.begun) && !due.After(r.ended)
		})
		switch {
		case old(due):
			passed, missed = due, missed || !during
		case !during:
			fire = due
		}
		if !fire.IsZero() {
			break
		}
	}
	if !missed {
		passed = time.Time{}
	}
	return fire, passed
}

// look is what the keeper does at a moment.
func (m *anyModel) look(t time.Time) {
	minute := t.Truncate(time.Minute)
	if m.stopped || m.cron != nil && m.looked.Equal(minute) {
		return
	}
	m.looked = minute
	if m.retimed && (m.now == nil || m.overlap == "replace" || m.now.orphaned) {
		m.since, m.through, m.retimed = t, t, false
	}
	if r := m.now; r != nil && r.orphaned {
		if r.orphaned, m.looked = false, (time.Time{}); r.resumed {
			r.outcome, r.ended, m.ended, m.now = "lost", t, t, nil
			return
		}
		r.resumed = true
		return
	}
	if m.now != nil {
		if fire, _ := m.wanted(t); m.overlap == "replace" && (m.cron != nil || !m.at.IsZero()) && !fire.IsZero() {
			m.now.outcome = "replaced"
		}
		return
	}
	switch fire, passed := m.wanted(t); {
	case !fire.IsZero():
		m.through = fire
		m.now, m.looked = &run{due: fire, begun: t}, time.Time{}
		m.runs = append(m.runs, m.now)
	case !passed.IsZero():
		m.through, m.looked = passed, time.Time{}
		m.runs = append(m.runs, &run{due: passed, outcome: "missed"})
		m.ended = t
	}
}

// end is that of what is fired, which leaves some steps of the queue.
func (m *anyModel) end(t time.Time, left int) {
	m.ready, m.edited = left, false
	r := m.now
	if r == nil {
		return // told by the comparison
	}
	m.now, m.ended, r.ended, m.looked = nil, t, t, time.Time{}
	if m.retimed {
		m.since, m.through, m.retimed = t, t, false
	}
	if r.outcome == "" {
		r.outcome = "completed"
	}
	if m.overlap != "wait" && m.missed != "all" && r.outcome != "replaced" && t.After(m.through) {
		m.through = t
	}
}

// anyNight is a workspace with schedules of any kind.
type anyNight struct {
	night
	root   string
	o      engine.Options
	random *rand.Rand // the test's
	takes  *rand.Rand // how long firings take; night.mu guards it
	zone   *time.Location
	all    map[string]*anyModel
	ends   map[string][]ending // that the models were not told of; night.mu guards it
	crew   crew
	last   time.Time // of the models' looks, by the machine's clock
	cancel func()
}

// Schedules of any kind, drawn at random, whose firings take their time, are fired for the times that a
// model says, whatever happens to the clock, to the files and to the engines.
func TestAnyScheduleAgainstAModel(t *testing.T) {
	t.Parallel()
	for zone, nights := range transitions {
		if testing.Short() && zone != "Europe/Berlin" {
			continue
		}
		for i, begin := range nights {
			if i > 0 && os.Getenv("BAGPIPE_SOAK") == "" {
				break
			}
			t.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(zone, "/", "-"), i), func(t *testing.T) {
				t.Parallel()
				for draw := range anyDraws() {
					synctest.Test(t, func(t *testing.T) { anyNightOf(t, zone, begin, int64(1000*draw+100*i+len(zone))) })
				}
			})
		}
	}
}

// anyDraws is how many nights of one kind are drawn.
func anyDraws() int {
	if os.Getenv("BAGPIPE_SOAK") != "" {
		return 20
	}
	return 1
}

func anyNightOf(t *testing.T, zone, begin string, seed int64) {
	n := &anyNight{night: night{t: t}, random: rand.New(rand.NewSource(seed)), takes: rand.New(rand.NewSource(seed)), all: map[string]*anyModel{}, ends: map[string][]ending{}, crew: newCrew()}
	at, err := time.Parse(time.RFC3339, begin)
	n.must(err)
	n.zone, err = time.LoadLocation(zone)
	n.must(err)
	n.clock = &clock{off: time.Until(at)}
	n.root = filepath.Join(t.TempDir(), "ws")
	n.o = engine.Options{Now: n.clock.now, Random: rand.New(rand.NewSource(seed)), Robots: steps.Builtins(), Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()},
		Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}}
	n.must(engine.Init(t.Context(), n.root, n.o))
	n.must(os.MkdirAll(filepath.Join(n.root, "schedules"), 0o777))
	hours, schedules := 8, 8
	if testing.Short() {
		hours, schedules = 5, 4 // the clocks are changed in the fourth hour
	}
	for i := range schedules {
		n.must(n.writeQueue(fmt.Sprint("s", i)))
		m := &anyModel{zone: n.zone, overlap: []string{"skip", "wait", "replace"}[i%3], missed: []string{"once", "skip", "all"}[n.random.Intn(3)]}
		if n.random.Intn(2) == 0 {
			m.within = time.Duration(5+n.random.Intn(60)) * time.Minute
		}
		m.draw(n.random, n.clock.now())
		n.put(fmt.Sprint("s", i), m)
	}
	time.Sleep(10 * time.Second)
	n.begin()
	defer func() { n.cancel() }()
	for _, m := range n.all {
		m.since, m.through = n.last, n.last
	}
	for range hours * 60 {
		n.pass(time.Minute)
		n.compare()
		n.happen()
		n.pass(0)
	}
}

func (n *anyNight) put(name string, m *anyModel) {
	n.all[name] = m
	n.must(os.WriteFile(filepath.Join(n.root, "schedules", name+".yaml"), m.file(name), 0o666))
}

// begin opens an engine that knows nothing but what is committed, and has it keep the schedules.
func (n *anyNight) begin() {
	var err error
	n.e, err = engine.Open(n.t.Context(), n.root, n.o)
	n.must(err)
	performing, stop := context.WithCancel(n.t.Context())
	deed := func(ctx context.Context, d timetable.Do) (string, bool, error) {
		n.mu.Lock()
		takes := time.Duration(n.takes.Intn(35))*time.Minute + time.Duration(5+n.takes.Intn(40))*time.Second // no minute's end is met
		n.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(takes):
		}
		return "done", false, nil
	}
	k := schedule.New(n.e.Ledger, n.e.Settings, map[string]schedule.Deed{"start": deed}, n.readyOf)
	n.last = n.clock.now()
	var done sync.WaitGroup
	done.Go(func() {
		k.Run(performing, performing, func(text string, bad bool) {
			name, _, ended := strings.Cut(strings.TrimPrefix(text, "schedule "), ", due ")
			n.mu.Lock()
			defer n.mu.Unlock()
			if bad {
				n.t.Errorf("told %q", text)
			}
			if ended {
				n.ends[name] = append(n.ends[name], ending{n.clock.now(), n.crew.ready[name]})
			}
		})
	})
	done.Go(func() { n.work(performing, k.Shifts) })
	n.cancel = func() { stop(); done.Wait(); n.must(n.e.Close()) }
	time.Sleep(time.Second)
}

// pass lets time pass, and has the models look as often as the keeper does.
func (n *anyNight) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, m := range n.all {
		for t := n.last; !t.After(n.clock.now()); t = t.Add(250 * time.Millisecond) {
			for len(n.ends[name]) > 0 && !n.ends[name][0].at.After(t) {
				e := n.ends[name][0]
				m.look(e.at)
				m.end(e.at, e.left)
				n.ends[name] = n.ends[name][1:]
			}
			m.look(t)
		}
		n.checkWork(name, m)
	}
	n.last = n.clock.now()
}

// compare holds what is on record against the models. What falls due in these very moments the keeper comes
// to with its next look.
func (n *anyNight) compare() {
	n.t.Helper()
	diff := n.diff()
	for i := 0; diff != "" && i < 8; i++ {
		if time.Sleep(300 * time.Millisecond); i%2 == 1 {
			n.pass(0)
		}
		diff = n.diff()
	}
	if diff != "" {
		n.t.Fatal(diff)
	}
	n.pass(0) // what ended meanwhile is told before a clock is put back
}

// diff is where models and records differ.
func (n *anyNight) diff() string {
	for name, m := range n.all {
		row, err := n.e.Schedule.Row(name)
		n.must(err)
		got, want := []string{}, []string{}
		for _, r := range m.runs {
			at := r.due
			if r != m.now && (at.After(m.ended) || !r.ended.IsZero() && at.After(r.ended)) { // of a clock that was put back: such go from the records first
				continue
			}
			for _, f := range row.Firings { // counted from an end or a leap, of which the keeper knows with its next look
				if off := f.Due.Sub(r.due).Abs(); off < 2*time.Second {
					at = f.Due
				}
			}
			want = append(want, at.UTC().Format(time.RFC3339)+" "+r.outcome)
		}
		for _, f := range row.Firings {
			if f.Outcome != "" && (f.Due.After(m.ended) || f.Due.After(f.Ended)) {
				continue
			}
			got = append(got, f.Due.UTC().Format(time.RFC3339)+" "+f.Outcome)
		}
		slices.Sort(want)
		slices.Sort(got)
		want, got = want[max(0, len(want)-10):], got[max(0, len(got)-10):]
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Sprintf("at %s: %s\n(-model +keeper):\n%s", n.clock.now().UTC().Format(time.RFC3339), m.file(name), diff)
		}
	}
	return ""
}

// happen does now and then what happens to a machine, and to schedules.
func (n *anyNight) happen() {
	name := fmt.Sprint("s", n.random.Intn(len(n.all)))
	m := n.all[name]
	for _, m := range n.all {
		m.looked = time.Time{}
	}
	switch n.random.Intn(40) {
	case 0: // it slept
		n.crew.rest()
		n.clock.leap(time.Duration(1+n.random.Intn(150)) * time.Minute)
		n.last = n.clock.now()
	case 1:
		v, err := n.e.Ledger.Store.Tip()
		n.must(err)
		about, err := v.About()
		n.must(err)
		if back := time.Duration(1+n.random.Intn(4)) * time.Minute; !n.clock.now().Add(30*time.Second - back).Before(about.When.Add(-4 * time.Minute)) {
			n.crew.rest()
			n.clock.leap(-back)
			n.last = n.clock.now()
		}
	case 2:
		n.cancel()
		for name, m := range n.all {
			m.ready = n.crew.ready[name]
			if m.seen = (time.Time{}); m.now != nil {
				m.now.orphaned = true
			}
		}
		n.begin()
	case 3:
		order := schedule.Stopped
		if m.stopped = !m.stopped; !m.stopped {
			order = schedule.Started
		}
		_, err := n.e.Schedule.Set(n.t.Context(), n.e.Ledger.ByPerson(), name, schedule.Order{Status: order})
		n.must(err)
		if !m.stopped {
			m.since, m.through, m.retimed = n.clock.now(), n.clock.now(), false
		}
	case 4:
		n.mu.Lock()
		was := m.trigger(name)
		m.draw(n.random, n.clock.now())
		m.retimed, m.edited, m.ready = m.retimed || m.trigger(name) != was, true, n.crew.ready[name]
		n.mu.Unlock()
		n.put(name, m)
		n.must(n.e.Settings.Sync(n.t.Context()))
	case 5, 6, 7, 8: // items come
		n.mu.Lock()
		defer n.mu.Unlock()
		n.crew.ready[name] += 1 + n.random.Intn(4)
		m.ready = n.crew.ready[name]
	}
}
