package fixity

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// record commits what was found of an item, and holds it where a copy is damaged.
func (c *Checks) record(ctx context.Context, r Result) error {
	outcome := layout.FixityPassed
	var text []string
	for _, name := range slices.Sorted(maps.Keys(r.Copies)) {
		found := r.Copies[name]
		line := name + ": " + found.Outcome
		if found.Message != "" {
			line += ": " + found.Message
		}
		text = append(text, line)
		if found.Outcome == layout.FixityFailed {
			outcome = layout.FixityFailed
		}
	}
	who := c.ledger.ByPerson()
	err := c.ledger.Transact(ctx, r.Item, func(v gitstore.Reader) (*gitstore.Change, error) {
		d, err := recorded(v, r.Item)
		if err != nil {
			return nil, err
		}
		d.Item, d.Copies = r.Item, r.Copies
		data, err := d.Encode()
		if err != nil {
			return nil, err
		}
		subject := fmt.Sprintf("fixity: %s %s (%s/%s)", outcome, r.Item, r.Collection, ledger.Clip(r.Label, 100))
		return &gitstore.Change{Files: map[string][]byte{layout.ItemDir(r.Item) + "/" + layout.DepositsJSON: data}, Author: who.Author,
			Message: ledger.Message(subject, strings.Join(text, "\n"), []ledger.Trailer{{"Bagpipe-Item", string(r.Item)}, {"Bagpipe-Fixity", outcome}, {"Bagpipe-Agent", who.Agent}})}, nil
	})
	if err != nil || outcome == layout.FixityPassed {
		return err
	}
	return c.hold(ctx, r)
}

// hold keeps a damaged item's steps from starting, unless something does already.
func (c *Checks) hold(ctx context.Context, r Result) error {
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
	if len(rec.Execution.Holds()) > 0 { // its steps do not start
		return nil
	}
	return c.act.Hold(ctx, r.Item, "fixity: "+strings.Join(what, "; "))
}

// Status is when the items were checked last.
type Status struct {
	Items   int       `json:"items"`
	Checked int       `json:"checked"` // at least once
	Never   int       `json:"never"`
	Failed  []Result  `json:"failed"`          // by the last check
	Oldest  time.Time `json:"oldest,omitzero"` // when the item was checked that was checked longest ago
	Newest  time.Time `json:"newest,omitzero"` // when the last check was
}

// Status reads what was found of all items; it looks at no copy.
func (c *Checks) Status() (Status, error) {
	s := Status{Failed: []Result{}}
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return s, err
	}
	for it := range c.index.Loaded().Items() {
		s.Items++
		d, err := recorded(v, it.ID)
		if err != nil {
			return s, err
		}
		if len(d.Copies) == 0 {
			s.Never++
			continue
		}
		s.Checked++
		at := oldest(d)
		if s.Oldest.IsZero() || at.Before(s.Oldest) {
			s.Oldest = at
		}
		if at.After(s.Newest) {
			s.Newest = at
		}
		if r := (Result{it.ID, it.Collection, it.Label, d.Copies}); len(r.Failed()) > 0 {
			s.Failed = append(s.Failed, r)
		}
	}
	return s, nil
}
