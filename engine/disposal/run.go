package disposal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/engine/warrant"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
	"bagpipe/steps/target"
)

// Told is what became of one item.
type Told struct {
	Proposal string        `json:"proposal"`
	Item     layout.ItemID `json:"item"`
	Label    string        `json:"label"`
	Gone     bool          `json:"gone"`
	Why      string        `json:"why,omitempty"` // it stays, or is not gone yet
	*layout.Disposed
}

// Run carries out what is approved, of one proposal or, where key is "", of all; told is called
// item by item. An item that has to stay is told of, and the others go on.
func (k *Keeper) Run(ctx context.Context, key string, told func(Told)) error {
	if k.Ledger.ReadOnly {
		return gitstore.ErrReadOnly
	}
	if err := k.Guard.LookAtFew(ctx); err != nil {
		return err
	}
	rows, err := k.those(ctx, key)
	if err != nil {
		return err
	}
	for _, r := range rows {
		for _, id := range slices.Sorted(maps.Keys(r.Items)) {
			if at, is := r.Gone[id]; is && at != nil || r.Status != Approved && r.Status != Begun {
				continue
			}
			t := Told{Proposal: r.Key, Item: id, Label: r.Items[id].Label}
			t.Disposed, err = k.item(ctx, r, id)
			if t.Gone = err == nil; err != nil {
				if ctx.Err() != nil {
					return err
				}
				t.Why = err.Error()
			}
			told(t)
		}
	}
	return nil
}

func (k *Keeper) those(ctx context.Context, key string) ([]*Row, error) {
	if key == "" {
		return k.List(ctx)
	}
	r, err := k.Row(ctx, key)
	return []*Row{r}, err
}

// item disposes of one item, or goes on with it.
func (k *Keeper) item(ctx context.Context, r *Row, id layout.ItemID) (*layout.Disposed, error) {
	if _, begun := r.Gone[id]; !begun {
		if why := r.Waits[id]; why != "" {
			return nil, errors.New(why)
		}
		if err := k.begin(ctx, r, id); err != nil {
			return nil, err
		}
	}
	if err := k.after("begun"); err != nil {
		return nil, err
	}
	if err := k.Withdraw(ctx, id, r.Reason); err != nil {
		return nil, fmt.Errorf("take deliveries back: %w", err)
	}
	removed, err := k.remove(ctx, id, false)
	if err != nil {
		return nil, err
	}
	d, err := k.bury(ctx, r, id, removed)
	if err != nil {
		return nil, err
	}
	return d, k.after("done")
}

// begin commits that the item is disposed of: from then on nothing happens to it.
func (k *Keeper) begin(ctx context.Context, r *Row, id layout.ItemID) error {
	v, rec, err := k.Ledger.ReadTip(id, "")
	if err != nil {
		return err
	}
	if err := k.mayGo(ctx, v, rec); err != nil {
		return err
	}
	policy, err := warrant.PolicyAt(v)
	if err != nil {
		return err
	}
	key, err := k.Ledger.IntentKey()
	if err != nil {
		return err
	}
	who := k.who
	return k.Ledger.Transact(ctx, id, func(v gitstore.Reader) (*gitstore.Change, error) {
		rec, err := k.Ledger.Read(v, id, "")
		if err != nil {
			return nil, err
		}
		data, err := v.ReadFile(warrant.Path(r.Key))
		if err != nil {
			return nil, err
		}
		if warrant.DigestOf(data) != r.Digest {
			return nil, fmt.Errorf("proposal %s was changed meanwhile", r.Key)
		}
		now := k.Ledger.Now()
		if why := r.Lacks(policy, id, rec.Committed.Manifest, rec.Committed.Execution, now); why != "" {
			return nil, errors.New(why)
		}
		if _, err := state.Apply(rec.Execution, nil, state.Dispose{Key: key, At: now, By: who.Agent, Text: r.Reason, Proposal: r.Key}); err != nil {
			return nil, err
		}
		return &gitstore.Change{Files: map[string][]byte{layout.ItemDir(id) + "/" + layout.ExecutionJSON: rec.Execution.Encode()}, Author: who.Author,
			Message: who.Sign(ledger.IntentMessage(id, rec.Manifest, state.DisposeIntent, "begun", r.Reason, who.Agent))}, nil
	})
}

