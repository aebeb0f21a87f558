package intake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bagpipe/engine/fault"
	"bagpipe/engine/intake/identity"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Known is what a person says of an item whose content is yet to come.
type Known struct {
	Identifiers map[string]string
	Metadata    map[string]any
}

// Register makes an item without content: its robots fetch it, a person attaches it, or a
// drop with one of its identifiers brings it. It is refused where an identifier is another
// item's.
func (in *Intake) Register(ctx context.Context, o AddOptions, k Known) (Admitted, error) {
	a := &adding{e: in, o: o, ticket: ticket(o, in.ledger.ByPerson().Agent)}
	if err := errors.Join(a.begin(), in.folder.Space.Low(), in.guard.LookAtFew(ctx)); err != nil {
		return Admitted{}, err
	}
	m, err := in.unborn(a, k)
	if err != nil {
		return Admitted{}, err
	}
	c := in.settings.Current()
	def := c.Workflows[a.o.Workflow]
	if def == nil {
		def = c.Workflows[c.Settings.Collection(m.Collection).Workflow]
	}
	if def == nil {
		return Admitted{}, fault.New(fault.NotFound, fmt.Sprintf("collection %s has no workflow; name one", m.Collection), fault.Remedy{Verb: fault.ListWorkflows})
	}
	guard, err := (&admitting{Intake: in}).guardKnown(ctx, &m)
	if err != nil {
		return Admitted{}, err
	}
	// A crash before the commit leaves an empty folder, which is in nobody's way.
	source := filepath.Join(in.ledger.Path(layout.ItemDir(m.Item)), layout.SourceDir)
	if err := disk.MkdirAll(source, 0o777); err != nil {
		return Admitted{}, err
	}
	if err := in.ledger.RegisterItem(ctx, m, def, settings.NotAsked(def.Def, m.Collection, c.Settings.Collection(m.Collection).Approvals), in.ledger.ByPerson(), guard); err != nil {
		_ = os.Remove(source) // and its folder: empty, see above
		_ = os.Remove(filepath.Dir(source))
		return Admitted{}, fmt.Errorf("register %s: %w", m.Label, err)
	}
	return Admitted{Item: m.Item, Collection: m.Collection, Label: m.Label, Workflow: def.Def.Name}, nil
}

// unborn is the manifest of an item without content.
func (in *Intake) unborn(a *adding, k Known) (m layout.Manifest, err error) {
	id, err := layout.NewItemID(in.ledger.Random)
	if err != nil {
		return m, err
	}
	s, now := in.settings.Current().Settings, in.ledger.Now().UTC().Truncate(ledger.Resolution)
	lane := a.o.Lane
	if lane == "" {
		lane = s.Collection(a.o.Collection).Lane
	}
	return layout.Manifest{Item: id, Version: 1, Collection: a.o.Collection, Label: a.o.Label, Lane: layout.Name(lane), Batch: string(a.o.Batch), Created: now,
		Metadata: k.Metadata, Recognised: layout.Recognised{Identifiers: k.Identifiers},
		Source: layout.Source{Kind: layout.Bare, Taken: now, By: a.ticket.By}}, nil
}

// IsKnown reports whether an item has one of the identifiers.
func (in *Intake) IsKnown(ctx context.Context, identifiers map[string]string) (bool, error) {
	k, err := in.Identities.Load(ctx)
	if err != nil {
		return false, err
	}
	v, err := in.ledger.Store.Tip()
	if err != nil {
		return false, err
	}
	var known *identity.KnownError
	err = k.Judge(v, &layout.Manifest{Recognised: layout.Recognised{Identifiers: identifiers}}, "")
	if errors.As(err, &known) {
		return true, nil
	}
	return false, err
}

// Fate says what becomes of a drop that has identifiers: the version of which item, or why it
// is rejected; "": a new item.
func (in *Intake) Fate(ctx context.Context, identifiers map[string]string, version bool) (string, error) {
	k, err := in.Identities.Load(ctx)
	if err != nil {
		return "", err
	}
	v, err := in.ledger.Store.Tip()
	if err != nil {
		return "", err
	}
	m := layout.Manifest{Recognised: layout.Recognised{Identifiers: identifiers}}
	var known *identity.KnownError
	if err := k.Judge(v, &m, ""); !errors.As(err, &known) {
		return "", err
	}
	heir, refusal, err := k.HeirOf(v, &m, "")
	switch {
	case err != nil:
		return "", err
	case refusal != "" && version:
		return "rejected: " + refusal, nil
	case version || heir.First:
		return fmt.Sprintf("version %d of item %s", heir.Version, heir.Item), nil
	}
	return "rejected: " + known.Text, nil
}

// ItemOf finds the item that has an identifier; "": there is none.
func (in *Intake) ItemOf(ctx context.Context, kind, value string) (layout.ItemID, error) {
	k, err := in.Identities.Load(ctx)
	if err != nil {
		return "", err
	}
	v, err := in.ledger.Store.Tip()
	if err != nil {
		return "", err
	}
	h, _, err := k.HeirOf(v, &layout.Manifest{Recognised: layout.Recognised{Identifiers: map[string]string{kind: value}}}, "")
	return h.Item, err
}

// Attachable refuses an item that has content already, or in which a step runs.
func (in *Intake) Attachable(id layout.ItemID) error {
	_, rec, err := in.ledger.ReadTip(id, "")
	if err != nil {
		return err
	}
	if !rec.Manifest.Source.Bare() || state.Fetched(rec.Execution) {
		return fault.New(fault.Refused, fmt.Sprintf("item %s has its content; any more content is a new version of it", id.Short()))
	}
	return nil
}
