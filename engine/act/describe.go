package act

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Description is what of an item's description is to change; what is empty stays.
type Description struct {
	Label       string
	Lane        string
	Collection  string
	Identifiers map[string]string // "" removes the one of that kind
	Metadata    map[string]any    // merged; nil removes a key
}

// Note adds a word of the person's to an item's history.
func Note(ctx context.Context, ac *Acts, id layout.ItemID, text string) error {
	key, err := ac.ledger.IntentKey()
	if err != nil {
		return err
	}
	return ac.intend(ctx, id, state.RemarkIntent, "noted", text,
		state.Remark{Key: key, At: ac.ledger.Now(), By: ac.who.Agent, Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage)})
}

// check refuses a lane or a collection that there is not.
func (d Description) check(s *settings.Source) error {
	if err := s.Current().Settings.CheckLane(d.Lane); err != nil || d.Collection == "" {
		return err
	}
	return s.CheckCollection(layout.Name(d.Collection))
}

// Describe changes the description of an item; why stands in the history. It is refused
// when nothing would change.
func Describe(ctx context.Context, ac *Acts, id layout.ItemID, d Description, why string) error {
	if err := errors.Join(d.check(ac.settings), ac.guard.LookAtFew(ctx)); err != nil {
		return err
	}
	err := ac.ledger.Transact(ctx, id, func(r gitstore.Reader) (*gitstore.Change, error) {
		rec, err := ac.ledger.Read(r, id, "")
		if err != nil {
			return nil, err
		}
		m := rec.Manifest
		if in, is := state.Disposal(rec.Execution); is {
			return nil, &state.IllegalError{Event: "set", Item: id, Reason: in.DisposalText()}
		}
		changed := d.apply(&m)
		old, err := undescribed(rec.Committed.Manifest)
		if err != nil {
			return nil, err
		}
		data, err := m.Encode(old)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(data, rec.Committed.Manifest) {
			return nil, &state.IllegalError{Event: "set", Item: id, Reason: "it is so already"}
		}
		message := ledger.Message("set: "+strings.Join(changed, ", ")+" "+string(id)+" ("+string(m.Collection)+"/"+ledger.Clip(m.Label, 100)+")", why,
			[]ledger.Trailer{{"Bagpipe-Item", string(id)}, {"Bagpipe-Set", strings.Join(changed, " ")}, {"Bagpipe-Agent", ac.who.Agent}})
		return &gitstore.Change{Files: map[string][]byte{layout.ItemDir(id) + "/" + layout.ManifestJSON: data}, Author: ac.who.Author, Message: ac.who.Sign(message)}, nil
	})
	if err == nil {
		err = publishAnew(ctx, ac, id)
	}
	return err
}

// publishAnew resets the step that published an item last, as what it published is not so any more;
// one that was taken away stays so.
func publishAnew(ctx context.Context, ac *Acts, id layout.ItemID) error {
	v, err := ac.ledger.Store.Tip()
	if err != nil {
		return err
	}
	rec, err := ac.ledger.Read(v, id, "")
	if err != nil {
		return err
	}
	var last SeenStep
	var at time.Time
	withdrawn := false
	for name, w := range rec.Execution.Workflows {
		plan, err := ac.ledger.PinnedPlan(v, w.Digest)
		if err != nil {
			return err
		}
		rec.Execution.Compute(name, plan)
		for i := range plan.Steps {
			s := w.Steps[layout.Name(plan.Steps[i].Name)]
			if plan.Steps[i].Robot != "publish" || s == nil || s.Status != state.Completed {
				continue
			}
			if key, a, _ := s.Current(); a.Ended.After(at) {
				at, withdrawn = a.Ended, plan.Steps[i].With["withdraw"] == true
				last = SeenStep{StepRef: ledger.StepRef{Item: id, Workflow: name, Step: layout.Name(plan.Steps[i].Name)}, Status: s.Status, Attempt: key}
			}
		}
	}
	if at.IsZero() || withdrawn {
		return nil
	}
	_, err = ac.Reset(ctx, last, false, "what it publishes changed")
	return err
}

// undescribed is a manifest without the members whose keys may be removed: what stands in
// it would survive.
func undescribed(manifest []byte) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(manifest, &members); err != nil {
		return nil, err
	}
	delete(members, "identifiers")
	delete(members, "metadata")
	return json.Marshal(members)
}

// apply changes m, and names what it was told to change.
func (d Description) apply(m *layout.Manifest) (changed []string) {
	if d.Label != "" {
		m.Label, changed = ledger.Clip(ledger.Printable(d.Label), ledger.MaxLabel), append(changed, "label")
	}
	if d.Lane != "" {
		m.Lane, changed = layout.Name(d.Lane), append(changed, "lane")
	}
	if d.Collection != "" {
		m.Collection, changed = layout.Name(d.Collection), append(changed, "collection")
	}
	if len(d.Identifiers) > 0 {
		all := maps.Clone(m.Identifiers)
		if all == nil {
			all = map[string]string{}
		}
		for _, kind := range slices.Sorted(maps.Keys(d.Identifiers)) {
			if all[kind] = d.Identifiers[kind]; all[kind] == "" {
				delete(all, kind)
			}
			changed = append(changed, "identifiers."+kind)
		}
		m.Identifiers = all
	}
	if len(d.Metadata) > 0 {
		m.Metadata = ledger.Merge(m.Metadata, d.Metadata)
		for _, key := range slices.Sorted(maps.Keys(d.Metadata)) {
			changed = append(changed, "metadata."+key)
		}
	}
	return changed
}
