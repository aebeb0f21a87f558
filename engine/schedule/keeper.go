package schedule

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/settings"
	"bagpipe/engine/timetable"
	"bagpipe/layout"
)

// Deed does what a schedule asks for, and says how it went; failed is an outcome, no error.
type Deed func(ctx context.Context, d timetable.Do) (said string, failed bool, err error)

// Keeper fires the schedules of a workspace.
type Keeper struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	deeds    map[string]Deed // fixity, scan, start
	ready    Ready
	Shifts   *Shifts

	mu      sync.Mutex // guards the rest
	seen    map[string]*State
	hashes  map[string]gitstore.Hash           // of the states seen
	running map[string]context.CancelCauseFunc // fired here
	agenda  agenda
	book    *settings.Snapshot // by which next was reckoned
	at      gitstore.Hash      // the commit at which the states were read
	states  gitstore.Hash      // their folder
	clock   clock
	handed  handed
}

// handed are the firings that people hand to Run. Keeper.mu guards to; nil: no Run works. giving
// counts those who are about to send, whom Run waits for when it ends.
type handed struct {
	to     chan *firing
	giving sync.WaitGroup
}

// clock is what is known of how the machine's clock goes.
type clock struct {
	mu   sync.Mutex           // guards seen
	last time.Time            // of the last commit
	seen map[string]time.Time // by schedule: when its last end was found to be still to come
}

// Ready counts the steps of a queue that a robot can begin now.
type Ready func(*queue.Named) (int, error)

// New gives the keeper of a workspace's schedules. deeds are what they can do beside running
// programs: fixity, scan and start.
func New(l *ledger.Ledger, s *settings.Source, deeds map[string]Deed, ready Ready) *Keeper {
	return &Keeper{ledger: l, settings: s, deeds: deeds, ready: ready, Shifts: newShifts(s),
		seen: map[string]*State{}, hashes: map[string]gitstore.Hash{}, running: map[string]context.CancelCauseFunc{},
		agenda: newAgenda(), clock: clock{seen: map[string]time.Time{}}}
}

// lookEvery is how exactly a due time is kept.
const lookEvery = 250 * time.Millisecond

// Run fires what is due until ctx ends, then waits for what runs; performing ends that, too,
// and then it is resumed by the next engine. told hears of each end, and of trouble.
func (k *Keeper) Run(ctx, performing context.Context, told func(text string, bad bool)) {
	var firings sync.WaitGroup
	defer firings.Wait()
	begin := func(f *firing) {
		ctx := k.begin(performing, f)
		firings.Go(func() {
			said, bad := k.perform(performing, ctx, f)
			told(said, bad)
		})
	}
	hands := make(chan *firing)
	setHands(k, hands)
	defer func() {
		setHands(k, nil)
		go func() { k.handed.giving.Wait(); close(hands) }()
		for f := range hands {
			begin(f)
		}
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		ripe := k.ripe()
		if err := k.beginNew(ctx, ripe); err != nil && ctx.Err() == nil {
			told(err.Error(), true)
		}
		for some := range slices.Chunk(ripe, claimedAtOnce) {
			for _, f := range claimAll(ctx, k, some, told) {
				begin(f)
			}
		}
		select {
		case <-ctx.Done():
			return
		case f := <-hands:
			begin(f)
		case <-tick.C:
		}
	}
}

// claimedAtOnce is how many claims are handed to the store at once: those of one moment wait for the disk together.
const claimedAtOnce = 64

// claimAll claims what is due of some schedules, side by side, and gives the firings in their order.
func claimAll(ctx context.Context, k *Keeper, names []string, told func(text string, bad bool)) []*firing {
	fire := make([]*firing, len(names))
	var claims sync.WaitGroup
	for i, name := range names {
		claims.Go(func() {
			var err error
			if fire[i], err = k.claim(ctx, name); err != nil && ctx.Err() == nil {
				told(fmt.Sprintf("schedule %s: %v", name, err), true)
				k.later(name, time.Minute)
			}
		})
	}
	claims.Wait()
	return slices.DeleteFunc(fire, func(f *firing) bool { return f == nil })
}

func setHands(k *Keeper, to chan *firing) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.handed.to = to
}

