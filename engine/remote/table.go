package remote

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/attempt"
	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
)

// table is who is connected, what is on offer, and what is lent.
type table struct {
	version string           // of this program
	now     func() time.Time // monotonic

	mu      sync.Mutex // guards the rest
	epoch   string
	offers  map[string]*offer
	loans   map[layout.AttemptRef]*loan
	granted map[string]*loan             // by offer, for a worker that asks again
	ended   map[layout.AttemptRef]string // the nonces of ends that were taken
	workers map[layout.Name]*worker
	demands map[string]demand // by class
	closing bool
	serial  int
	noted
	counted
	asking
}

// asking are the programs that come over HTTP.
type asking struct {
	asks      []*ask               // the claims that wait, the longest first
	claimants map[string]*claimant // by account
	resuming  bool                 // what an engine before lent is not taken up yet
}

// noted is what is remembered of steps and classes.
type noted struct {
	trouble  string                 // why nothing can be offered
	barren   map[string]time.Time   // since when no worker could do the steps of a class
	took     map[string]wire.Took   // by what was asked for
	aimed    map[string]demand      // by class: of items that are for one worker
	failedAt map[stepAt]layout.Name // the worker where the last attempt did not go well
}

// stepAt is one step of one item.
type stepAt struct {
	item     layout.ItemID
	workflow string
	step     layout.Name
}

func stepOf(ref layout.AttemptRef) stepAt { return stepAt{ref.Item, ref.Workflow, ref.Step} }

func newTable(rooms Rooms) table {
	return table{version: rooms.Version, now: rooms.Now, offers: map[string]*offer{}, loans: map[layout.AttemptRef]*loan{},
		granted: map[string]*loan{},
		noted:   noted{barren: map[string]time.Time{}, took: map[string]wire.Took{}, aimed: map[string]demand{}, failedAt: map[stepAt]layout.Name{}},
		counted: counted{offered: map[string]int{}, busy: map[layout.EngineID]int{}, clearing: noneSpent()},
		ended:   map[layout.AttemptRef]string{}, workers: map[layout.Name]*worker{}, asking: asking{claimants: map[string]*claimant{}}}
}

// counted is kept beside offers and loans: every step that is looked at asks for it.
type counted struct {
	offered  map[string]int          // offers, by class
	claims   int                     // offers that are being claimed
	busy     map[layout.EngineID]int // loans that are not being ended
	refusals int                     // messages that were refused, whoever sent them
	forces
	clearing
}

// refused counts a message that was refused. name is whose key it came with; "" or a name that is not connected is
// counted in the sum alone. t.mu is taken.
func (t *table) refused(name layout.Name) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refusals++
	if w := t.workers[name]; w != nil {
		w.refused++
	}
}

// refusedOf is refused of a request that names an attempt of the worker with this engine identifier.
func (t *table) refusedOf(id layout.EngineID) {
	name := layout.Name("")
	t.mu.Lock()
	for _, w := range t.workers {
		if w.Engine == id {
			name = w.Name
		}
	}
	t.mu.Unlock()
	t.refused(name)
}

// running counts the loans of a worker; t.mu is held.
func (t *table) running(w *worker) int { return t.busy[w.Engine] }

// enter takes a loan in; t.mu is held.
func (t *table) enter(l *loan) {
	t.loans[l.ref] = l
	t.runs(l.ref.Key.Engine, 1)
}

// conclude begins the end of a loan; t.mu is held.
func (t *table) conclude(l *loan) {
	l.ending = true
	t.runs(l.ref.Key.Engine, -1)
}

// claim begins the claim of an offer; t.mu is held.
func (t *table) claim(o *offer) {
	o.claiming = true
	t.claims++
}

// withhold removes an offer; t.mu is held.
func (t *table) withhold(o *offer) {
	delete(t.offers, o.id)
	if t.offered[o.demand.class]--; t.offered[o.demand.class] <= 0 {
		delete(t.offered, o.demand.class)
	}
	if o.claiming {
		t.claims--
	}
	t.spend(o.demand.class, o.place)
}

// serve finds the classes that a worker may pull from; t.mu is held.
func (t *table) serve(w *worker) {
	w.classes = nil
	t.regroup()
	if !w.works() {
		return
	}
	for _, all := range []map[string]demand{t.demands, t.aimed} {
		for class, d := range all {
			if w.meets(d, t.version) {
				w.classes = append(w.classes, class)
				delete(t.barren, class)
			}
		}
	}
	w.classes = slices.Compact(slices.Sorted(slices.Values(w.classes)))
}

// orders are what a worker is told; t.mu is held.
func (t *table) orders(w *worker) wire.Orders {
	return wire.Orders{Head: wire.Now(), Classes: w.classes, Epoch: t.epoch, Lease: leastLease(t.demands), Drain: w.drained, Stop: w.stopped}
}

// force is who could do what is asked for.
//
// The dispatcher asks for each step that it looks at who could do it, and there may be a thousand workers. So the answer is counted
// once, and kept while attempts begin and end; whatever else changes who may begin steps calls regroup, and it is counted anew.
type force struct{ free, able int } // slots, and workers

// forces are those that were asked about; the table's lock guards them.
type forces struct {
	known   map[crew]*force
	working map[layout.EngineID]*serving // that begin steps; nil: to be counted anew
	spare   int                          // free slots of all
}

// serving is a worker that begins steps, and the forces that it is one of.
type serving struct {
	*worker
	of []*force
}

