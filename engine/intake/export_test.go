package intake

import (
	"context"
	"errors"
	"fmt"

	"bagpipe/engine/ledger"
)

// Prepared is a drop that was recognised, digested and looked for, and is no item yet.
type Prepared struct {
	a *admitting
	d *drop
}

// Prepare takes a path into the collection default, and prepares it.
func (in *Intake) Prepare(ctx context.Context, path string, who ledger.Actor) (*Prepared, error) {
	box, err := in.Box(false)
	if err != nil {
		return nil, err
	}
	if _, err := in.ledger.Seat.Engine(); err != nil {
		return nil, err
	}
	taken, err := box.Accept(ctx, path, ticket(AddOptions{Collection: "default"}, who.Agent))
	if err != nil {
		return nil, err
	}
	p := &Prepared{a: &admitting{Intake: in, box: box, who: who},
		d: &drop{taken: taken, Admitted: Admitted{Item: taken.ID, Collection: "default", Label: taken.Name}}}
	if err := p.a.prepare(ctx, p.d); err != nil || p.d.refused != "" {
		return nil, errors.Join(err, fmt.Errorf("refused at once: %q", p.d.refused))
	}
	return p, nil
}

// Admit makes an item of it, or sets it aside.
func (p *Prepared) Admit(ctx context.Context) (Admitted, error) {
	p.a.admitPrepared(ctx, []*drop{p.d})
	return p.d.Admitted, p.d.err
}
