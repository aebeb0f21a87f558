package intake

import (
	"context"
	"errors"

	"bagpipe/engine/intake/sidecar"
	"bagpipe/engine/settings"
)

// describe adds to a drop what its side-cars say; what is wrong with them refuses it,
// or is noted in the item, as the inbox's settings want.
func (a *admitting) describe(ctx context.Context, d *drop) error {
	limits := a.settings.Current().Settings.ArchiveLimits()
	set := a.settings.Current().Settings.Drops(d.taken.Collection)
	fields, identifiers, err := sidecar.ReadMetadata(ctx, set.Metadata, sidecar.CarReader{Limits: limits, Shared: &a.shared, Turn: a.cars}, d.taken)
	var unread *sidecar.UnreadError
	if errors.As(err, &unread) { // not the fault of its maker
		d.metadata = map[string]any{sidecar.FlaggedMetadata: unread.Error()}
		return nil
	}
	var broken *sidecar.SidecarError
	if errors.As(err, &broken) && set.Metadata.Broken == settings.BrokenFlag {
		d.metadata = map[string]any{sidecar.FlaggedMetadata: broken.Error()}
		return nil
	}
	if errors.As(err, &broken) {
		d.refused, d.rule = broken.Error(), sidecar.RuleMetadata
		return nil
	}
	d.metadata, d.identifiers = fields, identifiers
	if s := d.taken.Ticket.Said; s != nil && err == nil {
		d.metadata, d.identifiers = union(fields, s.Metadata), union(identifiers, s.Identifiers)
	}
	return err
}
