package queue

import (
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// inProgress and others are the numbers of statuses in packed items.
const (
	waiting = iota
	inProgress
	completed
	skipped
	failed
)

const (
	standsNowhere = iota
	standsReady
	standsDated // ready once its time has come
)

func (g *glance) clear() { *g = glance{runs: g.runs[:0], steps: g.steps[:0], tried: g.tried[:0]} }

func (g *glance) place() place { return place{g.lane, g.collection, g.batch} }

// find gives a run by the number of its name; nil when there is none.
func (g *glance) find(name uint64) *glanceRun {
	for r := range g.runs {
		if g.runs[r].name == name {
			return &g.runs[r]
		}
	}
	return nil
}

// placeOf is a run's place among the item's, which are in the order they began.
func (g *glance) placeOf(run *glanceRun) uint16 {
	for r := range g.runs {
		if g.runs[r].name == run.name {
			return uint16(r)
		}
	}
	return 0
}

// standing tells whether step i of a run is ready, or is once its time has come: what
// BlockedAt says of the whole item.
func (g *glance) standing(run *glanceRun, i int) (how int, until int64) {
	s := &g.steps[run.from+i]
	switch {
	case g.traits&(Held|Broken) != 0 || s.status != waiting:
	case s.code == codeNone:
		return standsReady, 0
	case s.until != 0:
		return standsDated, s.until
	}
	return standsNowhere, 0
}

// flies tells whether a run of the item is in flight: at work, or begun and not waiting
// for what may take long. What other items say goes before a control, so that the
// reason of a step that waits for children is theirs.
func (g *glance) flies(run *glanceRun) bool {
	if g.traits&(Held|Broken) != 0 || run.status != inProgress {
		return false
	}
	begun, waits := false, false
	for i := range run.to - run.from {
		s := &g.steps[run.from+i]
		if s.status == inProgress {
			return true
		}
		waits = waits || s.again || s.person() || s.code == codeDate || s.code == codeChildren || s.code == codeBatch || s.code == codeForeign
		begun = begun || i > 0 && s.attempts > 0
	}
	return begun && !waits
}

// person tells whether a step waits for a person.
func (s *glanceStep) person() bool { return s.code == codeManual || s.code == codeDateless }

// awaitsOthers tells whether the item waits for other items alone: its batch, or its
// children, which must be let through for it to go on.
func (g *glance) awaitsOthers() (awaits bool) {
	for i := range g.steps {
		s := &g.steps[i]
		if s.status == inProgress || s.status == waiting && s.code == codeNone {
			return false
		}
		awaits = awaits || s.code == codeChildren || s.code == codeBatch
	}
	return awaits
}

// open counts the steps that are expected to be done without a person: those
// that wait or run, up to the first that waits for one.
func (g *glance) open() (n int) {
	if g.traits&(Held|Broken) != 0 {
		return 0
	}
	for r := range g.runs {
		run := &g.runs[r]
		if s := statuses[run.status]; s == state.Failed || s == state.Inactive {
			continue
		}
		for _, s := range g.steps[run.from:run.to] {
			if s.person() {
				break
			}
			if s.status == waiting || s.status == inProgress {
				n++
			}
		}
	}
	return n
}

// keyOf names the queue of a ready step.
func (x *Index) keyOf(g *glance, run *glanceRun, n int) readyKey {
	plan := x.names.plan(run.plan)
	return readyKey{StepID{plan.Name, layout.Name(plan.Steps[n].Name)}, g.flies(run)}
}

// traitsOf and createdOf read the first bytes of a packed item.
func traitsOf(b []byte) Trait { return Trait((&unpacker{b: b}).num()) }

func createdOf(b []byte) int64 {
	u := &unpacker{b: b}
	for range 4 {
		u.num()
	}
	ms, _, _ := u.millis()
	return ms
}

// stillReady tells whether an entry is what it was pushed as: of a step that is ready
// at now, that nobody has taken, and that belongs to that queue and place. Others
// were pushed again elsewhere.
func (x *Index) stillReady(e entry, key readyKey, p place, now time.Time) bool {
	b := x.table.get(e.item)
	if b == nil || x.taken[slot{e.item, e.run, e.n}] {
		return false
	}
	x.at.look(b)
	run := x.at.find(uint64(e.run))
	if run == nil || int(e.n) >= run.to-run.from || x.at.place() != p || x.keyOf(&x.at, run, int(e.n)) != key {
		return false
	}
	how, until := x.at.standing(run, int(e.n))
	return how == standsReady || how == standsDated && until <= now.UnixMilli()
}
