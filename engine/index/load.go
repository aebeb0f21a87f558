package index

import (
	"context"
	"fmt"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// View gives the loaded index. The first call loads it; from then on the keeper's
// observer keeps it current. Callers that come during the load wait for it.
func (ke *Keeper) View(ctx context.Context) (*queue.Index, error) {
	ke.loading.Lock()
	defer ke.loading.Unlock()
	if index := ke.Loaded(); index != nil {
		return index, nil
	}
	if err := ke.load(ctx); err != nil {
		return nil, err
	}
	return ke.Loaded(), nil
}

// Load fills the index from the committed records anew, for those who look.
func (ke *Keeper) Load(ctx context.Context) error {
	ke.loading.Lock()
	defer ke.loading.Unlock()
	return ke.load(ctx)
}

func (ke *Keeper) load(ctx context.Context) error {
	if err := ke.begin(ctx, ke.showRemoved); err != nil {
		return err
	}
	ke.SaveIndexSoon()
	return nil
}

// Begin fills the index anew for a run, which answers for removed items itself.
func (ke *Keeper) Begin(ctx context.Context) error {
	ke.loading.Lock()
	defer ke.loading.Unlock()
	err := ke.begin(ctx, nil)
	if err == nil {
		ke.CountDeployed(ke.settings.Current())
	}
	return err
}

func (ke *Keeper) begin(ctx context.Context, besides func(context.Context, gitstore.View, *queue.Index) error) error {
	v, err := ke.ledger.Store.Tip()
	if err != nil {
		return err
	}
	index, err := ke.fill(ctx, v)
	if err != nil {
		return err
	}
	if besides != nil {
		if err := besides(ctx, v, index); err != nil {
			return err
		}
	}
	ke.noting.Lock()
	defer ke.noting.Unlock()
	ke.mu.Lock()
	ke.index, ke.derived.at = index, v.Commit()
	ke.mu.Unlock()
	ke.ApplyLimits(ke.settings.Current())
	applyControls(ke.control, index)
	return ke.reachTip(ctx, v)
}

// reachTip brings a new index, filled at v, to where the branch is: what was told
// meanwhile passed the index by.
func (ke *Keeper) reachTip(ctx context.Context, v gitstore.View) error {
	to, ok := tipNow(ke.ledger.Store, v), true
	err := ke.ledger.Store.Diff(ctx, v.Commit(), to, func(c gitstore.FileChange) error {
		ok = noteChanges(ke, []gitstore.FileChange{c}) && ok
		return nil
	})
	ke.mu.Lock()
	defer ke.mu.Unlock()
	ke.derived.at, ke.derived.behind = to, ke.derived.behind || !ok || err != nil
	return err
}

func tipNow(store *gitstore.Store, v gitstore.View) gitstore.Hash {
	if now, err := store.Tip(); err == nil {
		return now.Commit()
	}
	return v.Commit()
}

// RemovedText is why an item is shown whose records a push removed: the history
// and the bytes are there still, and the next look brings the records back.
const RemovedText = "its records were removed from the branch; the next command that changes something, or the next run, brings them back"

// showRemoved puts the items into the index whose records were removed since the
// last look, so that no listing passes over them.
func (ke *Keeper) showRemoved(ctx context.Context, v gitstore.View, index *queue.Index) error {
	from, ok := ke.guard.Since()
	if !ok {
		return nil
	}
	before, err := ke.ledger.Store.At(from)
	if err != nil {
		return err
	}
	return ke.ledger.Store.Diff(ctx, from, v.Commit(), func(c gitstore.FileChange) error {
		id, rest, ok := layout.ItemOfPath(c.Path)
		if !ok || !c.Deleted || rest != layout.ExecutionJSON || index.Item(id) != nil {
			return nil
		}
		if s, err := ledger.ReadRetired(v, id); err == nil && s != (layout.Standing{}) {
			return nil
		}
		f, err := ledger.ReadRecords(before, id)
		if err != nil {
			return err
		}
		index.Put(gone(ke.Summarise(before, id, &f, &Scanned{}, &queue.Item{})))
		return nil
	})
}

// gone is an item without its records.
func gone(it *queue.Item) *queue.Item {
	out := *it
	out.Runs, out.Broken, out.Gone = nil, RemovedText, true
	return &out
}

// noted is what the changes of one advance say of an item.
type noted struct {
	id    layout.ItemID
	files ledger.Records
	gone  map[string]bool // files that were removed
}

// decoder reads records. Whoever takes one may change it, and gives it back.
type decoder interface {
	Head(id layout.ItemID, data []byte) (layout.Manifest, error) // all of a manifest that the index holds
	Take(id layout.ItemID, data []byte) (*state.Execution, error)
	Keep(id layout.ItemID, data []byte, x *state.Execution)
}

// Summarise makes in into what the index holds of an item. It never fails: a record that
// cannot be read makes an item that is shown as broken, with the reason, and that has
// no ready step. Nothing of the bytes is kept.
func (ke *Keeper) Summarise(r gitstore.Reader, id layout.ItemID, f *ledger.Records, d decoder, into *queue.Item) *queue.Item {
	broken := func(m layout.Manifest, why error) *queue.Item {
		return &queue.Item{ID: id, Collection: m.Collection, Label: m.Label, Batch: m.Batch, Parent: m.Parent, Created: m.Created, Broken: why.Error()}
	}
	if f.Manifest == nil || f.Execution == nil {
		return broken(layout.Manifest{}, fmt.Errorf("%s or %s is missing at the tip", layout.ManifestJSON, layout.ExecutionJSON))
	}
	m, err := d.Head(id, f.Manifest)
	if err != nil {
		return broken(m, err)
	}
	x, err := d.Take(id, f.Execution)
	if err != nil {
		return broken(m, err)
	}
	if x.Item != id || m.Item != id {
		return broken(m, fmt.Errorf("the records in %s are another item's", layout.ItemDir(id)))
	}
	var missing error
	plans := func(digest string) *state.Definition {
		d, err := ke.ledger.PinnedPlan(r, digest)
		if err != nil {
			missing = err
		}
		return d
	}
	m.Label = ledger.Printable(m.Label) // a push may hold anything
	defer d.Keep(id, f.Execution, x)
	x.Manifest, x.Since, x.Bare, x.Site = f.Manifest, m.Since, m.Source.Bare(), ke.ledger.Site
	it := queue.SummariseInto(into, x, m, plans, ke.ledger.Now())
	noteDeployed(ke, it, x)
	it.Facets = facetsOf(*ke.facets.Load(), f)
	if missing != nil {
		it.Broken = missing.Error()
	}
	return it
}

// NoteItems brings the index up to date; an observer.
func (ke *Keeper) NoteItems(a gitstore.Advance) {
	ke.noting.Lock()
	defer ke.noting.Unlock()
	ok := noteChanges(ke, a.Changes)
	ke.mu.Lock()
	defer ke.mu.Unlock()
	if ke.index != nil {
		ke.derived.at, ke.derived.between, ke.derived.behind = a.To, a.More, ke.derived.behind || !ok
		ke.derived.changes += len(a.Changes)
	}
}

// noteChanges brings the index up to date; false when it cannot.
func noteChanges(ke *Keeper, changes []gitstore.FileChange) bool {
	ke.mu.Lock()
	index := ke.index
	ke.mu.Unlock()
	var order []*noted
	items := map[layout.ItemID]*noted{}
	for _, c := range changes {
		noteBatch(ke.ledger.Log, index, c)
		id, rest, ok := layout.ItemOfPath(c.Path)
		if !ok || index == nil || rest != layout.ManifestJSON && rest != layout.ExecutionJSON {
			continue
		}
		n := items[id]
		if n == nil {
			n = &noted{id: id}
			items[id] = n
			order = append(order, n)
		}
		n.note(rest, c)
	}
	if len(order) == 0 {
		return true
	}
	v, err := ke.ledger.Store.Known()
	if err != nil {
		ke.ledger.Log.Error("read the tip", "err", err)
		return false
	}
	for _, n := range order {
		ke.reload(index, v, n)
	}
	return true
}

func (n *noted) note(file string, c gitstore.FileChange) {
	if n.gone == nil {
		n.gone = map[string]bool{}
	}
	n.gone[file] = c.Deleted
	switch file {
	case layout.ManifestJSON:
		n.files.Manifest = c.Data
	case layout.ExecutionJSON:
		n.files.Execution = c.Data
	}
}

// reload puts one item into the index as it is after an advance; what did not
// change is read at the tip, unless it is known,
// and may be newer there by now; then it comes again.
func (ke *Keeper) reload(index *queue.Index, v gitstore.View, n *noted) {
	dir, known := layout.ItemDir(n.id)+"/", ke.ledger.Recent(v, n.id)
	if n.files.Manifest == nil && !n.gone[layout.ManifestJSON] {
		n.files.Manifest, _ = known.ReadFile(dir + layout.ManifestJSON) // absent: shown as broken
	}
	if n.files.Execution == nil && !n.gone[layout.ExecutionJSON] {
		n.files.Execution, _ = known.ReadFile(dir + layout.ExecutionJSON)
	}
	if n.files.Manifest != nil && n.files.Execution != nil {
		ke.ledger.Latest.Put(n.id, n.files)
	} else {
		ke.ledger.Latest.Drop(n.id)
	}
	if n.gone[layout.ManifestJSON] && n.gone[layout.ExecutionJSON] && n.files.Manifest == nil && n.files.Execution == nil {
		if s, err := ledger.ReadRetired(v, n.id); err == nil && s != (layout.Standing{}) {
			index.Remove(n.id)
		} else if was := index.Item(n.id); was != nil {
			index.Put(gone(was))
		}
		return
	}
	ke.mu.Lock()
	told := ke.ended
	ke.mu.Unlock()
	var was *queue.Item
	if told != nil {
		was = queue.Bare(index.View, n.id)
	}
	is := controlled(ke.control, index, ke.Summarise(v, n.id, &n.files, &ke.ledger.Decoded, &ke.noted))
	index.Put(is)
	ke.NoteEnds(index, is)
	trialMoved(ke.control, index, n.id)
	if was != nil {
		tellEnded(told, own(ke), was, is)
	}
}

// tellEnded tells the run, in the order of the commits, which steps of its attempts
// ended on an item.
func tellEnded(told func(Ended), ours func(layout.EngineID) bool, was, is *queue.Item) {
	if len(was.Runs) > len(is.Runs) {
		return
	}
	for r := range was.Runs {
		before, now := &was.Runs[r], &is.Runs[r]
		var last *Ended
		for i := range now.Steps {
			s := &now.Steps[i]
			if i >= len(before.Steps) || s.Current == before.Steps[i].Current && s.Status == before.Steps[i].Status || s.Status == state.InProgress || !ours(s.Current.Engine) {
				continue
			}
			if last != nil {
				told(*last)
			}
			last = &Ended{Item: is.ID, Label: is.Label, Workflow: now.Name, Step: layout.Name(now.Plan.Steps[i].Name), Status: s.Status, Message: s.Message, Tolerated: s.Status == state.Failed && now.Plan.Steps[i].Tolerated(), Waited: s.Waited, Ran: s.Ran}
		}
		if last != nil {
			last.Done = now.Status == state.Completed && before.Status != state.Completed
			told(*last)
		}
	}
}

// Ended is a step that this run ended.
type Ended struct {
	Item      layout.ItemID
	Label     string
	Workflow  string
	Step      layout.Name
	Status    state.Status
	Message   string
	Waited    time.Duration // from when it could start to its claim
	Ran       time.Duration // from its start to its end
	Tolerated bool          // it failed, and the item goes on
	Done      bool          // the workflow came to its end with it
}

// TellEnded sets who is told of ended steps.
func (ke *Keeper) TellEnded(f func(Ended)) {
	ke.mu.Lock()
	defer ke.mu.Unlock()
	ke.ended = f
}

// Lent notes that this engine has lent steps to a worker: what ends there ends by this engine.
func (ke *Keeper) Lent(worker layout.EngineID) { ke.lent.Store(worker, true) }

// own reports whether attempts with an identifier are the keeper's engine's, or a worker's that it lent to.
func own(ke *Keeper) func(layout.EngineID) bool {
	return func(of layout.EngineID) bool {
		_, lent := ke.lent.Load(of)
		return lent || of == ke.ledger.ID
	}
}
