package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// retireTries bounds how often a retirement begins again on an item that is changed meanwhile.
const retireTries = 10

// Retire takes the records of a finished item out of the tip, and leaves a line that says where
// they last stood. The bytes stay. The index is loaded.
func Retire(ctx context.Context, ac *Acts, id layout.ItemID, text string) error {
	if err := ac.guard.LookAtFew(ctx); err != nil {
		return err
	}
	children := ac.index.Loaded().Children(id)
	var err error
	for range retireTries {
		v, errTip := ac.ledger.Store.Tip()
		if errTip != nil {
			return errTip
		}
		err = ac.ledger.Transact(ctx, id, func(r gitstore.Reader) (*gitstore.Change, error) {
			rec, err := ac.ledger.Read(r, id, "")
			if err != nil {
				return nil, err
			}
			why, err := stays(r, rec, children)
			if err != nil {
				return nil, err
			}
			if why != "" {
				return nil, &state.IllegalError{Event: "retire", Item: id, Reason: why}
			}
			files, err := ledger.Retirement(r, v, rec.Manifest)
			return &gitstore.Change{Files: files, Author: ac.who.Author, Message: ac.retireMessage(rec.Manifest, "retire", ledger.Retired, text)}, err
		})
		if !errors.Is(err, ledger.ErrMovedOn) {
			break
		}
	}
	return err
}

// stays says why an item is not to be retired; "": it may be.
func stays(r gitstore.Reader, rec *ledger.Record, children []*queue.Item) (string, error) {
	m := rec.Manifest
	if why := state.Unfinished(rec.Execution, m); why != "" {
		return why, nil
	}
	if m.Source.Place != nil {
		return "it is in catalog " + string(m.Source.Place.Catalog) + ", whose scans look at it", nil
	}
	if m.Parent != nil {
		parent, err := ledger.ReadRecords(r, m.Parent.Item)
		if err != nil {
			return "", err
		}
		if !parent.Absent() {
			return fmt.Sprintf("it is a part of item %s, which is retired before it", m.Parent.Item.Short()), nil
		}
	}
	for _, c := range children {
		if slices.ContainsFunc(c.Runs, func(run queue.Run) bool { return run.Status != state.Completed }) {
			return fmt.Sprintf("its part %s is not finished", c.ID.Short()), nil
		}
	}
	data, err := ledger.ReadOptional(r, layout.ItemDir(m.Item)+"/"+layout.DeliveryJSON)
	if err != nil || data == nil {
		return "", err
	}
	deliveries, err := layout.DecodeDeliveries(data)
	if err != nil {
		return "", err
	}
	for to, d := range deliveries.Targets {
		switch d.State {
		case layout.DeliveryReady, layout.DeliveryWaits, layout.DeliverySending, layout.DeliveryFailed:
			return fmt.Sprintf("its delivery to %s is %s", to, d.State), nil
		}
	}
	return "", nil
}

// Recall brings the records of a retired item back.
func Recall(ctx context.Context, ac *Acts, id layout.ItemID, text string) error {
	if err := ac.guard.LookAtFew(ctx); err != nil {
		return err
	}
	return ac.ledger.Transact(ctx, id, func(r gitstore.Reader) (*gitstore.Change, error) {
		f, err := ledger.StandingOf(ac.ledger, r, id)
		if err != nil {
			return nil, err
		}
		s, err := ledger.ReadRetired(r, id)
		switch {
		case err != nil:
			return nil, err
		case f.Absent() && s != (layout.Standing{}):
			return nil, fault.New(fault.Damaged, fmt.Sprintf("the records of item %s last stood in commit %q, which is not in this repository", id.Short(), s.Commit))
		case f.Absent():
			return nil, ledger.NoItem(string(id))
		case f.Retired == (layout.Standing{}):
			return nil, &state.IllegalError{Event: "recall", Item: id, Reason: "it is not retired"}
		}
		m, err := layout.DecodeManifest(f.Manifest)
		if err != nil {
			return nil, err
		}
		files := map[string][]byte{}
		err = ledger.Recall(ac.ledger, r, id, files)
		return &gitstore.Change{Files: files, Author: ac.who.Author, Message: ac.retireMessage(m, "recall", ledger.Recalled, text)}, err
	})
}

func (ac *Acts) retireMessage(m layout.Manifest, verb, to, text string) string {
	return ac.who.Sign(ledger.Message(verb+": "+to+" "+string(m.Item)+" ("+string(m.Collection)+"/"+ledger.Clip(m.Label, 100)+")", text,
		[]ledger.Trailer{{"Bagpipe-Item", string(m.Item)}, {"Bagpipe-To", to}, {"Bagpipe-Agent", ac.who.Agent}}))
}
