package attempt

import (
	"context"
	"fmt"

	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// checkBytes refuses to let a robot at an item whose bytes are elsewhere.
func (a *Attempts) checkBytes(ctx context.Context, rec *ledger.Record) error {
	why, err := a.folder.Missing(ctx, rec.Manifest, rec.Execution)
	if err != nil {
		return steps.SystemFailure("look for the item's bytes: %w", err)
	}
	if why != "" {
		return steps.SystemFailure("%s, then the step can be tried again", why)
	}
	return nil
}

// verifySource fails an item whose source is not what was taken in: a copy that went on
// after its drop had settled, a robot or a person wrote into it.
func (a *Attempts) verifySource(ctx context.Context, m layout.Manifest, inventory []byte) error {
	change, err := a.folder.SourceChanged(ctx, m, inventory)
	if err != nil {
		return steps.SystemFailure("verify the source: %w", err)
	}
	if change == "" {
		return nil
	}
	return steps.ContentFailure("%s", folder.ChangeText(m, change))
}

// checkOpen refuses to begin a step of an item whose content is being replaced, or of
// a workflow that is over with a version before: its claim must be taken already.
func (a *Attempts) checkOpen(rec *ledger.Record, workflow string, step layout.Name) error {
	m := rec.Manifest
	illegal := &state.IllegalError{Event: "claim", Item: m.Item, Workflow: workflow, Step: step}
	if a.folder.HasVersionDir(m.Item, m.Version) {
		illegal.Reason = fmt.Sprintf("version %d of the item is being taken in", m.Version+1)
		return illegal
	}
	if why := ledger.OfBefore(rec, workflow); why != nil {
		illegal.Reason, illegal.Remedies = why.Text, why.Remedies
		return illegal
	}
	return nil
}
