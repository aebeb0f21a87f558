package state

import (
	"strconv"

	"bagpipe/layout"
)

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
		d := w.unknownOfDefinition.fields()
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
