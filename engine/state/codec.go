package state

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// Decode reads execution.json. Statuses are not read: Compute writes them. A
// newer schema is a *layout.SchemaError.
func Decode(data []byte) (*Execution, error) {
	if !gjson.ValidBytes(data) {
		return nil, errors.New("read " + layout.ExecutionJSON + ": not JSON")
	}
	r := reader{}
	root := gjson.ParseBytes(data)
	if schema := root.Get("schema"); schema.Int() > executionSchema {
		return nil, &layout.SchemaError{File: layout.ExecutionJSON, Schema: int(schema.Int()), Known: executionSchema}
	}
	x := r.execution(root)
	if r.err != nil {
		return nil, fmt.Errorf("read %s: %w", layout.ExecutionJSON, r.err)
	}
	return x, nil
}

// reader reads objects by their known keys and keeps the others; the first
// error stays.
type reader struct{ err error }

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// object calls known for each key; a key it refuses is kept in the result.
func (r *reader) object(what string, v gjson.Result, known func(key string, v gjson.Result) bool) (rest unknown) {
	if !v.IsObject() {
		r.fail("%s is not an object", what)
		return nil
	}
	v.ForEach(func(k, v gjson.Result) bool {
		if !known(k.Str, v) {
			if rest == nil {
				rest = unknown{}
			}
			rest[k.Str] = v.Raw
		}
		return true
	})
	return rest
}

func (r *reader) time(v gjson.Result) time.Time {
	t, err := time.Parse(time.RFC3339Nano, v.Str)
	if err != nil {
		r.fail("time %s: want RFC 3339", v.Raw)
	}
	return t.UTC()
}

func (r *reader) text(v gjson.Result) string {
	if v.Type != gjson.String {
		r.fail("%.40s: want a string", v.Raw)
	}
	return v.Str
}

func (r *reader) attemptKey(s string) layout.AttemptKey {
	k, err := layout.ParseAttemptKey(s)
	if err != nil {
		r.fail("%w", err)
	}
	return k
}

func (r *reader) name(s string) layout.Name {
	n, err := layout.ParseName(s)
	if err != nil {
		r.fail("%w", err)
	}
	return n
}

func (r *reader) execution(v gjson.Result) *Execution {
	x := &Execution{Intents: map[layout.IntentKey]Intent{}, Milestones: map[layout.Name]time.Time{}, Workflows: map[string]*Workflow{}}
	x.unknown = r.object("the record", v, func(k string, v gjson.Result) bool {
		switch k {
		case "item":
			id, err := layout.ParseItemID(v.Str)
			if err != nil {
				r.fail("%w", err)
			}
			x.Item = id
		case "schema":
		case "intents":
			r.object("intents", v, func(k string, v gjson.Result) bool {
				x.Intents[layout.IntentKey(k)] = r.intent(v)
				return true
			})
		case "milestones":
			r.object("milestones", v, func(k string, v gjson.Result) bool {
				x.Milestones[r.name(k)] = r.time(v)
				return true
			})
		case "workflows":
			r.object("workflows", v, func(k string, v gjson.Result) bool {
				x.Workflows[k] = r.workflow(v)
				return true
			})
		default:
			return false
		}
		return true
	})
	if x.Item == "" {
		r.fail("no item")
	}
	for name := range x.Workflows {
		x.settleDigest(name)
	}
	return x
}

func (r *reader) intent(v gjson.Result) (i Intent) {
	i.unknown = r.object("an intent", v, func(k string, v gjson.Result) bool {
		switch k {
		case "kind":
			i.Kind = r.text(v)
		case "at":
			i.At = r.time(v)
		case "by":
			i.By = r.text(v)
		case "text":
			i.Text = r.text(v)
		case "workflow":
			i.Workflow = r.text(v)
		case "step":
			i.Step = r.name(v.Str)
		case "attempt":
			i.Attempt = r.attemptKey(v.Str)
		case "target":
			i.Target = layout.IntentKey(r.text(v))
		case "digest":
			i.Digest = r.text(v)
		default:
			return false
		}
		return true
	})
	return i
}

func (r *reader) workflow(v gjson.Result) *Workflow {
	w := &Workflow{Steps: map[layout.Name]*StepRecord{}}
	w.unknown = r.object("a workflow", v, func(k string, v gjson.Result) bool {
		switch k {
		case "definition":
			w.Name, w.StartedWith = r.text(v.Get("name")), r.text(v.Get("digest"))
			if first := v.Get("startedWith"); first.Exists() {
				w.StartedWith = r.text(first)
			}
		case "startedBy":
			w.StartedBy = r.text(v)
		case "created":
			w.Created = r.time(v)
		case "notBefore":
			w.NotBefore = r.time(v)
		case "status", "ended":
		case "skip":
			w.Skip = map[layout.Name]string{}
			r.object("skip", v, func(k string, v gjson.Result) bool {
				w.Skip[r.name(k)] = r.text(v)
				return true
			})
		case "steps":
			r.object("steps", v, func(k string, v gjson.Result) bool {
				w.Steps[r.name(k)] = r.step(v)
				return true
			})
		default:
			return false
		}
		return true
	})
	if w.Name == "" || w.StartedWith == "" {
		r.fail("a workflow without its definition")
	}
	return w
}

func (r *reader) step(v gjson.Result) *StepRecord {
	s := &StepRecord{Attempts: map[layout.AttemptKey]Attempt{}}
	s.unknown = r.object("a step", v, func(k string, v gjson.Result) bool {
		switch k {
		case "status":
		case "attempts":
			r.object("attempts", v, func(k string, v gjson.Result) bool {
				s.Attempts[r.attemptKey(k)] = r.attempt(v)
				return true
			})
		default:
			return false
		}
		return true
	})
	return s
}

