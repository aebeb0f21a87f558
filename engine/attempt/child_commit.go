package attempt

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// commit registers one child, as long as the attempt is the current one.
func (cs *children) commit(ctx context.Context, c *child, f *fence) error {
	now := cs.ledger.Now().UTC().Truncate(ledger.Resolution)
	label := cmp.Or(c.Label, c.admission.Outcome.Label, layout.EncodePath(c.Name))
	who := cs.ledger.ByRobot(f.a.Step)
	m := layout.Manifest{
		Item: c.id, Version: 1, Collection: c.admission.Collection, Label: ledger.OneLine(label, ledger.MaxLabel), Lane: layout.Name(c.admission.Lane), Created: now,
		Parent: &layout.Parent{Item: f.a.Item, Workflow: f.a.Workflow, Step: f.a.Step, Name: layout.EncodePath(c.Name), Generation: generation(cs.parent) + 1},
		Source: layout.Source{Name: layout.EncodePath(c.taken.Name), Kind: c.admission.Kind, Files: c.sum.Files, Bytes: c.sum.Bytes, Digest: c.sum.Digest,
			Taken: now, By: who.Agent, Rule: c.admission.Rule},
		Metadata: c.Metadata,
	}
	c.admission.Describe(&m)
	err := cs.ledger.RegisterItem(ctx, m, c.admission.Workflow, c.admission.Skip, who, func(r gitstore.Reader, _ *layout.Manifest) error { return f.check(r) })
	if err != nil {
		return fmt.Errorf("register child %s: %w", m.Parent.Name, err)
	}
	return nil
}

// fence lets children be registered while their attempt is the current one. The
// parent's record changes seldom while they are, and is read once for each version.
type fence struct {
	a layout.AttemptRef

	mu   sync.Mutex // guards the rest
	seen []byte
	err  error
}

func (f *fence) check(r gitstore.Reader) error {
	data, err := r.ReadFile(layout.ItemDir(f.a.Item) + "/" + layout.ExecutionJSON)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen != nil && bytes.Equal(f.seen, data) {
		return f.err
	}
	x, err := state.Decode(data)
	if err != nil {
		return err
	}
	f.seen, f.err = data, current(x, f.a)
	return f.err
}