// remove removes all bytes of an item, and names where they were. It may be done again. Of a
// tombstone of another site, whose stores are not this one's, only copies on record are missed, and
// what steps put on access targets here.
func (k *Keeper) remove(ctx context.Context, id layout.ItemID, elsewhere bool) (removed []string, err error) {
	v, err := k.Ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	d, err := ledger.ReadDeposits(v, id)
	if err != nil {
		return nil, err
	}
	stores, err := k.ownStores(v, id)
	if err != nil {
		return nil, err
	}
	if elsewhere {
		stores = slices.DeleteFunc(stores, func(own string) bool { return own == "" || mounted(k.storeAt(own).Path) != nil })
	}
	names := map[layout.Name]bool{} // and whether it has a copy
	for _, name := range k.Settings.Current().Settings.TargetNames() {
		names[layout.Name(name)] = false
	}
	for name := range d.Targets {
		names[name] = true
	}
	shelves, err := k.shelves(v, id, elsewhere)
	if err != nil {
		return nil, err
	}
	for _, name := range shelves {
		names[name] = true
	}
	if len(d.Targets) == 0 && slices.Contains(stores, "") {
		names[steps.StoreTarget] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		t, err := k.target(name, names[name])
		if errors.Is(err, errDeliveries) {
			continue
		}
		if err == nil {
			err = target.Remove(ctx, t, id)
		}
		if err != nil && !names[name] && isAway(err) {
			continue // it was never said to have any
		}
		if err != nil {
			return nil, fmt.Errorf("target %s: %w", name, err)
		}
		removed = append(removed, string(name))
		if err := k.after("target " + string(name)); err != nil {
			return nil, err
		}
	}
	for _, own := range stores {
		if own == "" {
			continue
		}
		if err := k.removeFromStore(ctx, own, id); err != nil {
			return nil, fmt.Errorf("store %s: %w", own, err)
		}
	}
	local, err := k.removeFolder(id)
	return append(removed, local...), err
}

// ownStores names the stores in which deposit steps of the item put bags; "": that of the settings.
func (k *Keeper) ownStores(v gitstore.View, id layout.ItemID) (stores []string, err error) {
	return stores, k.tried(v, id, func(s state.Step, r *state.StepRecord) {
		own, _ := s.With["store"].(string)
		if s.Robot == "deposit" && (own != "" || r.Status == state.Completed) {
			stores = append(stores, own)
		}
	})
}

// shelves names the targets on which steps of the item put parts of it to be read; here: those that were tried at this site.
func (k *Keeper) shelves(v gitstore.View, id layout.ItemID, here bool) (names []layout.Name, err error) {
	return names, k.tried(v, id, func(s state.Step, r *state.StepRecord) {
		name, is := s.With["target"].(string)
		if !is || s.Robot != "shelve" && s.Robot != "publish" {
			return
		}
		tried := func(a state.Attempt) bool {
			return k.Ledger.Site == (state.Site{}) || k.Ledger.Site.Mine(state.SiteOf(a.Runner))
		}
		if !here || slices.ContainsFunc(slices.Collect(maps.Values(r.Attempts)), tried) {
			names = append(names, layout.Name(name))
		}
	})
}

// tried calls each for the steps of an item that were tried at least once.
func (k *Keeper) tried(v gitstore.View, id layout.ItemID, each func(state.Step, *state.StepRecord)) error {
	rec, err := k.Ledger.Read(v, id, "")
	if err != nil {
		return err
	}
	for _, w := range rec.Execution.Workflows {
		plan, err := k.Ledger.PinnedPlan(v, w.Digest)
		if err != nil {
			return err
		}
		for i := range plan.Steps {
			if s := w.Steps[layout.Name(plan.Steps[i].Name)]; s != nil && len(s.Attempts) > 0 {
				each(plan.Steps[i], s)
			}
		}
	}
	return nil
}

func (k *Keeper) removeFromStore(ctx context.Context, own string, id layout.ItemID) error {
	config := k.storeAt(own)
	if err := mounted(config.Path); err != nil {
		return err
	}
	t, err := target.Open(steps.StoreTarget, config, k.Ledger.Now)
	if err != nil {
		return err
	}
	return errors.Join(target.Remove(ctx, t, id), t.Close())
}

// records are the files of an item's folder that tell of it, and hold no bytes of it.
var records = []string{layout.ManifestJSON, layout.ExecutionJSON}

// removeFolder removes all of an item's folder but its records.
func (k *Keeper) removeFolder(id layout.ItemID) (removed []string, err error) {
	dir := k.Ledger.Path(layout.ItemDir(id))
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if slices.Contains(records, e.Name()) {
			continue
		}
		if err := disk.RemoveTree(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
		if e.IsDir() {
			removed = append(removed, e.Name())
		}
		if err := k.after("folder " + e.Name()); err != nil {
			return nil, err
		}
	}
	return removed, disk.SyncDir(dir)
}

