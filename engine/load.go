package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Load fills the index from the committed records, for those who look. From then
// on advanced keeps it current.
func (e *Engine) Load(ctx context.Context) error {
	if err := e.load(ctx, e.showRemoved); err != nil {
		return err
	}
	e.saveIndexSoon()
	return nil
}

// load is Load; besides puts more into the index.
func (e *Engine) load(ctx context.Context, besides func(context.Context, gitstore.View, *queue.Index) error) error {
	v, err := e.store.Tip()
	if err != nil {
		return err
	}
	index, err := e.fill(ctx, v)
	if err != nil {
		return err
	}
	if besides != nil {
		if err := besides(ctx, v, index); err != nil {
			return err
		}
	}
	e.noting.Lock()
	defer e.noting.Unlock()
	e.mu.Lock()
	e.index, e.derived.at = index, v.Commit()
	e.mu.Unlock()
	e.applyLimits(e.current())
	e.control(index)
	return e.reachTip(ctx, v)
}

// reachTip brings a new index, filled at v, to where the branch is: what was told
// meanwhile passed the index by.
func (e *Engine) reachTip(ctx context.Context, v gitstore.View) error {
	to, ok := e.tipNow(v), true
	err := e.store.Diff(ctx, v.Commit(), to, func(c gitstore.FileChange) error {
		ok = e.noteChanges([]gitstore.FileChange{c}) && ok
		return nil
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.derived.at, e.derived.behind = to, e.derived.behind || !ok || err != nil
	return err
}

func (e *Engine) tipNow(v gitstore.View) gitstore.Hash {
	if now, err := e.store.Tip(); err == nil {
		return now.Commit()
	}
	return v.Commit()
}

// removedText is why an item is shown whose records a push removed: the history
// and the bytes are there still, and the next look brings the records back.
const removedText = "its records were removed from the branch; the next command that changes something, or bagpipe run, brings them back"

// showRemoved puts the items into the index whose records were removed since the
// last look, so that no listing passes over them.
func (e *Engine) showRemoved(ctx context.Context, v gitstore.View, index *queue.Index) error {
	from, ok := e.arrivals.since()
	if !ok {
		return nil
	}
	before, err := e.store.At(from)
	if err != nil {
		return err
	}
	return e.store.Diff(ctx, from, v.Commit(), func(c gitstore.FileChange) error {
		id, rest, ok := layout.ItemOfPath(c.Path)
		if !ok || !c.Deleted || rest != layout.ExecutionJSON || index.Item(id) != nil {
			return nil
		}
		f, err := readRecords(before, id)
		if err != nil {
			return err
		}
		index.Put(gone(e.summarise(before, id, &files{f.manifest, f.execution}, &scanned{}, &queue.Item{})))
		return nil
	})
}

// gone is an item without its records.
func gone(it *queue.Item) *queue.Item {
	out := *it
	out.Runs, out.Broken, out.Gone = nil, removedText, true
	return &out
}

// walkItems visits the wanted files of all items; before the first item there is
// no folder to walk.
func walkItems(ctx context.Context, v gitstore.View, want func(string) bool, visit func(string, []byte) error) error {
	if _, err := v.List(layout.ItemsDir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := v.Walk(ctx, layout.ItemsDir, want, visit); err != nil {
		return fmt.Errorf("read the items: %w", err)
	}
	return nil
}

// files are an item's records as committed; nil where one is missing.
type files struct{ manifest, execution []byte }

// noted is what the changes of one advance say of an item.
type noted struct {
	id    layout.ItemID
	files files
	gone  map[string]bool // files that were removed
}

// decoder reads records. Whoever takes one may change it, and gives it back.
type decoder interface {
	decodeManifest(id layout.ItemID, data []byte) (layout.Manifest, error)
	take(id layout.ItemID, data []byte) (*state.Execution, error)
	keep(id layout.ItemID, data []byte, x *state.Execution)
}

// summarise makes in into what the index holds of an item. It never fails: a record that
// cannot be read makes an item that is shown as broken, with the reason, and that has
// no ready step. Nothing of the bytes is kept.
func (e *Engine) summarise(r gitstore.Reader, id layout.ItemID, f *files, d decoder, into *queue.Item) *queue.Item {
	broken := func(m layout.Manifest, why error) *queue.Item {
		return &queue.Item{ID: id, Collection: m.Collection, Label: m.Label, Batch: m.Batch, Parent: m.Parent, Created: m.Created, Broken: why.Error()}
	}
	if f.manifest == nil || f.execution == nil {
		return broken(layout.Manifest{}, fmt.Errorf("%s or %s is missing at the tip", layout.ManifestJSON, layout.ExecutionJSON))
	}
	m, err := d.decodeManifest(id, f.manifest)
	if err != nil {
		return broken(m, err)
	}
	x, err := d.take(id, f.execution)
	if err != nil {
		return broken(m, err)
	}
	if x.Item != id || m.Item != id {
		return broken(m, fmt.Errorf("the records in %s are another item's", layout.ItemDir(id)))
	}
	var missing error
	plans := func(digest string) *state.Definition {
		d, err := e.pinnedPlan(r, digest)
		if err != nil {
			missing = err
		}
		return d
	}
	m.Label = printable(m.Label) // a push may hold anything
	defer d.keep(id, f.execution, x)
	x.Manifest, x.Since = f.manifest, m.Since
	it := queue.SummariseInto(into, x, m, plans, e.o.Now())
	it.Facets = facetsOf(*e.facets.Load(), f)
	if missing != nil {
		it.Broken = missing.Error()
	}
	return it
}

// noteItems brings the index up to date; an observer.
func (e *Engine) noteItems(a gitstore.Advance) {
	e.noting.Lock()
	defer e.noting.Unlock()
	ok := e.noteChanges(a.Changes)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.index != nil {
		e.derived.at, e.derived.between, e.derived.behind = a.To, a.More, e.derived.behind || !ok
		e.derived.changes += len(a.Changes)
	}
}

// noteChanges brings the index up to date; false when it cannot.
func (e *Engine) noteChanges(changes []gitstore.FileChange) bool {
	e.mu.Lock()
	index := e.index
	e.mu.Unlock()
	var order []*noted
	items := map[layout.ItemID]*noted{}
	for _, c := range changes {
		e.noteBatch(index, c)
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
	v, err := e.store.Known()
	if err != nil {
		e.o.Log.Error("read the tip", "err", err)
		return false
	}
	for _, n := range order {
		e.reload(index, v, n)
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
		n.files.manifest = c.Data
	case layout.ExecutionJSON:
		n.files.execution = c.Data
	}
}

// reload puts one item into the index as it is after an advance; what did not
// change is read at the tip, unless it is known,
// and may be newer there by now; then it comes again.
func (e *Engine) reload(index *queue.Index, v gitstore.View, n *noted) {
	dir, known := layout.ItemDir(n.id)+"/", e.recent(v, n.id)
	if n.files.manifest == nil && !n.gone[layout.ManifestJSON] {
		n.files.manifest, _ = known.ReadFile(dir + layout.ManifestJSON) // absent: shown as broken
	}
	if n.files.execution == nil && !n.gone[layout.ExecutionJSON] {
		n.files.execution, _ = known.ReadFile(dir + layout.ExecutionJSON)
	}
	if n.files.manifest != nil && n.files.execution != nil {
		e.records.put(n.id, n.files)
	} else {
		e.records.drop(n.id)
	}
	if n.gone[layout.ManifestJSON] && n.gone[layout.ExecutionJSON] && n.files.manifest == nil && n.files.execution == nil {
		if was := index.Item(n.id); was != nil {
			index.Put(gone(was))
		}
		return
	}
	was, is := index.Item(n.id), e.controlled(index, e.summarise(v, n.id, &n.files, &e.decoded, &queue.Item{}))
	index.Put(is)
	e.noteEnds(index, is)
	e.trialMoved(index, n.id)
	e.tellEnded(was, is)
}

// tellEnded tells the run, in the order of the commits, which steps this engine
// ended on an item.
func (e *Engine) tellEnded(was, is *queue.Item) {
	e.mu.Lock()
	told := e.ended
	e.mu.Unlock()
	if told == nil || was == nil || len(was.Runs) > len(is.Runs) {
		return
	}
	for r := range was.Runs {
		before, now := &was.Runs[r], &is.Runs[r]
		for i := range now.Steps {
			s := &now.Steps[i]
			if i >= len(before.Steps) || s.Current == before.Steps[i].Current && s.Status == before.Steps[i].Status || s.Current.Engine != e.id || s.Status == state.InProgress {
				continue
			}
			end := Ended{Item: is.ID, Label: is.Label, Workflow: now.Name, Step: layout.Name(now.Plan.Steps[i].Name), Status: s.Status, Message: s.Message}
			told(end)
		}
	}
}

// numbered splits accession.1 into its definition's name and number.
func numbered(workflow string) (name, n string) {
	i := strings.LastIndexByte(workflow, '.')
	if i < 0 {
		return workflow, ""
	}
	return workflow[:i], workflow[i+1:]
}
