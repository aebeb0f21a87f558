package audit

import (
	"bytes"
	"fmt"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// replay makes the event happen again, at a site, that led from the records before to those
// now. An error says why none did.
func (r *reader) replay(id layout.ItemID, site layout.Name, before, now ledger.Records, plans state.Plans) (h happened, tr state.Transition, err error) {
	y, outline, err := r.after(id, before.Execution, now.Execution) // without what is as before
	if err != nil {
		return h, tr, err
	}
	if severalCompleted(y) {
		r.doubted[id] = true
	}
	x := &state.Execution{Item: id}
	if before.Execution == nil {
		outline = nil
	} else {
		kept := false
		if x, kept, err = r.take(id, before.Execution); err != nil {
			return h, tr, err
		}
		if !kept {
			outline = nil
		}
		m, err := r.manifest(id, before.Manifest)
		if err != nil {
			return h, tr, err
		}
		x.Manifest, x.Since, x.Bare, x.Site = before.Manifest, m.Since, m.Source.Bare(), state.Site{Name: site}
		x.Recompute(plans)
	}
	d := differ(x, y)
	if h, err = eventOf(d, x, y, plans); err != nil {
		return h, tr, err
	}
	for _, k := range h.before {
		in := y.Intents[layout.IntentKey(k)]
		w := x.Workflows[in.Workflow]
		if w == nil || plans(w.Digest) == nil {
			return h, tr, errNoEvent
		}
		if _, err := state.Apply(x, plans(w.Digest), state.Deactivate{Key: layout.IntentKey(k), Workflow: in.Workflow, At: in.At, By: in.By, Text: in.Text}); err != nil {
			return h, tr, err
		}
	}
	if h.workflow != "" && h.plan == nil {
		return h, tr, fmt.Errorf("the definition that %s runs by is not in the history", h.workflow)
	}
	if len(h.before) > 0 {
		d = differ(x, y)
	}
	if tr, err = state.Apply(x, h.plan, h.event); err != nil {
		return h, tr, err
	}
	rename(x, y, d.intents)
	if state.EncodesAs(x, now.Execution, outline) {
		x.Around = nil
		r.keep(id, now.Execution, x)
		return h, tr, nil
	}
	if bytes.Equal(state.EncodeBefore(x), now.Execution) {
		tr.From, tr.To = asBefore(tr.From), asBefore(tr.To)
		return h, tr, nil
	}
	return h, tr, fmt.Errorf("the event makes another record: %s", firstDifference(x.Encode(), now.Execution))
}

// asBefore is a status as versions told it that scheduled no workflow.
func asBefore(s state.Status) state.Status {
	if s == state.Scheduled {
		return state.InProgress
	}
	return s
}

// firstDifference gives the first line that is not the same.
func firstDifference(want, is []byte) string {
	a, b := bytes.Split(want, []byte("\n")), bytes.Split(is, []byte("\n"))
	for i := range min(len(a), len(b)) {
		if !bytes.Equal(a[i], b[i]) {
			return fmt.Sprintf("%s instead of %s", ledger.Clip(string(bytes.TrimSpace(b[i])), 120), ledger.Clip(string(bytes.TrimSpace(a[i])), 120))
		}
	}
	return "it ends elsewhere"
}
