package state

import (
	"bytes"
	"math"
	"sync"
	"time"
	"unicode/utf8"

	"bagpipe/layout"
)

// The rules are: a scan of all items reads one record after the other into the same
// memory, in one pass, as long as a record is what Encode writes. Whatever is not,
// as one with a field of a later version, Decode reads; so the Scan may refuse what
// it likes, and must never read anything otherwise than Decode does.

// Scan reads records one after the other. It is one goroutine's.
type Scan struct {
	s     layout.Scanner
	x     *Execution
	steps []*StepRecord // of all workflows; the first used belong to x
	used  int
	flows []*Workflow
	begun int

	old, now Outline // of the record before, and of the one that is read

	texts    map[string]string // what many records have in common
	names    map[string]layout.Name
	attempts map[string]layout.AttemptKey
}

// Outline is where the intents, the workflows and their steps stand in the bytes of a record. The
// zero Outline is of none.
type Outline struct {
	data    []byte
	intents []member
	flows   []member
	steps   [][]member // of each workflow, counted from where its member begins
}

// Of reports whether it is the outline of that record.
func (o *Outline) Of(data []byte) bool { return o.data != nil && bytes.Equal(o.data, data) }

// member is where a member stands, key and value, and how long the key is. One whose key is escaped
// is not found again.
type member struct {
	from, to, key int32
	same          bool // as in the record before
}

// find moves i to the member of a key, where there is one, and gives its bytes.
func find(of []member, i *int, data, key []byte) []byte {
	for ; *i < len(of); *i++ {
		m := of[*i]
		raw := data[m.from:m.to]
		switch bytes.Compare(raw[1:1+m.key], key) {
		case 0:
			return raw
		case 1:
			return nil
		}
	}
	return nil
}

// met notes the member whose value was just read, and that began at from; the places are counted from base.
func (q *Scan) met(of []member, base, from int, key []byte, same bool) []member {
	if q.now.data == nil {
		return of
	}
	return append(of, member{int32(from - base), int32(q.s.At() - base), int32(len(key)), same})
}

// maxShared bounds what is kept of each kind.
const (
	maxShared     = 4096
	maxSharedText = 80
)

// Decode is state.Decode. What it gives is valid until the next call.
func (q *Scan) Decode(data []byte) (*Execution, error) {
	if x, ok := q.read(data); ok {
		return x, nil
	}
	return decode(data)
}

// DecodeNew is Decode of what a record does not have byte for byte as the one that o is of: it leaves
// out intents, steps and workflows that are as they were. o becomes the outline of this record.
func (q *Scan) DecodeNew(data []byte, o *Outline) (*Execution, error) {
	if len(data) > math.MaxInt32 {
		*o = Outline{}
		return decode(data)
	}
	q.old, q.now = *o, Outline{data, q.now.intents[:0], q.now.flows[:0], q.now.steps[:0]}
	*o = Outline{}
	x, ok := q.read(data)
	is, was := q.now, q.old
	q.old, q.now = Outline{}, Outline{nil, was.intents, was.flows, was.steps}
	if !ok {
		return decode(data)
	}
	*o = is
	return x, nil
}

var scans = sync.Pool{New: func() any { return &Scan{} }}

// plain is the short way to a record that is kept; false: it is not for this one.
func plain(data []byte) (*Execution, bool) {
	q := scans.Get().(*Scan)
	defer scans.Put(q)
	x, ok := q.read(data)
	if !ok {
		return nil, false
	}
	q.x, q.steps, q.flows = nil, nil, nil // they are the record's
	return x, true
}

// read is the short way; false: it is not for this record.
func (q *Scan) read(data []byte) (*Execution, bool) {
	if !utf8.Valid(data) {
		return nil, false
	}
	q.begin()
	q.s.Reset(data)
	x := q.execution()
	return x, q.s.Done()
}

