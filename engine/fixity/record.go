package fixity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// record commits what was found of an item, and what is known of copies that were not come to, and holds it where a copy is damaged, or
// lets it go again. Of an item of which no copy could be compared nothing is committed.
func (c *Checks) record(ctx context.Context, r Result) error {
	if r.toldNothing() {
		return nil
	}
	outcome := layout.FixityPassed
	if len(r.Failed()) > 0 {
		outcome = layout.FixityFailed
	}
	who := c.who
	var now layout.Deposits // what is known of all copies
	err := c.ledger.Transact(ctx, r.Item, func(v gitstore.Reader) (*gitstore.Change, error) {
		d, err := ledger.ReadDeposits(v, r.Item)
		if err != nil {
			return nil, err
		}
		d.Item = r.Item
		switch {
		case r.targetsOnly:
		case r.partly && d.Copies != nil:
			maps.Copy(d.Copies, r.local(d.Copies))
		default:
			d.Copies = r.local(d.Copies)
		}
		r.keepTargets(&d)
		now = d
		data, err := d.Encode()
		if err != nil {
			return nil, err
		}
		stands, text := outcome, r.lines()
		for _, name := range (Result{Copies: knownCopies(d)}).Failed() {
			if found := knownCopies(d)[name]; r.Copies[name].Outcome != layout.FixityFailed { // it was not come to
				stands = layout.FixityFailed
				text = append(text, fmt.Sprintf("%s: %s: %s, found at %s", name, stands, found.Message, found.At.UTC().Format(time.RFC3339)))
			}
		}
		subject := fmt.Sprintf("fixity: %s %s (%s/%s)", stands, r.Item, r.Collection, ledger.Clip(r.Label, 100))
		return &gitstore.Change{Files: map[string][]byte{layout.ItemDir(r.Item) + "/" + layout.DepositsJSON: data}, Author: who.Author,
			Message: ledger.Message(subject, strings.Join(text, "\n"), []ledger.Trailer{{"Bagpipe-Item", string(r.Item)}, {"Bagpipe-Fixity", stands}, {"Bagpipe-Agent", who.Agent}})}, nil
	})
	switch {
	case err != nil:
		return err
	case outcome == layout.FixityPassed:
		return release(ctx, c, r.Item, now)
	}
	copies := knownCopies(now)
	maps.DeleteFunc(copies, func(name string, _ layout.FixityCheck) bool {
		return slices.Contains([]string{Source, Content, Derived}, name)
	})
	return c.hold(ctx, r, copies)
}

// lines tell of each copy that was looked at.
func (r Result) lines() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Copies)) {
		line := name + ": " + r.Copies[name].Outcome
		if found := r.Copies[name]; found.Message != "" {
			line += ": " + found.Message
		}
		out = append(out, line)
	}
	return out
}

// heldBy is what the text of a hold begins with that a check placed.
const heldBy = state.HeldByFixity

// release ends the holds that checks placed, once no copy is known to be damaged any more. A
// person's hold stays, and so do all beside it, as a release ends every one.
func release(ctx context.Context, c *Checks, id layout.ItemID, known layout.Deposits) error {
	if len(Result{Copies: knownCopies(known)}.Failed()) > 0 {
		return nil
	}
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return err
	}
	rec, err := c.ledger.Read(v, id, "")
	if err != nil {
		return err
	}
	holds := rec.Execution.Holds()
	for _, key := range holds {
		if !strings.HasPrefix(rec.Execution.Intents[key].Text, heldBy) {
			return nil
		}
	}
	if len(holds) == 0 {
		return nil
	}
	return unlessSo(c.act.Release(ctx, id, heldBy+"all copies are sound again"))
}

// hold keeps a damaged item's steps from starting, unless something does already.
func (c *Checks) hold(ctx context.Context, r Result, known map[string]layout.FixityCheck) error {
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return err
	}
	rec, err := c.ledger.Read(v, r.Item, "")
	if err != nil {
		return err
	}
	var what []string
	for _, name := range r.Failed() {
		what = append(what, name+": "+r.Copies[name].Message)
	}
	text := heldBy + strings.Join(what, "; ")
	if len(known) > 0 && len(Result{Copies: known}.Failed()) == len(known) {
		text = heldBy + state.NoSoundCopy + strings.Join(what, "; ")
	}
	for _, key := range rec.Execution.Holds() { // its steps do not start
		was := rec.Execution.Intents[key].Text
		if !strings.Contains(text, state.NoSoundCopy) || strings.Contains(was, state.NoSoundCopy) || !strings.HasPrefix(was, heldBy) {
			return nil
		}
	}
	return unlessSo(c.act.Hold(ctx, r.Item, text))
}

// unlessSo leaves out the error of a hold or release of what another process held or released meanwhile.
func unlessSo(err error) error {
	if so := (*state.IllegalError)(nil); errors.As(err, &so) {
		return nil
	}
	return err
}

// Status is when the items were checked last.
type Status struct {
	Items   int       `json:"items"`
	Checked int       `json:"checked"` // at least once
	Never   int       `json:"never"`
	Failed  []Result  `json:"failed"`          // by the last check
	Aside   []Result  `json:"aside,omitempty"` // of which a mend set bytes aside that are there still
	Oldest  time.Time `json:"oldest,omitzero"` // when the item was checked that was checked longest ago
	Newest  time.Time `json:"newest,omitzero"` // when the last check was
}

// Status reads what checks and sweeps of all copies found of all items; it looks at no copy.
func (c *Checks) Status() (Status, error) {
	s := Status{Failed: []Result{}}
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return s, err
	}
	loaded := c.index.Loaded()
	// The record of an item whose copies a sweep found sound does not change: pages of sweeps tell of it.
	swept, err := seenBySweeps(v, Sweep{Of: OfItems}, c.ledger.Now(), loaded.Len())
	if err != nil {
		return s, err
	}
	for it := range loaded.Items() {
		if it.Disposed() {
			continue
		}
		s.Items++
		d, err := ledger.ReadDeposits(v, it.ID)
		if err != nil {
			unread := layout.FixityCheck{Outcome: layout.FixityFailed, Message: ledger.Clip(ledger.Printable(err.Error()), ledger.MaxMessage)}
			s.Failed = append(s.Failed, Result{Item: it.ID, Collection: it.Collection, Label: it.Label, Copies: map[string]layout.FixityCheck{layout.DepositsJSON: unread}})
			continue
		}
		at := swept[it.ID]
		if len(d.Copies) > 0 { // a deposit is no check
			if own := oldest(d, view{}); own.After(at) {
				at = own
			}
		}
		if at.IsZero() {
			s.Never++
			continue
		}
		s.Checked++
		if s.Oldest.IsZero() || at.Before(s.Oldest) {
			s.Oldest = at
		}
		if at.After(s.Newest) {
			s.Newest = at
		}
		r := Result{Item: it.ID, Collection: it.Collection, Label: it.Label, Copies: knownCopies(d)}
		if len(r.Failed()) > 0 {
			s.Failed = append(s.Failed, r)
		}
		if len(r.Aside()) > 0 {
			s.Aside = append(s.Aside, r)
		}
	}
	return s, nil
}