func (r *reader) attempt(v gjson.Result) (a Attempt) {
	a.unknown = r.object("an attempt", v, func(k string, v gjson.Result) bool {
		switch k {
		case "state":
			a.State = Status(r.text(v))
			switch a.State {
			case InProgress, Completed, Skipped, Failed, Deferred:
			default:
				r.fail("attempt state %q", a.State)
			}
		case "kind":
			a.Kind = r.text(v)
		case "claimed":
			a.Claimed = r.time(v)
		case "started":
			a.Started = r.time(v)
		case "ended":
			a.Ended = r.time(v)
		case "elapsed":
			a.Elapsed = v.Num
		case "notBefore":
			a.NotBefore = r.time(v)
		case "runner":
			a.Runner = r.text(v)
		case "by":
			a.By = r.text(v)
		case "message":
			a.Message = r.text(v)
		case "text":
			a.Text = r.text(v)
		case "progress":
			a.Progress = r.progress(v)
		case "children":
			if a.Children = int(v.Num); v.Type != gjson.Number || float64(a.Children) != v.Num || a.Children < 0 {
				r.fail("children %.40s: want a number from 0 up", v.Raw)
			}
		default:
			return false
		}
		return true
	})
	if a.State == "" {
		r.fail("an attempt without a state")
	}
	return a
}

func (r *reader) progress(v gjson.Result) *Progress {
	p := &Progress{Percent: -1}
	p.unknown = r.object("progress", v, func(k string, v gjson.Result) bool {
		switch k {
		case "at":
			p.At = r.time(v)
		case "note":
			p.Note = r.text(v)
		case "percent":
			p.Percent = int(v.Num)
		default:
			return false
		}
		return true
	})
	return p
}

// Encode writes execution.json: the form of layout.EncodeJSON, written by hand
// because it is written at every transition.
func (x *Execution) Encode() []byte {
	w := &writer{buf: make([]byte, 0, 2048)}
	f := x.unknown.fields()
	f.set("item", text(string(x.Item)))
	f.set("schema", func(w *writer) { w.buf = strconv.AppendInt(w.buf, executionSchema, 10) })
	f.set("intents", object(x.Intents, func(k layout.IntentKey) string { return string(k) }, func(i Intent) value { return i.fields().value() }))
	f.set("milestones", object(x.Milestones, nameKey, timeValue))
	f.set("workflows", object(x.Workflows, func(k string) string { return k }, func(wf *Workflow) value { return wf.fields().value() }))
	f.value()(w)
	return append(w.buf, '\n')
}

func (i Intent) encode(dst []byte) []byte {
	w := &writer{buf: dst}
	i.fields().value()(w)
	return w.buf
}

func (a Attempt) encode(dst []byte) []byte {
	w := &writer{buf: dst}
	a.fields().value()(w)
	return w.buf
}

func (i Intent) fields() fields {
	f := i.unknown.fields()
	f.set("kind", text(i.Kind))
	f.set("at", timeValue(i.At))
	f.set("by", text(i.By))
	f.text("text", i.Text)
	f.text("workflow", i.Workflow)
	f.text("step", string(i.Step))
	if !i.Attempt.IsZero() {
		f.text("attempt", i.Attempt.String())
	}
	f.text("target", string(i.Target))
	f.text("digest", i.Digest)
	return f
}

func (w *Workflow) fields() fields {
	f := w.unknown.fields()
	f.set("definition", func(wr *writer) {
		d := fields{}
		d.set("name", text(w.Name))
		d.set("digest", text(w.Digest))
		if w.StartedWith != w.Digest {
			d.set("startedWith", text(w.StartedWith))
		}
		d.value()(wr)
	})
	f.set("created", timeValue(w.Created))
	f.time("notBefore", w.NotBefore)
	f.time("ended", w.Ended)
	f.text("startedBy", w.StartedBy)
	f.set("status", text(string(w.Status)))
	if len(w.Skip) > 0 {
		f.set("skip", object(w.Skip, nameKey, text))
	}
	f.set("steps", object(w.Steps, nameKey, func(s *StepRecord) value { return s.fields().value() }))
	return f
}

func (s *StepRecord) fields() fields {
	f := s.unknown.fields()
	f.set("status", text(string(s.Status)))
	if len(s.Attempts) > 0 {
		f.set("attempts", object(s.Attempts, layout.AttemptKey.String, func(a Attempt) value { return a.fields().value() }))
	}
	return f
}

func (a Attempt) fields() fields {
	f := a.unknown.fields()
	f.set("state", text(string(a.State)))
	f.text("kind", a.Kind)
	f.time("claimed", a.Claimed)
	f.time("started", a.Started)
	f.time("ended", a.Ended)
	if !a.Ended.IsZero() && a.By == "" {
		f.set("elapsed", func(w *writer) { w.buf = strconv.AppendFloat(w.buf, a.Elapsed, 'f', -1, 64) })
	}
	f.time("notBefore", a.NotBefore)
	f.text("runner", a.Runner)
	f.text("by", a.By)
	f.text("message", a.Message)
	f.text("text", a.Text)
	if a.Progress != nil {
		f.set("progress", a.Progress.fields().value())
	}
	if a.Children > 0 {
		f.set("children", func(w *writer) { w.buf = strconv.AppendInt(w.buf, int64(a.Children), 10) })
	}
	return f
}

func (p *Progress) fields() fields {
	f := p.unknown.fields()
	f.time("at", p.At)
	f.text("note", p.Note)
	if p.Percent >= 0 {
		f.set("percent", func(w *writer) { w.buf = strconv.AppendInt(w.buf, int64(p.Percent), 10) })
	}
	return f
}

func nameKey(n layout.Name) string { return string(n) }