// ripe names the schedules that may have something to do, in order.
func (k *Keeper) ripe() (names []string) {
	book, now := k.settings.Current(), k.ledger.Now()
	if err := k.refresh(); err != nil {
		return nil // whoever looks at the history tells
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if book != k.book {
		k.book, k.agenda = book, newAgenda()
	}
	if k.agenda.see(now); k.agenda.idle(now) {
		return nil
	}
	idle := true
	for name := range book.Schedules {
		if k.running[name] != nil && book.Schedules[name].Overlap != timetable.OverlapReplace {
			continue
		}
		if k.agenda.ripe(name, now) {
			names, idle = append(names, name), false
		}
	}
	if idle {
		k.agenda.rest()
	}
	slices.Sort(names)
	return names
}

// refresh reads the states that others committed.
func (k *Keeper) refresh() error {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if v.Commit() == k.at {
		return nil
	}
	about, err := v.About()
	if err != nil {
		return err
	}
	if k.clock.behind(k.ledger.Now()) != (k.ledger.Now().Add(behindBy).Before(about.When)) {
		k.agenda = newAgenda() // a clock that was wrong, or is
	}
	k.clock.last = about.When
	states, err := v.TreeOf(layout.FiringsDir)
	if err != nil {
		return err
	}
	if states == k.states && !states.IsZero() { // steps went on: no state is another
		k.at = v.Commit()
		return nil
	}
	entries, err := v.List(layout.FiringsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		name := nameOf(e.Name)
		if name == "" || k.hashes[name] == e.Hash {
			continue
		}
		s, err := read(v, name)
		if err != nil || s == nil { // told of when it is to be fired; nil: a pushed folder has its name
			delete(k.seen, name)
			continue
		}
		k.seen[name], k.hashes[name] = s, e.Hash
		k.agenda.again(name)
		if _, f := s.running(); f.Stop != "" && f.Engine == k.ledger.ID && k.running[name] != nil {
			k.running[name](errStopped)
		}
	}
	k.at, k.states = v.Commit(), states
	return nil
}

func nameOf(file string) string {
	if len(file) < len("x.json") || file[len(file)-5:] != ".json" {
		return ""
	}
	return file[:len(file)-5]
}

func (k *Keeper) later(name string, by time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.agenda.plan(name, k.ledger.Now().Add(by))
}

// behindBy is how far the clock may be behind the last commit.
const behindBy = 5 * time.Minute

// behind reports whether the clock is wrong: what it tells is before what was done.
func (c *clock) behind(now time.Time) bool { return now.Add(behindBy).Before(c.last) }

// Behind is how far the clock is behind the last commit, if that is so far that cron and at
// wait; else 0.
func (k *Keeper) Behind() (time.Duration, error) {
	if err := k.refresh(); err != nil {
		return 0, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.clock.behind(k.ledger.Now()) {
		return 0, nil
	}
	return k.clock.last.Sub(k.ledger.Now()), nil
}

func isBehind(k *Keeper) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.clock.behind(k.ledger.Now())
}

// firing is what was claimed.
type firing struct {
	*timetable.Schedule
	due    time.Time
	byHand Deed      // that does what is ready in a queue; nil: the loop does that hands steps out
	begun  time.Time // of one that is resumed; zero: it begins
}

// due are the times for which a schedule is to be fired now.
func (k *Keeper) due(s *timetable.Schedule, st *State) (fire []time.Time, passed time.Time, err error) {
	now := k.ledger.Now()
	switch {
	case s.Timed() && isBehind(k):
		return nil, passed, nil
	case s.Trigger.Queue == "":
		ended := k.clock.counted(s.Name, st, now)
		fire, passed = s.Due(st.Through, ended, now)
		if s.Missed == timetable.MissedAll && !passed.IsZero() && len(st.notDuring(s, s.Passed(st.Through, ended, now))) == 0 {
			passed = time.Time{} // none was missed: each fell into a firing
		}
		return st.notDuring(s, fire), passed, nil
	case !s.Open(now):
		return nil, passed, nil
	}
	q, err := k.queueOf(s)
	if err != nil {
		return nil, passed, err
	}
	n, err := k.ready(q)
	if err != nil || n == 0 {
		return nil, passed, err
	}
	return []time.Time{now}, passed, nil
}

// counted is from when every: counts: the last end, or, where the clock was put back before
// it, the time at which that was seen.
func (c *clock) counted(name string, st *State, now time.Time) time.Time {
	ended, ahead := st.ended(now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ahead {
		delete(c.seen, name)
		return ended
	}
	seen, known := c.seen[name]
	if !known || seen.After(now) {
		seen = now
		c.seen[name] = seen
	}
	if seen.After(ended) {
		return seen
	}
	return ended
}

// look reports whether a schedule that is known has something to do, which most have not, and
// when to look again.
func (k *Keeper) look(s *timetable.Schedule, known *State) (bool, error) {
	if known.Status == Stopped {
		k.later(s.Name, time.Hour)
		return false, nil
	}
	if known.Timing != s.Timing() && known.Timing != "" || s.Timed() && known.ahead(k.ledger.Now()) && !isBehind(k) {
		return true, nil
	}
	at, f := known.running()
	switch {
	case f.Engine == k.ledger.ID && f.Engine != "" && !s.Timed(): // what counts from its end, or is at work on a queue, is not due
		k.later(s.Name, time.Second)
		return false, nil
	case f.Engine == k.ledger.ID && f.Engine != "": // of overlap: replace
		fire, _, err := k.due(s, known)
		k.mu.Lock()
		if end := k.running[s.Name]; len(fire) > 0 && end != nil {
			end(errReplaced)
		}
		k.mu.Unlock()
		k.later(s.Name, time.Second)
		return false, err
	case !at.IsZero() && f.Engine != "" && k.ledger.Seat.MayBeAlive(f.Engine):
		k.later(s.Name, time.Second)
		return false, nil
	case !at.IsZero():
		return true, nil
	}
	fire, passed, err := k.due(s, known)
	if err != nil || len(fire) > 0 || !passed.IsZero() {
		return err == nil, err
	}
	now := k.ledger.Now()
	after := known.Through
	if now.After(after) { // what was due until now, and is not fired, fell into a firing
		after = now
	}
	next, ever := s.Next(after, k.clock.counted(s.Name, known, now))
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case s.Trigger.Queue != "":
		next = now.Add(time.Second / 2)
	case !ever:
		next = now.Add(time.Hour)
	case !next.After(now): // the clock is behind
		next = now.Add(time.Minute)
	}
	k.agenda.plan(s.Name, next)
	return false, nil
}

// claim commits that a schedule is fired now by this engine; nil: it is not.
func (k *Keeper) claim(ctx context.Context, name string) (*firing, error) {
	s := k.settings.Current().Schedules[name]
	if s == nil {
		return nil, nil
	}
	k.mu.Lock()
	known := k.seen[name]
	k.mu.Unlock()
	if known != nil { // most looks end here, without a commit
		if some, err := k.look(s, known); err != nil || !some {
			return nil, err
		}
	}
	var out *firing
	err := k.edit(ctx, k.ledger.ByEngine(), name, func(st *State) (what string, due time.Time, err error) {
		out = nil
		now := k.ledger.Now()
		if st.Status == Stopped {
			return "", due, nil
		}
		if due, f := st.running(); !due.IsZero() {
			return k.takeUp(s, st, due, f, &out)
		}
		fire, passed, err := k.due(s, st)
		switch {
		case err != nil:
			return "", due, err
		case len(fire) > 0:
			due, st.Through = fire[0], fire[0]
			st.Firings[due] = Firing{Begun: now, Engine: k.ledger.ID}
			out = &firing{Schedule: s, due: due}
			return "fired", due, nil
		case !passed.IsZero():
			st.Through = passed
			st.Firings[passed] = Firing{Ended: now, Engine: k.ledger.ID, Outcome: Missed}
			st.Ended = now // every: counts from here on
			return "missed", passed, nil
		}
		return "", due, nil
	})
	return out, err
}

// takeUp goes on with a firing whose engine is gone, once.
func (k *Keeper) takeUp(s *timetable.Schedule, st *State, due time.Time, f Firing, out **firing) (what string, _ time.Time, err error) {
	if k.ledger.Seat.MayBeAlive(f.Engine) {
		return "", due, nil
	}
	f.raw = nil
	switch {
	case f.Stop != "":
		f.Ended, f.Outcome, f.Message = k.ledger.Now(), Ended, "by "+f.Stop+"; its engine was gone"
		st.Firings[due], st.Ended = f, f.Ended
		return "ended", due, nil
	case f.Resumed:
		f.Ended, f.Outcome, f.Message = k.ledger.Now(), Lost, "its engine was gone twice"
		st.Firings[due], st.Ended = f, f.Ended
		return Lost, due, nil
	}
	f.Resumed, f.Engine = true, k.ledger.ID
	st.Firings[due] = f
	*out = &firing{Schedule: s, due: due, begun: f.Begun}
	return "resumed", due, nil
}

// edit changes a schedule's state by one commit; what is nothing where nothing is to be
// changed. A schedule that was never seen begins with it.
func (k *Keeper) edit(ctx context.Context, who ledger.Actor, name string, change func(*State) (what string, due time.Time, err error)) error {
	if k.ledger.ReadOnly {
		return gitstore.ErrReadOnly
	}
	_, err := k.ledger.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		st, err := read(r, name)
		if err != nil {
			return nil, err
		}
		now, begun := k.ledger.Now(), st == nil
		if begun {
			st = newState(name, now)
		}
		retimed := false
		if s := k.settings.Current().Schedules[name]; s != nil {
			retimed = st.adopt(s.Timing(), now)
			if s.Timed() && st.ahead(now) && !isBehind(k) {
				retimed, st.Since, st.Through = true, now, now
			}
		}
		what, due, err := change(st)
		if err != nil {
			return nil, err
		}
		if what == "" && begun {
			what = Started
		}
		if what == "" && retimed {
			what = "retimed"
		}
		if what == "" {
			return nil, nil
		}
		data, err := st.encode()
		if err != nil {
			return nil, err
		}
		trailers := []ledger.Trailer{{"Bagpipe-Schedule", name}}
		if !due.IsZero() {
			trailers = append(trailers, ledger.Trailer{"Bagpipe-Due", layout.FormatTime(due)})
		}
		return &gitstore.Change{Files: map[string][]byte{path(name): data}, Author: who.Author,
			Message: who.Sign(ledger.Message("schedule: "+what+" "+name, "", append(trailers, ledger.Trailer{"Bagpipe-Agent", who.Agent})))}, nil
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("schedule %s: %w", name, err)
	}
	return err
}
