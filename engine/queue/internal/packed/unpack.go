package packed

import (
	"encoding/binary"
	"slices"
	"time"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

func (u *unpacker) tried() (all []Tried) {
	all = make([]Tried, u.count())
	for i := range all {
		all[i] = Tried{u.status(u.num()), u.time(), u.dur(), u.dur()}
	}
	return all
}

// unpacker reads what packer wrote. Past the end everything is zero and bad is set.
type unpacker struct {
	n    *Names
	b    []byte
	base int64
	bad  bool
	bare bool // the reasons of steps are passed over
}

func (u *unpacker) num() uint64 {
	if len(u.b) > 0 && u.b[0] < 0x80 { // most are
		v := uint64(u.b[0])
		u.b = u.b[1:]
		return v
	}
	v, n := binary.Uvarint(u.b)
	if n <= 0 {
		u.bad, u.b = true, nil
		return 0
	}
	u.b = u.b[n:]
	return v
}

func (u *unpacker) bytes() []byte {
	n := u.num()
	if n > uint64(len(u.b)) {
		u.bad, u.b = true, nil
		return nil
	}
	b := u.b[:n]
	u.b = u.b[n:]
	return b
}

func (u *unpacker) text() string { return string(u.bytes()) }

func (u *unpacker) name() string { return u.n.Text(u.num()) }

func (u *unpacker) flag() bool { return u.num() != 0 }

func (u *unpacker) dur() time.Duration { return time.Duration(u.num()) * time.Millisecond }

// count reads the length of a list, of which each member takes a byte at least.
func (u *unpacker) count() int {
	n := u.num()
	if n > uint64(len(u.b)) {
		u.bad = true
		return 0
	}
	return int(n)
}

func (u *unpacker) millis() (ms int64, rest uint64, ok bool) {
	v := u.num()
	if v == 0 {
		return 0, 0, false
	}
	v--
	if v&1 != 0 {
		rest = u.num()
	}
	v >>= 1
	return int64(v>>1) ^ -int64(v&1) + u.base, rest, true
}

func (u *unpacker) time() time.Time {
	ms, rest, ok := u.millis()
	if !ok {
		return time.Time{}
	}
	return time.UnixMilli(ms).Add(time.Duration(rest)).UTC()
}

// head reads what comes before the runs into it.
func (u *unpacker) head(it *Item) {
	it.Gone = Trait(u.num())&Removed != 0
	it.Collection, it.Batch, it.Lane = layout.Name(u.name()), u.name(), layout.Name(u.name())
	it.Created = u.time()
	u.base = baseOf(it.Created)
	it.Label = u.text()
	if u.flag() {
		it.Parent = &layout.Parent{Item: layout.ItemID(u.text()), Workflow: u.name(), Step: layout.Name(u.name()), Name: u.text(), Generation: int(u.num())}
	}
	if it.Held = u.flag(); it.Held {
		it.HeldBy = u.text()
	}
	it.Broken = u.text()
	if n := u.count(); n > 0 {
		it.Milestones = make(map[layout.Name]time.Time, n)
		for range n {
			name := layout.Name(u.name())
			it.Milestones[name] = u.time()
		}
	}
	if n := u.count(); n > 0 {
		it.Facets = make([]string, n)
		for i := range it.Facets {
			it.Facets[i] = u.text()
		}
	}
}

// Unpack reads an item; ok is false when its bytes are damaged.
func Unpack(b []byte, n *Names, id layout.ItemID) (it *Item, ok bool) {
	return unpack(&unpacker{n: n, b: b}, id)
}

// UnpackBare is Unpack without the reasons why steps do not start, which are most of the work: they are derived from how
// the others stand.
func UnpackBare(b []byte, n *Names, id layout.ItemID) (it *Item, ok bool) {
	return unpack(&unpacker{n: n, b: b, bare: true}, id)
}

func unpack(u *unpacker, id layout.ItemID) (it *Item, ok bool) {
	it = &Item{ID: id}
	u.head(it)
	if runs := u.count(); runs > 0 {
		it.Runs = make([]Run, runs)
		for r := range it.Runs {
			u.run(it, &it.Runs[r])
		}
	}
	return it, !u.bad
}

func (u *unpacker) run(it *Item, run *Run) {
	run.Name = u.name()
	run.Plan = u.n.Plan(u.num())
	run.Status = u.status(u.num())
	if run.Internal = u.text(); run.Internal != "" {
		run.InternalAt = u.time()
	}
	n := u.count()
	if run.Plan == nil || n != len(run.Plan.Steps) {
		u.bad, u.b = true, nil
		return
	}
	run.Steps = make([]Step, n)
	var room [16]stepCodes // a workflow has seldom more steps
	codes := slices.Grow(room[:0], n)[:n]
	for i := range run.Steps {
		codes[i] = u.step(&run.Steps[i])
	}
	if u.bare {
		return
	}
	// What a step waits for follows from how the others stand, which are known now.
	for i := range run.Steps {
		s, c := &run.Steps[i], &codes[i]
		s.Blocked = c.blocked.reason(it, run, i)
		if !c.overlay {
			s.NoteOwn()
			continue
		}
		s.own.control, s.own.but, s.own.blocked = c.control.reason(it, run, i), c.own.reason(it, run, i), c.ungated.reason(it, run, i)
	}
}

func (u *unpacker) status(n uint64) state.Status {
	if n >= uint64(len(Statuses)) {
		u.bad = true
		return state.Waiting
	}
	return Statuses[n]
}

// stepCodes are the reasons of a step, to be derived.
type stepCodes struct {
	blocked, control, own, ungated packedReason
	overlay                        bool
}

type packedReason struct {
	code  int
	until time.Time
	raw   *state.Reason
}

func (r packedReason) reason(it *Item, run *Run, i int) *state.Reason {
	if r.code == codeRaw || r.code >= codeChildren {
		return r.raw
	}
	return derive(r.code, it, run, i, r.until)
}

func (u *unpacker) step(s *Step) (c stepCodes) {
	head := u.num()
	s.Status, s.Again = u.status(head&7), head&bitAgain != 0
	if s.Attempts = int(u.num()); s.Attempts > 0 {
		s.Current = layout.AttemptKey{N: int(u.num()), Engine: layout.EngineID(u.name())}
		s.Runner = u.name()
		s.Failures = int(u.num())
		s.Waited, s.Ran = u.dur(), u.dur()
	}
	s.Since = u.time()
	if head&bitMessage != 0 {
		s.Message = u.text()
	}
	c.blocked = u.reason(int(head >> 3 & 15))
	if head&bitKind != 0 {
		s.Kind = u.text()
	}
	if head&bitSkip != 0 {
		s.Skip = u.text()
	}
	if c.overlay = head&bitOverlay != 0; c.overlay {
		c.control = u.reason(int(u.num()))
		c.own = u.reason(int(u.num()))
		c.ungated = u.reason(int(u.num()))
		s.own.skip = u.text()
	}
	if head&bitEnds != 0 {
		s.Ends = make([]End, u.count())
		for i := range s.Ends {
			s.Ends[i] = End{At: u.time(), Attempt: layout.AttemptKey{N: int(u.num()), Engine: layout.EngineID(u.name())}, Failed: u.flag()}
		}
	}
	if head&bitChildren != 0 {
		s.Children = int(u.num())
	}
	if head&bitTried != 0 {
		s.Tried = u.tried()
	}
	if head&bitCPU != 0 {
		s.CPU = u.dur()
	}
	if head&bitIdle != 0 {
		s.Idle = u.dur()
	}
	return c
}

func (u *unpacker) reason(code int) packedReason {
	r := packedReason{code: code}
	switch code {
	case CodeDate, CodeRetry:
		r.until = u.time()
	case codeRaw, codeChildren, codeBatch, codeForeign, codeDateless:
		r.raw = &state.Reason{Code: u.text(), Text: u.text(), Until: u.time()}
		if n := u.count(); n > 0 {
			r.raw.Steps = make([]string, n)
			for i := range r.raw.Steps {
				r.raw.Steps[i] = u.text()
			}
		}
	}
	return r
}

// until is a time in whole milliseconds, not before what was written.
func (u *unpacker) until() int64 {
	ms, rest, ok := u.millis()
	if ok && rest > 0 {
		ms++
	}
	return ms
}
