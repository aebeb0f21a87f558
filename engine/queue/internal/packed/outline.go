package packed

import (
	"slices"

	"bagpipe/engine/state"
)

// Outline is of a packed item what counts and queues need: of its texts the label alone.
// It is read without making an Item, into lists that are used again.
type Outline struct {
	Traits                  Trait
	Collection, Batch, Lane uint64
	Created                 int64  // ms
	Label                   []byte // of the packed item
	Runs                    []OutlineRun
	Steps                   []OutlineStep  // of all runs
	tried                   []OutlineTried // of all steps
}

// OutlineRun is one run.
type OutlineRun struct {
	Name, Plan, status uint64
	From, To           int // of steps
}

// OutlineStep is one step of a run.
type OutlineStep struct {
	Status   uint8
	Code     uint8
	skip     bool
	again    bool
	overlay  bool // what controls and other items say is written out
	Attempts uint32
	Failures uint32
	waited   uint64 // ms, of the last attempt
	ran      uint64
	CPU      uint64 // ms, of all attempts
	Idle     uint64 // ms, before all attempts
	Since    int64  // ms; 0: never
	until    int64  // ms; 0: none

	triedFrom, triedTo uint32 // of glance.tried
}

// OutlineTried is one attempt that ended.
type OutlineTried struct {
	State       uint8
	Ended       int64 // ms
	Waited, Ran uint64
}

// Numbers of statuses in packed items.
const (
	StatusWaiting = iota
	StatusInProgress
	StatusCompleted
	StatusSkipped
	StatusFailed
)

// How a step stands in queues.
const (
	StandsNowhere = iota
	StandsReady
	StandsDated // ready once its time has come
)

// Clear makes it the outline of no item.
func (g *Outline) Clear() { *g = Outline{Runs: g.Runs[:0], Steps: g.Steps[:0], tried: g.tried[:0]} }

// Run gives a run by the number of its name; nil when there is none.
func (g *Outline) Run(name uint64) *OutlineRun {
	for r := range g.Runs {
		if g.Runs[r].Name == name {
			return &g.Runs[r]
		}
	}
	return nil
}

// Place is a run's place among the item's, which are in the order they began.
func (g *Outline) Place(run *OutlineRun) uint16 {
	for r := range g.Runs {
		if g.Runs[r].Name == run.Name {
			return uint16(r)
		}
	}
	return 0
}

// Standing reports whether step i of a run is ready, or is once its time has come: what
// BlockedAt says of the whole item.
func (g *Outline) Standing(run *OutlineRun, i int) (how int, until int64) {
	s := &g.Steps[run.From+i]
	switch {
	case g.Traits&(Held|Broken) != 0 || s.Status != StatusWaiting:
	case s.Code == CodeNone:
		return StandsReady, 0
	case s.until != 0:
		return StandsDated, s.until
	}
	return StandsNowhere, 0
}

// Awaits reports whether step i of a run waits for steps of its item alone.
func (g *Outline) Awaits(run *OutlineRun, i int) bool {
	s := &g.Steps[run.From+i]
	return g.Traits&(Held|Broken) == 0 && s.Status == StatusWaiting && s.Code == codeRequires && s.until == 0
}

// Flies reports whether a run of the item is in flight: at work, or begun and not waiting
// for what may take long. What other items say goes before a control, so that the
// reason of a step that waits for children is theirs.
func (g *Outline) Flies(run *OutlineRun) bool {
	if g.Traits&(Held|Broken) != 0 || run.status != StatusInProgress {
		return false
	}
	begun, waits := false, false
	for i := range run.To - run.From {
		s := &g.Steps[run.From+i]
		if s.Status == StatusInProgress {
			return true
		}
		waits = waits || s.again || s.Person() || s.Code == CodeDate || s.Code == codeChildren || s.Code == codeBatch || s.Code == codeForeign
		begun = begun || i > 0 && s.Attempts > 0
	}
	return begun && !waits
}

// Counts reports whether step i of a run is one of those that wait, failed and so on: where a
// run is inactive, what it did not do will not be done.
func (g *Outline) Counts(run *OutlineRun, i int) bool {
	s := Statuses[g.Steps[run.From+i].Status]
	return Statuses[run.status] != state.Inactive || s != state.Waiting && s != state.Failed
}

// Person reports whether a step waits for a person.
func (s *OutlineStep) Person() bool { return s.Code == codeManual || s.Code == codeDateless }

// AwaitsOthers reports whether the item waits for other items alone: its batch, or its
// children, which must be let through for it to go on.
func (g *Outline) AwaitsOthers() (awaits bool) {
	for i := range g.Steps {
		s := &g.Steps[i]
		if s.Status == StatusInProgress || s.Status == StatusWaiting && s.Code == CodeNone {
			return false
		}
		awaits = awaits || s.Code == codeChildren || s.Code == codeBatch
	}
	return awaits
}

