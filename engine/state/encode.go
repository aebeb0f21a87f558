package state

import (
	"bytes"
	"time"

	"bagpipe/layout"
)

// Encode writes execution.json: the form of layout.EncodeJSON, written by hand
// because it is written at every transition.
func (x *Execution) Encode() []byte {
	w := written(x, object(x.Intents, intentKey, writeIntent))
	defer w.keep()
	return append(append(make([]byte, 0, len(w.buf)+1), w.buf...), '\n')
}

// EncodesAs reports whether Encode gives data. o is the outline of data, by DecodeNew after what Encode gave of x
// before events were applied to it; nil: that is not known. Intents, which no event alters, are then not
// written again.
func EncodesAs(x *Execution, data []byte, o *Outline) bool {
	intents := object(x.Intents, intentKey, writeIntent)
	if o != nil && o.hasIntents(x) {
		intents = made(func(w *writer) { o.writeIntents(w, x) })
	}
	w := written(x, intents)
	defer w.keep()
	made, end := bytes.CutSuffix(data, []byte{'\n'})
	return end && bytes.Equal(w.buf, made)
}

func written(x *Execution, intents value) *writer {
	w := newWriter()
	f := x.unknown.members(w)
	f.set("intents", intents)
	f.set("item", text(string(x.Item)))
	f.set("milestones", object(x.Milestones, nameKey, (*writer).moment))
	f.set("schema", integer(executionSchema))
	f.set("workflows", object(x.Workflows, func(k string) string { return k }, func(w *writer, wf *Workflow) { wf.write(w) }))
	f.end()
	return w
}

func intentKey(k layout.IntentKey) string { return string(k) }

func writeIntent(w *writer, i Intent) { i.write(w) }

// hasIntents reports whether the intents are those of x.
func (o *Outline) hasIntents(x *Execution) bool {
	for _, m := range o.intents {
		if _, there := x.Intents[o.intent(m)]; !there {
			return false
		}
	}
	return len(o.intents) == len(x.Intents)
}

func (o *Outline) intent(m member) layout.IntentKey {
	return layout.IntentKey(o.data[m.from+1 : m.from+1+m.key])
}

func (o *Outline) writeIntents(w *writer, x *Execution) {
	w.open()
	for i, m := range o.intents {
		k := o.intent(m)
		if w.key(i, string(k)); m.same {
			w.buf = append(w.buf, o.data[m.from+int32(len(`"": `))+m.key:m.to]...)
		} else {
			writeIntent(w, x.Intents[k])
		}
	}
	w.shut(len(o.intents))
}

// EncodeBefore is Encode as it was before workflows told when they were started, and which of
// them are scheduled: a history may have been written so.
func EncodeBefore(x *Execution) []byte {
	old := *x
	old.Workflows = make(map[string]*Workflow, len(x.Workflows))
	for name, w := range x.Workflows {
		was := *w
		if was.Started = (time.Time{}); was.Status == Scheduled {
			was.Status = InProgress
		}
		old.Workflows[name] = &was
	}
	return old.Encode()
}

func (i Intent) encode(dst []byte) []byte {
	w := &writer{buf: dst}
	i.write(w)
	return w.buf
}

func (a Attempt) encode(dst []byte) []byte {
	w := &writer{buf: dst}
	a.write(w)
	return w.buf
}

// write sets the members in their order, so that they need not be sorted; so do the others here.
func (i *Intent) write(w *writer) {
	f := i.unknown.members(w)
	f.set("at", timeValue(i.At))
	if !i.Attempt.IsZero() {
		f.text("attempt", i.Attempt.String())
	}
	f.set("by", text(i.By))
	f.text("digest", i.Digest)
	f.set("kind", text(i.Kind))
	f.text("site", string(i.Site))
	f.text("step", string(i.Step))
	f.text("target", string(i.Target))
	f.text("text", i.Text)
	f.text("workflow", i.Workflow)
	f.end()
}

func (w *Workflow) write(to *writer) {
	f := w.unknown.members(to)
	f.set("created", timeValue(w.Created))
	f.set("definition", made(func(to *writer) {
		d := w.unknownOfDefinition.members(to)
		d.set("digest", text(w.Digest))
		d.set("name", text(w.Name))
		if w.StartedWith != w.Digest {
			d.set("startedWith", text(w.StartedWith))
		}
		d.end()
	}))
	f.time("ended", w.Ended)
	f.time("notBefore", w.NotBefore)
	if len(w.Skip) > 0 {
		f.set("skip", object(w.Skip, nameKey, (*writer).quote))
	}
	f.time("started", w.Started)
	f.text("startedBy", w.StartedBy)
	f.set("status", text(string(w.Status)))
	f.set("steps", object(w.Steps, nameKey, func(to *writer, s *StepRecord) { s.write(to) }))
	f.end()
}

func (s *StepRecord) write(w *writer) {
	f := s.unknown.members(w)
	if len(s.Attempts) > 0 {
		f.set("attempts", object(s.Attempts, layout.AttemptKey.String, func(w *writer, a Attempt) { a.write(w) }))
	}
	f.set("status", text(string(s.Status)))
	f.end()
}

func (a *Attempt) write(w *writer) {
	f := a.unknown.members(w)
	f.text("by", a.By)
	if a.Children > 0 {
		f.set("children", integer(a.Children))
	}
	if a.Chosen != nil {
		f.set("chosen", names(a.Chosen))
	}
	f.time("claimed", a.Claimed)
	if a.Content {
		f.set("content", made(func(w *writer) { w.buf = append(w.buf, "true"...) }))
	}
	f.took("cpu", a.CPU)
	if !a.Ended.IsZero() && a.By == "" {
		f.set("elapsed", number(a.Elapsed))
	}
	f.time("ended", a.Ended)
	f.took("idle", a.Idle)
	f.text("inputs", a.Inputs)
	f.text("kind", a.Kind)
	f.text("message", a.Message)
	f.time("notBefore", a.NotBefore)
	f.text("outputs", a.Outputs)
	if a.Progress != nil {
		f.set("progress", made(a.Progress.write))
	}
	f.text("runner", a.Runner)
	f.time("started", a.Started)
	f.set("state", text(string(a.State)))
	f.text("text", a.Text)
	f.text("version", a.Version)
	f.end()
}

// names is a list of names, one a line.
func names(of []layout.Name) value {
	return made(func(w *writer) {
		w.buf = append(w.buf, '[')
		w.depth++
		for i, n := range of {
			if i > 0 {
				w.buf = append(w.buf, ',')
			}
			w.line()
			w.quote(string(n))
		}
		if w.depth--; len(of) > 0 {
			w.line()
		}
		w.buf = append(w.buf, ']')
	})
}

func (p *Progress) write(w *writer) {
	f := p.unknown.members(w)
	f.time("at", p.At)
	f.text("note", p.Note)
	if p.Percent >= 0 {
		f.set("percent", integer(p.Percent))
	}
	f.end()
}

func nameKey(n layout.Name) string { return string(n) }
