package packed

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
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
	bitCPU
	bitIdle
)

var Statuses = []state.Status{state.Waiting, state.InProgress, state.Completed, state.Skipped, state.Failed, state.Deferred, state.Inactive, state.Scheduled}

func statusNumber(s state.Status) uint64 { return uint64(max(0, slices.Index(Statuses, s))) }

// packer writes an item.
type packer struct {
	n    *Names
	b    []byte
	base int64 // the item's creation, in ms
}

func (p *packer) num(v uint64) { p.b = binary.AppendUvarint(p.b, v) }

func (p *packer) name(s string) { p.num(p.n.Number(s)) }

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

// Pack appends an item's bytes to dst.
func Pack(dst []byte, n *Names, it *Item) []byte {
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
	return slices.Sorted(maps.Keys(m))
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
		p.coded(it, run, i, s.own.control)
		p.coded(it, run, i, s.own.but)
		p.coded(it, run, i, s.own.blocked)
		p.text(s.own.skip)
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
	if bits&bitCPU != 0 {
		p.dur(s.CPU)
	}
	if bits&bitIdle != 0 {
		p.dur(s.Idle)
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
	set(bitOverlay, s.own.control != nil || s.own.but != nil || s.own.skip != s.Skip || !sameReason(s.own.blocked, s.Blocked))
	set(bitEnds, len(s.Ends) > 0)
	set(bitChildren, s.Children > 0)
	set(bitTried, len(s.Tried) > 0)
	set(bitAgain, s.Again)
	set(bitCPU, s.CPU > 0)
	set(bitIdle, s.Idle > 0)
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
	case CodeDate, CodeRetry:
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

func (p *packer) tried(all []Tried) {
	p.num(uint64(len(all)))
	for _, t := range all {
		p.num(statusNumber(t.State))
		p.time(t.Ended)
		p.dur(t.Waited)
		p.dur(t.Ran)
	}
}
