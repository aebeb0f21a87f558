package remote

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// worker is one worker that said hello.
type worker struct {
	wire.Hello
	seen    time.Time // when it was last heard
	since   time.Time
	state   string
	classes []string
	ordered
	shown   time.Time // when it was shown among the engines last; zero: it is not
	done    int       // attempts that it ended
	failed  int
	met     time.Time // when it said hello last
	took    wire.Took
	pinged  bool   // it has just answered
	lapses  int    // attempts in a row that were lost, or timed out
	suspect string // why it was suspended: it lied
	refused int    // its messages that were refused
}

// ordered is what a person ordered.
type ordered struct {
	stopped bool // it begins nothing more
	drained bool // it ends when nothing runs
}

// The states of a worker, as it tells them.
const (
	StateReady    = "ready"
	StateDraining = "draining"
	StateSilent   = "silent"
	StateStopped  = "stopped"
	StateSuspect  = "suspended"
	StateGone     = "gone" // it said that it ends
)

// demand is what a step asks of a worker, and how it is placed.
type demand struct {
	wire.Want
	settings.Placement
	class string
}

// demandOf gives what a placed step asks for of an engine of this build.
func demandOf(s *state.Step, p settings.Placement, build string) demand {
	want := p.WantOf(s, build)
	return demand{want, p, want.Class()}
}

// meets reports whether a worker may do what is asked.
func (w *worker) meets(d demand, version string) bool {
	return d.Want.Met(w.Name, w.Build, version, w.Labels, w.Robots)
}

// versionOf is that of the robot which does what is asked: of a program what its worker tells, if it does, else the worker's build.
func (w *worker) versionOf(want wire.Want) string {
	for _, o := range w.Robots {
		if o.Name == want.Robot && !o.Builtin && !want.Builtin && o.Version != "" {
			return o.Version
		}
	}
	return w.Build
}

// guest is how a worker is shown among the engines: its name, and its host.
func (w *worker) guest() string { return string(w.Name) + " on " + w.Host }

// works reports whether a worker begins steps.
func (w *worker) works() bool {
	return w.state == StateReady && !w.stopped && !w.drained && w.suspect == ""
}

// gate is who comes in, and who is turned away.
type gate struct{ *Remote }

// hello takes a worker in, or says why not.
func (r gate) hello(name layout.Name, h wire.Hello) wire.Welcome {
	lease := r.lease()
	welcome := wire.Welcome{Head: wire.Now(), Lease: lease, Transfer: r.place.Transfer, Probe: r.place.Probe}
	if welcome.Refused = r.refusal(name, h); welcome.Refused != "" {
		r.rooms.Log.Warn("a worker was refused", "worker", name, "why", welcome.Refused)
		r.refused(name)
		return welcome
	}
	h.Shared = trueIf(h.Shared == r.place.Probed)
	r.mu.Lock()
	before := r.workers[name]
	w := &worker{Hello: h, met: r.rooms.Now(), seen: r.rooms.Now(), since: r.rooms.Now(), state: StateReady}
	if before != nil && before.Engine == h.Engine {
		w.since, w.ordered, w.done, w.failed = before.since, before.ordered, before.done, before.failed
		w.took, w.refused = before.took, before.refused
	}
	if before != nil {
		w.lapses, w.suspect = before.lapses, before.suspect
	}
	r.workers[name] = w
	r.serve(w)
	welcome.Orders = r.orders(w)
	r.mu.Unlock()
	r.showOne(h.Engine, w.guest(), h.PID)
	if before == nil || before.Engine != h.Engine {
		r.rooms.Report(fmt.Sprintf("worker %s (%s:%d) is connected: %s, %s", name, h.Host, h.PID, layout.Count(h.Slots, "slot"), robotsText(h.Robots)))
	}
	r.rooms.Nudge()
	return welcome
}