func (q *Scan) begin() {
	if q.x == nil {
		q.x = &Execution{Intents: map[layout.IntentKey]Intent{}, Milestones: map[layout.Name]time.Time{}, Workflows: map[string]*Workflow{}}
	}
	if q.texts == nil || len(q.texts) > maxShared || len(q.names) > maxShared || len(q.attempts) > maxShared {
		q.forget()
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

func (q *Scan) forget() {
	q.texts, q.names, q.attempts = map[string]string{}, map[string]layout.Name{}, map[string]layout.AttemptKey{}
}

// execution reads a record; q.s reports whether it could.
func (q *Scan) execution() *Execution {
	s, x := &q.s, q.x
	s.Open()
	for k := s.Key(nil); k != nil; k = s.Key(k) {
		switch string(k) {
		case "intents":
			s.Open()
			i := 0
			for k := s.Key(nil); k != nil; k = s.Key(k) {
				from := s.Begun()
				same := s.Pass(find(q.old.intents, &i, q.old.data, k))
				if !same {
					x.Intents[layout.IntentKey(k)] = q.intent()
				}
				q.now.intents = q.met(q.now.intents, 0, from, k, same)
			}
		case "item":
			id, err := layout.ParseItemID(string(s.Text()))
			if err != nil {
				s.Refuse()
			}
			x.Item = id
		case "milestones":
			s.Open()
			for k := s.Key(nil); k != nil; k = s.Key(k) {
				x.Milestones[q.name(k)] = s.Time()
			}
		case "schema":
			if s.Int() != executionSchema {
				s.Refuse()
			}
		case "workflows":
			s.Open()
			i := 0
			for k := s.Key(nil); k != nil; k = s.Key(k) {
				q.flow(find(q.old.flows, &i, q.old.data, k), i, k)
			}
		default:
			s.Refuse()
		}
	}
	if x.Item == "" {
		s.Refuse()
	}
	if !s.Bad() {
		for name := range x.Workflows {
			x.settleDigest(name)
		}
	}
	return x
}

func (q *Scan) intent() (i Intent) {
	s := &q.s
	s.Open()
	for k := s.Key(nil); k != nil; k = s.Key(k) {
		switch string(k) {
		case "at":
			i.At = s.Time()
		case "attempt":
			i.Attempt = q.attemptKey(s.Text())
		case "by":
			i.By = q.text(s.Text())
		case "digest":
			i.Digest = q.text(s.Text())
		case "kind":
			i.Kind = q.text(s.Text())
		case "site":
			i.Site = q.name(s.Text())
		case "step":
			i.Step = q.name(s.Text())
		case "target":
			i.Target = layout.IntentKey(s.Text())
		case "text":
			i.Text = q.text(s.Text())
		case "workflow":
			i.Workflow = q.text(s.Text())
		default:
			s.Refuse()
		}
	}
	return i
}

// flow reads a workflow; was are the bytes of the one of that key in the record before, the i-th there.
func (q *Scan) flow(was []byte, i int, key []byte) {
	from := q.s.Begun()
	var steps []member
	if was != nil {
		steps = q.old.steps[i]
	}
	same := q.s.Pass(was)
	if !same {
		q.x.Workflows[q.text(key)], steps = q.workflow(from, was, steps)
	}
	if q.now.data != nil {
		q.now.steps = append(q.now.steps, steps)
	}
	q.now.flows = q.met(q.now.flows, 0, from, key, same)
}

// workflow reads one whose member begins at from; before are the steps of the one before it.
func (q *Scan) workflow(from int, was []byte, before []member) (w *Workflow, steps []member) {
	s := &q.s
	w = q.newWorkflow()
	s.Open()
	for k := s.Key(nil); k != nil; k = s.Key(k) {
		switch string(k) {
		case "created":
			w.Created = s.Time()
		case "definition":
			q.definition(w)
		case "ended", "started", "status": // computed
			s.Skip()
		case "notBefore":
			w.NotBefore = s.Time()
		case "skip":
			w.Skip = map[layout.Name]string{}
			s.Open()
			for k := s.Key(nil); k != nil; k = s.Key(k) {
				name := q.name(k)
				w.Skip[name] = q.text(s.Text())
			}
		case "startedBy":
			w.StartedBy = q.text(s.Text())
		case "steps":
			s.Open()
			i := 0
			for k := s.Key(nil); k != nil; k = s.Key(k) {
				name := q.name(k)
				begun := s.Begun()
				same := s.Pass(find(before, &i, was, k))
				if !same {
					w.Steps[name] = q.step()
				}
				steps = q.met(steps, from, begun, k, same)
			}
		default:
			s.Refuse()
		}
	}
	if w.Name == "" || w.StartedWith == "" {
		s.Refuse()
	}
	return w, steps
}

func (q *Scan) definition(w *Workflow) {
	s := &q.s
	s.Open()
	for k := s.Key(nil); k != nil; k = s.Key(k) {
		switch string(k) {
		case "digest":
			w.StartedWith = q.text(s.Text())
		case "name":
			w.Name = q.text(s.Text())
		case "startedWith":
			if w.StartedWith == "" {
				s.Refuse()
			}
			w.StartedWith = q.text(s.Text()) // it comes after the digest
		default:
			s.Refuse()
		}
	}
}

func (q *Scan) step() *StepRecord {
	s, r := &q.s, q.newStep()
	s.Open()
	for k := s.Key(nil); k != nil; k = s.Key(k) {
		switch string(k) {
		case "attempts":
			s.Open()
			for k := s.Key(nil); k != nil; k = s.Key(k) {
				key := q.attemptKey(k)
				r.Attempts[key] = q.attempt()
			}
		case "status": // computed
			s.Skip()
		default:
			s.Refuse()
		}
	}
	return r
}

func (q *Scan) attempt() (a Attempt) {
	s := &q.s
	s.Open()
	for k := s.Key(nil); k != nil; k = s.Key(k) {
		switch string(k) {
		case "by":
			a.By = q.text(s.Text())
		case "children":
			a.Children = s.Int()
		case "claimed":
			a.Claimed = s.Time()
		case "elapsed":
			a.Elapsed = s.Float()
		case "ended":
			a.Ended = s.Time()
		case "inputs":
			a.Inputs = string(s.Text())
		case "kind":
			a.Kind = q.text(s.Text())
		case "message":
			a.Message = q.text(s.Text())
		case "notBefore":
			a.NotBefore = s.Time()
		case "outputs":
			a.Outputs = string(s.Text())
		case "runner":
			a.Runner = q.text(s.Text())
		case "started":
			a.Started = s.Time()
		case "state":
			a.State = Status(q.text(s.Text()))
		case "text":
			a.Text = q.text(s.Text())
		case "version":
			a.Version = q.text(s.Text())
		default: // progress, too: it is of a step at work, and there are few
			s.Refuse()
		}
	}
	switch a.State {
	case InProgress, Completed, Skipped, Failed, Deferred:
	default:
		s.Refuse()
	}
	return a
}

func (q *Scan) newWorkflow() *Workflow {
	if q.begun == len(q.flows) {
		q.flows = append(q.flows, &Workflow{Steps: map[layout.Name]*StepRecord{}})
	}
	w := q.flows[q.begun]
	q.begun++
	*w = Workflow{Steps: emptied(w.Steps)}
	return w
}

func (q *Scan) newStep() *StepRecord {
	if q.used == len(q.steps) {
		q.steps = append(q.steps, &StepRecord{Attempts: map[layout.AttemptKey]Attempt{}})
	}
	r := q.steps[q.used]
	q.used++
	*r = StepRecord{Attempts: emptied(r.Attempts)}
	return r
}

// text gives a text its own bytes, or those of the same text before it.
func (q *Scan) text(b []byte) string {
	if len(b) > maxSharedText {
		return string(b)
	}
	if t, ok := q.texts[string(b)]; ok {
		return t
	}
	t := string(b)
	q.texts[t] = t
	return t
}

func (q *Scan) name(b []byte) layout.Name {
	if n, ok := q.names[string(b)]; ok {
		return n
	}
	n, err := layout.ParseName(string(b))
	if err != nil {
		q.s.Refuse()
		return ""
	}
	q.names[string(n)] = n
	return n
}

func (q *Scan) attemptKey(b []byte) layout.AttemptKey {
	if k, ok := q.attempts[string(b)]; ok {
		return k
	}
	k, err := layout.ParseAttemptKey(string(b))
	if err != nil {
		q.s.Refuse()
		return k
	}
	q.attempts[k.String()] = k
	return k
}
