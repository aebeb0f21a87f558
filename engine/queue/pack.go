package queue

import (
	"encoding/binary"
	"slices"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

// The rules are: an item is kept as some hundred bytes, as a million of them as
// structs takes a gigabyte and longer to collect than to ask. What items have in
// common is a number (names); a reason that follows from the rest is its code alone;
// times are milliseconds from the item's creation. The package comment has the
// format; unpack(pack(x)) is x, but for the messages of completed steps.

// Trait is what a look at an item's first bytes tells of it.
type Trait uint16

// Traits of items.
const (
	Held      Trait = 1 << iota
	Broken          // its record cannot be read
	Failed          // a step or a workflow of it failed
	Person          // a step waits for a person
	Startable       // a step is ready, or is once its time has come
	Open            // a workflow is neither completed nor inactive
	Running         // a step is in progress
	Ending          // it has ends that thresholds look at
	Gathered        // it has a step that is done once for its batch
	Off             // a step only waits as it is disabled
	Kin             // it is a child, or has made children
	Removed         // it is shown though its records were removed
)

// codes of reasons in a packed step.
const (
	codeNone = iota
	codeManual
	codeDate
	codeRetry
	codeRequires
	codeHeld
	codeDone
	codeFailed
	codeRunning
	codeStopped  // the workflow has a failed step
	codeRaw      // written out
	codeChildren // written out: its children are not done
	codeBatch    // written out: the others of its batch are not there
	codeForeign  // written out: steps of another workflow are not done
	codeDateless // written out: its date is none, so that it waits for a person
)

// bits of a packed step's head above status and code.
const (
	bitMessage = 1 << (iota + 7)
	bitKind
	bitSkip
	bitOverlay
	bitEnds
	bitChildren
	bitTried
	bitAgain
)

var statuses = []state.Status{state.Waiting, state.InProgress, state.Completed, state.Skipped, state.Failed, state.Deferred, state.Inactive}

func statusNumber(s state.Status) uint64 { return uint64(max(0, slices.Index(statuses, s))) }

// packer writes an item.
type packer struct {
	n    *names
	b    []byte
	base int64 // the item's creation, in ms
}

func (p *packer) num(v uint64)  { p.b = binary.AppendUvarint(p.b, v) }
func (p *packer) name(s string) { p.num(p.n.number(s)) }
func (p *packer) text(s string) { p.num(uint64(len(s))); p.b = append(p.b, s...) }

func (p *packer) flag(is bool) {
	if is {
		p.num(1)
		return
	}
	p.num(0)
}

func (p *packer) dur(d time.Duration) { p.num(uint64(max(0, d.Milliseconds()))) }

// time writes 0 for no time; else 1 more than twice the distance from the base, and
// the part below a millisecond where there is one.
func (p *packer) time(t time.Time) {
	if t.IsZero() {
		p.num(0)
		return
	}
	ms, rest := t.UnixMilli()-p.base, uint64(t.Nanosecond()%1e6)
	v := uint64(ms<<1) ^ uint64(ms>>63)
	v <<= 1
	if rest != 0 {
		v |= 1
	}
	p.num(v + 1)
	if rest != 0 {
		p.num(rest)
	}
}

// pack appends an item's bytes to dst.
func pack(dst []byte, n *names, it *Item) []byte {
	p := &packer{n: n, b: dst}
	p.num(uint64(it.Traits()))
	p.name(string(it.Collection))
	p.name(it.Batch)
	p.name(string(it.Lane))
	p.time(it.Created)
	p.base = baseOf(it.Created)
	p.text(it.Label)
	p.flag(it.Parent != nil)
	if f := it.Parent; f != nil {
		p.text(string(f.Item))
		p.name(f.Workflow)
		p.name(string(f.Step))
		p.text(f.Name)
		p.num(uint64(max(0, f.Generation)))
	}
	p.flag(it.Held)
	if it.Held {
		p.text(it.HeldBy)
	}
	p.text(it.Broken)
	p.num(uint64(len(it.Milestones)))
	for _, m := range milestoneNames(it.Milestones) {
		p.name(string(m))
		p.time(it.Milestones[m])
	}
	p.num(uint64(len(it.Facets)))
	for _, f := range it.Facets {
		p.text(f)
	}
	p.num(uint64(len(it.Runs)))
	for r := range it.Runs {
		p.run(it, &it.Runs[r])
	}
	return p.b
}

// baseOf is what times are counted from; an item without a creation has none.
func baseOf(created time.Time) int64 {
	if created.IsZero() {
		return 0
	}
	return created.UnixMilli()
}

func milestoneNames(m map[layout.Name]time.Time) []layout.Name {
	if len(m) == 0 {
		return nil
	}
	out := make([]layout.Name, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (p *packer) run(it *Item, run *Run) {
	p.name(run.Name)
	p.num(p.n.planNumber(run.Plan))
	p.num(statusNumber(run.Status))
	p.text(run.Internal)
	if run.Internal != "" {
		p.time(run.InternalAt)
	}
	p.num(uint64(len(run.Steps)))
	for i := range run.Steps {
		p.step(it, run, i)
	}
}

func (p *packer) step(it *Item, run *Run, i int) {
	s := &run.Steps[i]
	code := codeOf(it, run, i, s.Blocked)
	bits := s.bits()
	p.num(statusNumber(s.Status) | uint64(code)<<3 | bits)
	p.num(uint64(s.Attempts))
	if s.Attempts > 0 {
		p.num(uint64(s.Current.N))
		p.name(string(s.Current.Engine))
		p.name(s.Runner)
		p.num(uint64(s.Failures))
		p.dur(s.Waited)
		p.dur(s.Ran)
	}
	p.time(s.Since)
	if bits&bitMessage != 0 {
		p.text(s.Message)
	}
	p.reason(code, s.Blocked)
	if bits&bitKind != 0 {
		p.text(s.Kind)
	}
	if bits&bitSkip != 0 {
		p.text(s.Skip)
	}
	if bits&bitOverlay != 0 {
		p.coded(it, run, i, s.control)
		p.coded(it, run, i, s.own)
		p.coded(it, run, i, s.ungated)
		p.text(s.ownSkip)
	}
	if bits&bitEnds != 0 {
		p.ends(s.Ends)
	}
	if bits&bitChildren != 0 {
		p.num(uint64(s.Children))
	}
	if bits&bitTried != 0 {
		p.tried(s.Tried)
	}
}

// bits tells what is written of a step besides what every step has.
func (s *Step) bits() (bits uint64) {
	set := func(bit uint64, is bool) {
		if is {
			bits |= bit
		}
	}
	// Nobody asks what was said of a step that is done, and it would be most of the item.
	set(bitMessage, s.Message != "" && s.Status != state.Completed)
	set(bitKind, s.Kind != "")
	set(bitSkip, s.Skip != "")
	set(bitOverlay, s.control != nil || s.own != nil || s.ownSkip != s.Skip || !sameReason(s.ungated, s.Blocked))
	set(bitEnds, len(s.Ends) > 0)
	set(bitChildren, s.Children > 0)
	set(bitTried, len(s.Tried) > 0)
	set(bitAgain, s.Again)
	return bits
}

func (p *packer) coded(it *Item, run *Run, i int, why *state.Reason) {
	code := codeOf(it, run, i, why)
	p.num(uint64(code))
	p.reason(code, why)
}

// reason writes what a reason's code leaves open.
func (p *packer) reason(code int, why *state.Reason) {
	switch code {
	case codeDate, codeRetry:
		p.time(why.Until)
	case codeRaw, codeChildren, codeBatch, codeForeign, codeDateless:
		p.text(why.Code)
		p.text(why.Text)
		p.time(why.Until)
		p.num(uint64(len(why.Steps)))
		for _, s := range why.Steps {
			p.text(s)
		}
	}
}

func (p *packer) ends(ends []End) {
	p.num(uint64(len(ends)))
	for _, e := range ends {
		p.time(e.At)
		p.num(uint64(e.Attempt.N))
		p.name(string(e.Attempt.Engine))
		p.flag(e.Failed)
	}
}