func trueIf(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

func robotsText(robots []wire.Robot) (text string) {
	for i, o := range robots {
		if i > 0 {
			text += ", "
		}
		text += string(o.Name)
	}
	return text
}

const mostWorkers, mostSlots, mostRobots = 1000, 10_000, 100

// mostVersion bounds the bytes of a version: each attempt's record has one.
const mostVersion = 100

// refusal says why a worker is not wanted.
func (r gate) refusal(name layout.Name, h wire.Hello) string {
	if h.Name != name {
		return fmt.Sprintf("the key is that of worker %s", name)
	}
	if _, err := layout.ParseEngineID(string(h.Engine)); err != nil {
		return err.Error()
	}
	if h.Slots < 1 || h.Slots > mostSlots || len(h.Robots) > mostRobots {
		return fmt.Sprintf("%d slots, %d robots: expected 1 to %d slots, and at most %d robots", h.Slots, len(h.Robots), mostSlots, mostRobots)
	}
	for _, o := range h.Robots {
		if _, err := layout.ParseName(string(o.Name)); err != nil {
			return "a robot's name: " + err.Error()
		}
		if len(o.Version) > mostVersion {
			return fmt.Sprintf("a version of %d bytes of robot %s: expected at most %d", len(o.Version), o.Name, mostVersion)
		}
	}
	if len(h.Build) > mostVersion {
		return fmt.Sprintf("a build of %d bytes: expected at most %d", len(h.Build), mostVersion)
	}
	r.mu.Lock()
	before := r.workers[name]
	r.mu.Unlock()
	if before != nil && before.Engine != h.Engine && r.twice(name, before) {
		return fmt.Sprintf("another worker is connected as %s, from %s:%d", name, before.Host, before.PID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.workers) >= mostWorkers && r.workers[name] == nil {
		return fmt.Sprintf("%d workers are connected already", mostWorkers)
	}
	return ""
}

// twice reports whether a worker of a name is there, beside the one that says hello.
func (r gate) twice(name layout.Name, w *worker) bool {
	if r.place.Twice != nil {
		return r.place.Twice(name)
	}
	return r.answers(name, w, time.Second)
}

// answers asks a worker to beat now, and reports whether it did.
func (r gate) answers(name layout.Name, w *worker, within time.Duration) bool {
	asked := r.rooms.Now()
	r.tell(name, wire.Orders{Head: wire.Now(), Beat: true})
	for r.rooms.Now().Sub(asked) < within {
		time.Sleep(10 * time.Millisecond)
		r.mu.Lock()
		heard := w.seen.After(asked)
		r.mu.Unlock()
		if heard {
			return true
		}
	}
	return false
}

// suspend grants a worker that lied nothing more, until a person resumes it.
func (r gate) suspend(name layout.Name, why string) {
	r.mu.Lock()
	w := r.workers[name]
	fresh := w != nil && w.suspect == ""
	if fresh {
		w.suspect = why
		r.serve(w)
	}
	var orders wire.Orders
	if w != nil {
		orders = r.orders(w)
	}
	r.mu.Unlock()
	if fresh {
		r.tell(name, orders)
		r.rooms.Alarm(fmt.Sprintf("worker %s is suspended: %s; nothing is granted to it until a person resumes it", name, why))
	}
}

// drop forgets a worker whose key was revoked; its leases run out.
func (r gate) drop(name layout.Name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.workers[name]; w != nil {
		w.state, w.classes = StateSilent, nil
		r.regroup()
	}
}

// findDemands finds what the placed steps ask for, of the workflows in force and of those that
// items in flight have. It reports whether that has changed.
func (r *Remote) findDemands() bool {
	now := r.rooms.Settings.Current()
	found := map[string]demand{}
	for _, d := range r.rooms.Plans() {
		for i := range d.Steps {
			s := &d.Steps[i]
			if s.External {
				continue
			}
			if p, ok := now.Settings.Workers.Placed(d.Name, s.Name); ok && settings.StaysHere(s, r.rooms.Robots, now.Asks()) == "" {
				want := demandOf(s, p, r.rooms.Version)
				found[want.class] = want
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	same := maps.EqualFunc(found, r.demands, func(a, b demand) bool { return a.class == b.class && a.Lease == b.Lease })
	r.demands = found
	return !same
}

// tellAll has every worker learn its classes.
func (r *Remote) tellAll() {
	r.mu.Lock()
	told := map[layout.Name]wire.Orders{}
	for name, w := range r.workers {
		r.serve(w)
		told[name] = r.orders(w)
	}
	r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(told)) {
		r.tell(name, told[name])
	}
}

func (r *Remote) tell(name layout.Name, o wire.Orders) {
	if data, err := wire.Encode(o); err == nil {
		r.place.Broker.Tell(name, data)
	}
}

// recall takes the offers back that no worker is left for, so that May is asked again who is to do them. Those of an item that a
// person wants one worker to do wait for it.
func (r *Remote) recall() {
	r.mu.Lock()
	back := r.takeBack(func(o *offer) bool {
		_, placed := r.demands[o.demand.class]
		_, able := r.free(o.demand)
		return able == 0 && placed
	})
	r.mu.Unlock()
	withdraw(back)
}
