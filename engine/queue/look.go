package queue

// glance is a packed item as what counts and queues look at, of its texts the label
// alone.
type glance struct {
	traits                  Trait
	collection, batch, lane uint64
	created                 int64  // ms
	label                   []byte // of the packed item
	runs                    []glanceRun
	steps                   []glanceStep  // of all runs
	tried                   []glanceTried // of all steps
}

type glanceRun struct {
	name, plan, status uint64
	from, to           int // of steps
}

type glanceStep struct {
	status   uint8
	code     uint8
	skip     bool
	again    bool
	attempts uint32
	failures uint32
	waited   uint64 // ms, of the last attempt
	ran      uint64
	since    int64 // ms; 0: never
	until    int64 // ms; 0: none

	triedFrom, triedTo uint32 // of glance.tried
}

// look reads a packed item into g, whose lists it uses again.
func (g *glance) look(b []byte) bool {
	u := &unpacker{b: b}
	g.traits = Trait(u.num())
	g.collection, g.batch, g.lane = u.num(), u.num(), u.num()
	g.created, _, _ = u.millis()
	u.base = g.created
	g.label = u.bytes()
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
	g.runs, g.steps, g.tried = g.runs[:0], g.steps[:0], g.tried[:0]
	for range u.count() {
		r := glanceRun{name: u.num(), plan: u.num(), status: u.num(), from: len(g.steps)}
		if len(u.bytes()) > 0 {
			u.millis()
		}
		for range u.count() {
			g.steps = append(g.steps, u.glanceStep(g))
		}
		r.to = len(g.steps)
		g.runs = append(g.runs, r)
	}
	return !u.bad
}

func (u *unpacker) glanceStep(g *glance) (s glanceStep) {
	head := u.num()
	s.status, s.code, s.skip, s.again = uint8(head&7), uint8(head>>3&15), head&bitSkip != 0, head&bitAgain != 0
	if s.attempts = uint32(u.num()); s.attempts > 0 {
		u.num()
		u.num()
		u.num()
		s.failures, s.waited, s.ran = uint32(u.num()), u.num(), u.num()
	}
	s.since, _, _ = u.millis()
	if head&bitMessage != 0 {
		u.bytes()
	}
	s.until = u.skipReason(s.code)
	if head&bitKind != 0 {
		u.bytes()
	}
	if head&bitSkip != 0 {
		u.bytes()
	}
	if head&bitOverlay != 0 {
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
		g.tried = u.lookTried(g.tried)
		s.triedTo = uint32(len(g.tried))
	}
	return s
}

func (u *unpacker) skipReason(code uint8) (until int64) {
	switch code {
	case codeDate, codeRetry:
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
