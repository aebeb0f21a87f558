package attempt

import (
	"context"
	"fmt"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/steps"
	"bagpipe/steps/target"
)

// goals opens the targets of a collection's bags; nil: they go in the store, which is the
// workspace's. A target that is down is the deposit's to judge: the copies on others may do.
func (a *Attempts) goals(ctx context.Context, v gitstore.Reader, m layout.Manifest, store, own string) (*steps.Goals, error) {
	set := a.settings.Current().Settings
	names, copies := set.Goals(m.Collection)
	if names == nil {
		return nil, a.checkStore(ctx, store, own)
	}
	held, err := ledger.ReadDeposits(v, m.Item)
	if err != nil {
		return nil, err
	}
	all := &steps.Goals{Copies: copies}
	for _, name := range names {
		record := held.Targets[layout.Name(name)]
		g := steps.Goal{Name: layout.Name(name), Layout: set.Targets[name].Layout, Held: record[max(m.Version, 1)], Record: record}
		if g.Name == steps.StoreTarget {
			g.Down = a.checkStore(ctx, store, own)
		}
		if g.Down == nil {
			g.Target, g.Down = opener(a.Targets, a.ledger.Root, set, store)(name)
		}
		all.Targets = append(all.Targets, g)
	}
	return all, nil
}

// opener opens targets of a pool by their names; the store is at store.
func opener(pool *target.Pool, root string, set *settings.Settings, store string) func(string) (target.Target, error) {
	return func(name string) (target.Target, error) {
		c, is := set.Target(root, name, store)
		if !is {
			return nil, &target.Down{Err: fmt.Errorf("the settings have no target %q", name)}
		}
		return pool.Take(layout.Name(name), c)
	}
}

// recordDeposits adds the copies that a step made to the item's deposits.json.
func (a *Attempts) recordDeposits(res steps.Result) func(*ledger.Record, map[string][]byte) error {
	if len(res.Deposits) == 0 {
		return nil
	}
	return func(rec *ledger.Record, files map[string][]byte) error {
		path := layout.ItemDir(rec.Manifest.Item) + "/" + layout.DepositsJSON
		v, err := a.ledger.Store.Known()
		if err != nil {
			return err
		}
		d, err := ledger.ReadDeposits(v, rec.Manifest.Item)
		if err != nil {
			return err
		}
		for name, c := range res.Deposits {
			d.Note(name, max(rec.Manifest.Version, 1), c)
		}
		files[path], err = d.Encode()
		return err
	}
}