// Alone reports that other items say nothing of the item's steps. False is no answer.
func (g *Outline) Alone() bool {
	return !slices.ContainsFunc(g.Steps, func(s OutlineStep) bool { return s.overlay || s.Code >= codeRaw })
}

// Open counts the steps that are expected to be done without a person: those
// that wait or run, up to the first that waits for one.
func (g *Outline) Open() (n int) {
	if g.Traits&(Held|Broken) != 0 {
		return 0
	}
	for r := range g.Runs {
		run := &g.Runs[r]
		if s := Statuses[run.status]; s == state.Failed || s == state.Inactive {
			continue
		}
		for _, s := range g.Steps[run.From:run.To] {
			if s.Person() {
				break
			}
			if s.Status == StatusWaiting || s.Status == StatusInProgress {
				n++
			}
		}
	}
	return n
}

// Read reads a packed item; ok is false when its bytes are damaged.
func (g *Outline) Read(b []byte) (ok bool) {
	u := &unpacker{b: b}
	g.Traits = Trait(u.num())
	g.Collection, g.Batch, g.Lane = u.num(), u.num(), u.num()
	g.Created, _, _ = u.millis()
	u.base = g.Created
	g.Label = u.bytes()
	if u.flag() {
		u.bytes()
		u.num()
		u.num()
		u.bytes()
		u.num()
	}
	if u.flag() {
		u.bytes()
	}
	u.bytes()
	for range u.count() {
		u.num()
		u.millis()
	}
	for range u.count() {
		u.bytes()
	}
	g.Runs, g.Steps, g.tried = g.Runs[:0], g.Steps[:0], g.tried[:0]
	for range u.count() {
		r := OutlineRun{Name: u.num(), Plan: u.num(), status: u.num(), From: len(g.Steps)}
		if len(u.bytes()) > 0 {
			u.millis()
		}
		for range u.count() {
			g.Steps = append(g.Steps, u.outlineStep(g))
		}
		r.To = len(g.Steps)
		g.Runs = append(g.Runs, r)
	}
	return !u.bad
}

func (u *unpacker) outlineStep(g *Outline) (s OutlineStep) {
	head := u.num()
	s.Status, s.Code, s.skip, s.again = uint8(head&7), uint8(head>>3&15), head&bitSkip != 0, head&bitAgain != 0
	s.overlay = head&bitOverlay != 0
	if s.Attempts = uint32(u.num()); s.Attempts > 0 {
		u.num()
		u.num()
		u.num()
		s.Failures, s.waited, s.ran = uint32(u.num()), u.num(), u.num()
	}
	s.Since, _, _ = u.millis()
	if head&bitMessage != 0 {
		u.bytes()
	}
	s.until = u.skipReason(s.Code)
	if head&bitKind != 0 {
		u.bytes()
	}
	if head&bitSkip != 0 {
		u.bytes()
	}
	if s.overlay {
		for range 3 {
			u.skipReason(uint8(u.num()))
		}
		u.bytes()
	}
	if head&bitEnds != 0 {
		for range u.count() {
			u.millis()
			u.num()
			u.num()
			u.num()
		}
	}
	if head&bitChildren != 0 {
		u.num()
	}
	if head&bitTried != 0 {
		s.triedFrom = uint32(len(g.tried))
		g.tried = u.outlineTried(g.tried)
		s.triedTo = uint32(len(g.tried))
	}
	if head&bitCPU != 0 {
		s.CPU = u.num()
	}
	if head&bitIdle != 0 {
		s.Idle = u.num()
	}
	return s
}

func (u *unpacker) skipReason(code uint8) (until int64) {
	switch code {
	case CodeDate, CodeRetry:
		until = u.until()
	case codeRaw, codeChildren, codeBatch, codeForeign, codeDateless:
		u.bytes()
		u.bytes()
		until = u.until()
		for range u.count() {
			u.bytes()
		}
	}
	return until
}

// lookTried reads the attempts of a step behind those of the steps before it.
func (u *unpacker) outlineTried(all []OutlineTried) []OutlineTried {
	for range u.count() {
		t := OutlineTried{State: uint8(u.num())}
		t.Ended, _, _ = u.millis()
		t.Waited, t.Ran = u.num(), u.num()
		all = append(all, t)
	}
	return all
}

// Attempts gives those of a step that ended; one is room for the only one.
func (g *Outline) Attempts(s *OutlineStep, one *[1]OutlineTried) []OutlineTried {
	switch {
	case s.triedTo > s.triedFrom:
		return g.tried[s.triedFrom:s.triedTo]
	case s.Attempts > 0 && s.Status >= StatusCompleted:
		one[0] = OutlineTried{s.Status, s.Since, s.waited, s.ran}
		return one[:]
	}
	return nil
}