// bury makes a tombstone of the item's manifest.
func (k *Keeper) bury(ctx context.Context, r *Row, id layout.ItemID, removed []string) (d *layout.Disposed, err error) {
	who := k.who
	voices := []string{"proposed by " + r.By}
	for _, s := range r.Approved {
		voices = append(voices, "approved by "+s.Person)
	}
	return d, k.Ledger.Transact(ctx, id, func(v gitstore.Reader) (*gitstore.Change, error) {
		rec, err := k.Ledger.Read(v, id, "")
		if err != nil {
			return nil, err
		}
		if d = rec.Manifest.Disposed; d != nil { // another process was at it, too, and came first
			return nil, nil
		}
		in, is := state.Disposal(rec.Execution)
		if !is {
			return nil, errors.New("its disposal is not begun")
		}
		stone := rec.Manifest.Tombstone(layout.Disposed{At: in.At, By: in.By, Reason: r.Reason, Authority: r.Authority, Proposal: string(in.Target), Voices: voices, Removed: removed})
		d = stone.Disposed
		data, err := stone.EncodeTombstone(rec.Committed.Manifest)
		if err != nil {
			return nil, err
		}
		dir := layout.ItemDir(id) + "/"
		files := map[string][]byte{dir + layout.ManifestJSON: data}
		for _, name := range []string{layout.InventoryJSON, layout.DepositsJSON, layout.QualityJSON, layout.DeliveryJSON} {
			old, err := ledger.ReadOptional(v, dir+name)
			if err != nil {
				return nil, err
			}
			if old != nil {
				files[dir+name] = nil
			}
		}
		message := ledger.Message(fmt.Sprintf("dispose: done %s (%s/%s)", id, rec.Manifest.Collection, ledger.Clip(rec.Manifest.Label, 100)), report(*d),
			[]ledger.Trailer{{"Bagpipe-Item", string(id)}, {"Bagpipe-Disposal", r.Key}, {"Bagpipe-Agent", who.Agent}})
		return &gitstore.Change{Files: files, Author: who.Author, Message: who.Sign(message)}, nil
	})
}

// report says what was removed, and what the history keeps.
func report(d layout.Disposed) string {
	text := d.Reason + "\n"
	if d.Authority != "" {
		text += "authority: " + d.Authority + "\n"
	}
	for _, v := range d.Voices {
		text += v + "\n"
	}
	for _, r := range d.Removed {
		text += "removed: " + r + "\n"
	}
	for _, h := range d.History {
		text += "kept by the history: " + h + "\n"
	}
	return text
}

// Tidy removes what this workspace has of items that were disposed of elsewhere, and counts
// the items. The errors of items of which something stays, as a target is away, are joined; the others go on.
func (k *Keeper) Tidy(ctx context.Context) (n int, errs error) {
	v, err := k.Ledger.Store.Tip()
	if err != nil {
		return 0, err
	}
	for it := range k.Index.Loaded().Items() {
		if !it.Disposed() {
			continue
		}
		rec, err := k.Ledger.Read(v, it.ID, "")
		if err != nil {
			return n, err
		}
		if rec.Manifest.Disposed == nil || !k.left(v, it.ID) {
			continue
		}
		_, err = k.remove(ctx, it.ID, true)
		if err == nil {
			err = k.forgetCopies(ctx, it.ID)
		}
		switch {
		case ctx.Err() != nil:
			return n, errors.Join(errs, ctx.Err())
		case err != nil:
			errs = errors.Join(errs, fmt.Errorf("item %s, which was disposed of elsewhere: %w", it.ID.Short(), err))
		default:
			n++
		}
	}
	return n, errs
}

// left reports whether something of a tombstone's bytes may be here.
func (k *Keeper) left(v gitstore.View, id layout.ItemID) bool {
	entries, err := os.ReadDir(k.Ledger.Path(layout.ItemDir(id)))
	if err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.IsDir() }) {
		return true
	}
	if _, is := steps.Deposited(k.Settings.Current().Settings.StoreDir(k.Ledger.Root), id, 1); is {
		return true
	}
	d, err := ledger.ReadDeposits(v, id)
	return err != nil || len(d.Targets) > 0
}

// forgetCopies takes what is not there any more from the records.
func (k *Keeper) forgetCopies(ctx context.Context, id layout.ItemID) error {
	who := k.who
	return k.Ledger.Transact(ctx, id, func(v gitstore.Reader) (*gitstore.Change, error) {
		rec, err := k.Ledger.Read(v, id, "")
		if err != nil || rec.Manifest.Disposed == nil {
			return nil, err
		}
		path := layout.ItemDir(id) + "/" + layout.DepositsJSON
		old, err := ledger.ReadOptional(v, path)
		if err != nil || old == nil {
			return nil, err
		}
		message := ledger.Message(fmt.Sprintf("dispose: tidied %s (%s/%s)", id, rec.Manifest.Collection, ledger.Clip(rec.Manifest.Label, 100)), "",
			[]ledger.Trailer{{"Bagpipe-Item", string(id)}, {"Bagpipe-Disposal", rec.Manifest.Disposed.Proposal}, {"Bagpipe-Agent", who.Agent}})
		return &gitstore.Change{Files: map[string][]byte{path: nil}, Author: who.Author, Message: who.Sign(message)}, nil
	})
}
