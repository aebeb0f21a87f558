package state

import (
	"strings"
	"time"

	"bagpipe/layout"
)

// Scan reads records one after the other into the same memory, as Decode does. It is one
// goroutine's; a zero Scan is ready for use.
type Scan struct {
	x     *Execution
	steps []*StepRecord // of all workflows; the first used belong to x
	used  int
	flows []*Workflow
	begun int

	texts    map[string]string // what many records have in common
	names    map[string]layout.Name
	attempts map[string]layout.AttemptKey
}

// maxShared bounds what is kept of each kind.
const (
	maxShared     = 4096
	maxSharedText = 80
)

// Decode is state.Decode. The result is valid until the next call.
func (q *Scan) Decode(data []byte) (*Execution, error) {
	q.begin()
	return (&reader{memory: q}).decode(data)
}

func (q *Scan) begin() {
	if q.x == nil {
		q.x = newExecution()
	}
	if q.texts == nil || len(q.texts) > maxShared || len(q.names) > maxShared || len(q.attempts) > maxShared {
		q.texts, q.names, q.attempts = map[string]string{}, map[string]layout.Name{}, map[string]layout.AttemptKey{}
	}
	*q.x = Execution{Intents: emptied(q.x.Intents), Milestones: emptied(q.x.Milestones), Workflows: emptied(q.x.Workflows)}
	q.used, q.begun = 0, 0
}

// emptied gives an empty map: the same one, unless it has grown so that emptying it
// would take longer than making one.
func emptied[K comparable, V any](m map[K]V) map[K]V {
	if len(m) > 64 {
		return map[K]V{}
	}
	clear(m)
	return m
}

func newExecution() *Execution {
	return &Execution{Intents: map[layout.IntentKey]Intent{}, Milestones: map[layout.Name]time.Time{}, Workflows: map[string]*Workflow{}}
}

// newExecution, newWorkflow and newStep give empty ones, in memory where there is one.
func (r *reader) newExecution() *Execution {
	if r.memory == nil {
		return newExecution()
	}
	return r.memory.x
}

func (r *reader) newWorkflow() *Workflow {
	q := r.memory
	if q == nil {
		return &Workflow{Steps: map[layout.Name]*StepRecord{}}
	}
	if q.begun == len(q.flows) {
		q.flows = append(q.flows, &Workflow{Steps: map[layout.Name]*StepRecord{}})
	}
	w := q.flows[q.begun]
	q.begun++
	*w = Workflow{Steps: emptied(w.Steps)}
	return w
}

func (r *reader) newStep() *StepRecord {
	q := r.memory
	if q == nil {
		return &StepRecord{Attempts: map[layout.AttemptKey]Attempt{}}
	}
	if q.used == len(q.steps) {
		q.steps = append(q.steps, &StepRecord{Attempts: map[layout.AttemptKey]Attempt{}})
	}
	s := q.steps[q.used]
	q.used++
	*s = StepRecord{Attempts: emptied(s.Attempts)}
	return s
}

// shared gives the same text as before, where memory has it.
func (r *reader) shared(s string) string {
	q := r.memory
	if q == nil || len(s) > maxSharedText {
		return s
	}
	return remembered(q.texts, s, func(s string) (string, error) { return s, nil }, r)
}

func (r *reader) name(s string) layout.Name {
	if r.memory == nil {
		return remembered(nil, s, layout.ParseName, r)
	}
	return remembered(r.memory.names, s, layout.ParseName, r)
}

func (r *reader) attemptKey(s string) layout.AttemptKey {
	if r.memory == nil {
		return remembered(nil, s, layout.ParseAttemptKey, r)
	}
	return remembered(r.memory.attempts, s, layout.ParseAttemptKey, r)
}

// remembered parses a text, unless memory holds what it stands for.
func remembered[T any](memory map[string]T, s string, parse func(string) (T, error), r *reader) T {
	if v, ok := memory[s]; ok {
		return v
	}
	if memory != nil {
		s = strings.Clone(s) // it is part of its record, which would be kept with it
	}
	v, err := parse(s)
	if err != nil {
		r.fail("%w", err)
	} else if memory != nil {
		memory[s] = v
	}
	return v
}