// crew tells demands apart that other workers meet.
type crew struct {
	class   string
	builtin bool
}

// regroup has all forces counted anew; the table's lock is held.
func (f *forces) regroup() { *f = forces{} }

// group counts the workers that begin steps; t.mu is held.
func (t *table) group() {
	if t.working != nil {
		return
	}
	t.forces = forces{known: map[crew]*force{}, working: map[layout.EngineID]*serving{}}
	for _, w := range t.workers {
		if w.works() {
			t.working[w.Engine] = &serving{worker: w}
			t.spare += t.idle(w)
		}
	}
}

// idle counts the free slots of a worker; t.mu is held.
func (t *table) idle(w *worker) int { return max(0, w.Slots-t.running(w)) }

// free counts the free slots of the workers that may do what is asked, and those workers;
// t.mu is held.
func (t *table) free(d demand) (free, able int) {
	t.group()
	key := crew{d.class, d.Builtin}
	f := t.known[key]
	if f == nil {
		f = &force{}
		t.known[key] = f
		for _, s := range t.working {
			if s.meets(d, t.version) {
				f.able++
				f.free += t.idle(s.worker)
				s.of = append(s.of, f)
			}
		}
	}
	return f.free, f.able
}

func (t *table) allFree() int {
	t.group()
	return t.spare
}

// runs notes that a worker has more attempts, or fewer; t.mu is held.
func (t *table) runs(id layout.EngineID, more int) {
	s := t.working[id]
	before := 0
	if s != nil {
		before = t.idle(s.worker)
	}
	if t.busy[id] += more; t.busy[id] <= 0 {
		delete(t.busy, id)
	}
	if s == nil {
		return
	}
	change := t.idle(s.worker) - before
	t.spare += change
	for _, f := range s.of {
		f.free += change
	}
}

// takeBack removes offers that nobody claims; t.mu is held.
func (t *table) takeBack(which func(*offer) bool) (back []*attempt.Away) {
	for _, o := range t.offers {
		if !o.claiming && which(o) {
			t.withhold(o)
			back = append(back, o.work)
		}
	}
	return back
}

func withdraw(back []*attempt.Away) {
	for _, w := range back {
		w.Withdraw()
	}
}

// awaits reports whether steps wait for workers for a time that may be over; t.mu is taken.
func (t *table) awaits() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for class := range t.barren {
		if t.demands[class].Wait > 0 {
			return true
		}
	}
	return false
}

// lease is how long a worker of no placed step in particular may be silent.
func (t *table) lease() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return leastLease(t.demands)
}

func leastLease(demands map[string]demand) time.Duration {
	least := time.Duration(0)
	for _, d := range demands {
		if least == 0 || time.Duration(d.Lease) < least {
			least = time.Duration(d.Lease)
		}
	}
	if least == 0 {
		least = 30 * time.Second
	}
	return least
}

// close takes a loan to be ended by the caller; nil where there is none, or it is being ended.
func (t *table) close(ref layout.AttemptRef) *loan {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.loans[ref]
	if l == nil || l.ending {
		return nil
	}
	t.conclude(l)
	return l
}

// errEnding says that the bytes of an attempt which is being ended do not change any more: they may be verified
// already.
var errEnding = errors.New("the attempt is being ended, or has ended")

// writing calls f, which writes below the scratch folder of a loan that is not being ended. After settled no
// such call is under way.
func (t *table) writing(l *loan, f func() error) error {
	l.parts.RLock()
	defer l.parts.RUnlock()
	t.mu.Lock()
	over := l.ending || t.loans[l.ref] != l
	t.mu.Unlock()
	if over {
		return errEnding
	}
	return f()
}

// settled waits until nothing is prepared or written any more of a loan that is being ended.
func (l *loan) settled() {
	for _, turn := range []sync.Locker{&l.prepare, &l.parts} {
		turn.Lock()
		defer turn.Unlock()
	}
}

// part writes the bytes of a part as they come.
type part struct {
	t  *table
	l  *loan
	to *os.File
}

func (p part) Write(data []byte) (n int, err error) {
	err = p.t.writing(p.l, func() error {
		n, err = p.to.Write(data)
		return err
	})
	return n, err
}

// reopen lets a loan go on whose end did not count.
func (t *table) reopen(l *loan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.ending, l.expires = false, t.now().Add(l.lease)
	t.runs(l.ref.Key.Engine, 1)
}

// renew gives all leases anew: this engine was cut off, and could hear nobody.
func (t *table) renew(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.loans {
		l.expires = now.Add(l.lease)
	}
	for _, w := range t.workers {
		w.seen = now
	}
}

// overdue reports whether a lease ran out; t.mu is taken.
func (t *table) overdue(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.loans {
		if !l.ending && now.After(l.expires) {
			return true
		}
	}
	return false
}

// expired takes the loans whose leases ran out.
func (t *table) expired(now time.Time) (gone []*loan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	silence := time.Duration(0) // a worker may say nothing for the longest of the leases
	for _, d := range t.demands {
		silence = max(silence, time.Duration(d.Lease))
	}
	if silence == 0 {
		silence = 30 * time.Second
	}
	for _, l := range t.loans {
		if !l.ending && now.After(l.expires) {
			t.conclude(l)
			gone = append(gone, l)
		}
	}
	for _, w := range t.workers {
		if w.state != StateSilent && now.Sub(w.seen) > silence {
			w.state, w.classes = StateSilent, nil
			t.regroup()
		}
	}
	return gone
}
