package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/inbox"
	"bagpipe/engine/recognise"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// The rules are: a drop that has an identifier of one item, and whose rule says known:
// version, becomes the next version of that item, once nothing of the item is under
// way. Until then it stays in the intake, and status says what it waits for. First the
// item is closed by the folder of the version to be replaced (engine/inbox): who
// begins a step takes its claim first and then looks for that folder; who closes the
// item looks for claims afterwards, so that one of the two sees the other. Then the
// bytes move, and one commit makes the version. A crash before it is taken back at the
// next start, and the drop goes through its admission again.

// heir is what a drop is to be a version of.
type heir struct {
	item    layout.ItemID
	version int // that the drop becomes
}

// heirOf finds the one item that a drop's identifiers lead to; refusal says why none
// can have it.
func (k *known) heirOf(r gitstore.Reader, m *layout.Manifest) (h heir, refusal string, err error) {
	items := map[layout.ItemID]layout.Manifest{}
	for kind, value := range m.Identifiers {
		same, err := k.holders(r, identifierKey(kind, value), m.Item, func(o *layout.Manifest) bool { return o.Identifiers[kind] == value })
		if err != nil {
			return h, "", err
		}
		for _, o := range same {
			items[o.Item] = o
		}
	}
	if len(items) != 1 {
		var names []string
		for _, o := range items {
			names = append(names, nameItem(o))
		}
		slices.Sort(names)
		return h, fmt.Sprintf("its identifiers are those of several items, and it can be a version of one only: %s", clip(strings.Join(names, ", "), 1000)), nil
	}
	for _, o := range items {
		if o.Parent != nil {
			return h, fmt.Sprintf("it has an identifier of %s, which is a part of item %s: a part has no versions of its own", nameItem(o), o.Parent.Item), nil
		}
		h = heir{o.Item, o.Version + 1}
	}
	return h, "", nil
}

// inherit makes a drop that is known by its identifiers a version of the item that has
// them, if its rule says so.
func (e *Engine) inherit(ctx context.Context, r gitstore.Reader, d *drop, m *layout.Manifest) error {
	if d.rule != ruleIdentifier || d.admission.outcome == nil || d.admission.outcome.Known != recognise.KnownVersion {
		return nil
	}
	k, err := e.theKnown(ctx)
	if err != nil {
		return err
	}
	h, refusal, err := k.heirOf(r, m)
	if err != nil {
		return err
	}
	if d.refused = refusal; refusal == "" {
		d.rule, d.heir = "", h
	}
	return nil
}

// takeBack begins the admission of a drop anew that was on its way to be a version. It
// tells whether the version is committed.
func (e *Engine) takeBack(box *inbox.Box, d *drop) (done bool, err error) {
	t := d.taken
	if t.Item == "" {
		return false, nil
	}
	v, err := e.store.Tip()
	if err != nil {
		return false, err
	}
	rec, err := e.read(v, t.Item, "")
	var none *NoItemError
	if err != nil && !errors.As(err, &none) {
		return false, err
	}
	if err == nil && e.isVersion(rec.manifest, t) {
		if !t.Promoted {
			return false, fmt.Errorf("drop %s is version %d of item %s and not in its folder", layout.EncodePath(t.Name), t.Version, t.Item)
		}
		d.Admitted.Item, d.Version = t.Item, t.Version
		return true, nil
	}
	d.taken, err = box.Restore(t)
	return false, err
}

// bound tells whether a drop waits for the item that it is to be a version of, and why.
func (e *Engine) bound(t inbox.Taken) (why string, waits bool) {
	if t.Item == "" || t.Promoted {
		return "", false
	}
	v, err := e.store.Tip()
	if err != nil {
		return "", false
	}
	rec, err := e.read(v, t.Item, "")
	if err != nil {
		return "", false // its admission tells
	}
	if why = notYet(rec); why == "" {
		why = e.notHere(rec)
	}
	return why, why != ""
}

// isVersion tells whether a drop is, or was, the version of the item that it was to be.
func (e *Engine) isVersion(m layout.Manifest, t inbox.Taken) bool {
	if m.Version > t.Version {
		return e.hasVersionDir(t.Item, t.Version)
	}
	return m.Version == t.Version && m.Source.Drop == t.ID
}

func (e *Engine) hasVersionDir(item layout.ItemID, n int) bool {
	_, err := os.Lstat(e.path(layout.VersionDir(item, n)))
	return err == nil
}

// notYet says what a new version of an item waits for; "" is nothing.
func notYet(rec *record) string {
	item := rec.manifest.Item.Short()
	if len(rec.execution.Holds()) > 0 {
		return fmt.Sprintf("waits for item %s, which is held; bagpipe release %s lets it go on", item, item)
	}
	if what := rec.execution.Underway(); what != "" {
		return fmt.Sprintf("waits for item %s: %s is not done; bagpipe why %s says more", item, what, item)
	}
	return ""
}

// whyBound says what a drop in the intake waits for that is to be a version.
func (e *Engine) whyBound(t inbox.Taken) string {
	if why, waits := e.bound(t); waits {
		return "taken in as a new version; " + why
	}
	return fmt.Sprintf("taken in as a new version of item %s; the next run goes on with it", t.Item.Short())
}

// commitVersion makes a drop the next version of its item, or lets it wait.
func (e *Engine) commitVersion(ctx context.Context, box *inbox.Box, d *drop, who actor) error {
	h := d.heir
	v, rec, err := e.readTip(h.item, "")
	if err != nil {
		return err
	}
	why := e.notNow(rec, h)
	if why == "" {
		why = e.notHere(rec)
	}
	if why != "" {
		return e.letWait(box, d, why)
	}
	records := map[string][]byte{layout.ManifestJSON: rec.manifestJ}
	inventory, err := readOptional(v, layout.ItemDir(h.item)+"/"+layout.InventoryJSON)
	if err != nil {
		return err
	}
	if inventory != nil {
		records[layout.InventoryJSON] = inventory
	}
	d.taken, err = box.Replace(ctx, d.taken, h.item, h.version, records, func() error { return e.freeForVersion(ctx, h) })
	if err == nil {
		err = e.registerVersion(ctx, d, rec.manifestJ, who)
	}
	var waits *inbox.WaitsError
	if errors.As(err, &waits) {
		if d.taken, err = box.Restore(d.taken); err != nil {
			return err
		}
		return e.letWait(box, d, waits.Reason)
	}
	if err != nil {
		return fmt.Errorf("register %s as version %d of item %s: %w", d.Label, h.version, h.item, err)
	}
	return nil
}

// notNow is notYet by the version that the drop was to follow.
func (e *Engine) notNow(rec *record, h heir) string {
	if rec.manifest.Version+1 != h.version {
		return fmt.Sprintf("another drop became version %d of item %s", rec.manifest.Version, h.item.Short())
	}
	return notYet(rec)
}

// letWait leaves a drop in the intake.
func (e *Engine) letWait(box *inbox.Box, d *drop, why string) error {
	if err := box.Intend(d.taken, d.heir.item, d.heir.version); err != nil {
		return err
	}
	d.taken.Item, d.taken.Version = d.heir.item, d.heir.version // it has not begun
	return &inbox.WaitsError{Reason: why}
}

// freeForVersion is asked when the item is closed: no engine may be at work on it, and
// none may have been since it was looked at.
func (e *Engine) freeForVersion(ctx context.Context, h heir) error {
	holders, err := claim.List(e.root)
	if err != nil {
		return err
	}
	for _, c := range holders {
		if c.Damaged || c.Item != h.item {
			continue
		}
		if lives, err := e.seat.Alive(c.Engine); err != nil || lives {
			return errors.Join(err, &inbox.WaitsError{Reason: fmt.Sprintf("waits for item %s: engine %s is at work on it", h.item.Short(), c.Engine)})
		}
	}
	// Who has released a claim since has committed before.
	if err := e.store.Refresh(ctx); err != nil {
		return err
	}
	_, rec, err := e.readTip(h.item, "")
	if err != nil {
		return err
	}
	if why := e.notNow(rec, h); why != "" {
		return &inbox.WaitsError{Reason: why}
	}
	return nil
}

// checkOpen refuses to begin a step of an item whose content is being replaced, or of
// a workflow that is over with a version before: its claim must be taken already.
func (e *Engine) checkOpen(rec *record, workflow string, step layout.Name) error {
	m := rec.manifest
	illegal := &state.IllegalError{Event: "claim", Item: m.Item, Workflow: workflow, Step: step}
	if e.hasVersionDir(m.Item, m.Version) {
		illegal.Reason = fmt.Sprintf("version %d of the item is being taken in", m.Version+1)
		return illegal
	}
	if why := ofBefore(rec, workflow); why != "" {
		illegal.Reason = why
		return illegal
	}
	return nil
}

// ofBefore says that a workflow worked on a version that has been replaced.
func ofBefore(rec *record, workflow string) string {
	m, w := rec.manifest, rec.execution.Workflows[workflow]
	if w == nil || m.Since.IsZero() || !w.Created.Before(m.Since) {
		return ""
	}
	return fmt.Sprintf("%s belongs to an earlier version of item %s, which is at version %d; bagpipe show %s lists its workflows", workflow, m.Item.Short(), m.Version, m.Item.Short())
}

// registerVersion commits the version: what the item is now, without an inventory, and
// its workflow started anew. What failed before is taken out of the queues. kept is the
// manifest as it is kept with the version before: the item must be at that still.
func (e *Engine) registerVersion(ctx context.Context, d *drop, kept []byte, who actor) error {
	h, now := d.heir, e.o.Now().UTC().Truncate(ms)
	var m layout.Manifest
	err := e.transact(ctx, h.item, func(r gitstore.Reader) (*gitstore.Change, error) {
		rec, err := e.read(r, h.item, "")
		if err != nil {
			return nil, err
		}
		if why := e.notNow(rec, h); why != "" {
			return nil, &inbox.WaitsError{Reason: why}
		}
		if !bytes.Equal(rec.manifestJ, kept) {
			return nil, &inbox.WaitsError{Reason: fmt.Sprintf("item %s has changed meanwhile; it is looked at again", h.item.Short())}
		}
		if err := e.stillHeir(ctx, r, d); err != nil {
			return nil, err
		}
		if err := e.endFailed(r, rec, h.version); err != nil {
			return nil, err
		}
		x, def := rec.execution, d.admission.workflow.def
		_, last := state.Instance(x.Latest(def.Name))
		tr, err := state.Apply(x, def, state.Start{Workflow: def.Name + "." + strconv.Itoa(last+1),
			Attempt: x.NextKey(layout.Name(def.Steps[0].Name), e.id), At: now, Runner: e.runner(), Skip: d.admission.skip})
		if err != nil {
			return nil, err
		}
		m = d.version(rec.manifest)
		m.Since = now
		manifest, err := m.EncodeNext(rec.manifestJ)
		if err != nil {
			return nil, err
		}
		dir := layout.ItemDir(h.item) + "/"
		files := map[string][]byte{dir + layout.ManifestJSON: manifest, dir + layout.ExecutionJSON: x.Encode()}
		if old, err := readOptional(r, dir+layout.InventoryJSON); err != nil {
			return nil, err
		} else if old != nil {
			files[dir+layout.InventoryJSON] = nil
		}
		if err := errors.Join(pin(r, d.admission.workflow, files), e.openBatch(r, layout.Name(d.taken.Ticket.Batch), m.Source.By, files)); err != nil {
			return nil, err
		}
		return &gitstore.Change{Files: files, Author: who.author,
			Message: stepMessage(h.item, m, tr, fmt.Sprintf("version %d", h.version), who.agent,
				trailer{"Bagpipe-Version", strconv.Itoa(h.version)}, trailer{"Bagpipe-Definition", def.Digest},
				trailer{"Bagpipe-Source", m.Source.Digest}, trailer{"Bagpipe-Batch", d.taken.Ticket.Batch})}, nil
	})
	if err == nil {
		d.Admitted.Item, d.Version, d.Admitted.Collection, d.Label = h.item, h.version, m.Collection, m.Label
	}
	return err
}

// stillHeir asks within the transaction what was asked before: that the content is
// none that is refused, and that all identifiers are the item's.
func (e *Engine) stillHeir(ctx context.Context, r gitstore.Reader, d *drop) error {
	k, err := e.theKnown(ctx)
	if err != nil {
		return err
	}
	m := d.manifest()
	var is *knownError
	if err := k.judgeOriginals(r, &m); err != nil && !errors.As(err, &is) {
		return err
	}
	if err := k.judgeContent(r, &m, e.current().settings.drops(m.Collection).Duplicates); err != nil && !errors.As(err, &is) {
		return err
	}
	h, refusal, err := k.heirOf(r, &m)
	if err != nil {
		return err
	}
	if is != nil || refusal != "" || h != d.heir {
		return &inbox.WaitsError{Reason: "what is known of it has changed; it is looked at again"}
	}
	return nil
}

// endFailed takes the item's failed workflows out of the queues.
func (e *Engine) endFailed(r gitstore.Reader, rec *record, version int) error {
	x := rec.execution
	for _, name := range x.Names() {
		w := x.Workflows[name]
		if !w.Active() {
			continue
		}
		plan, err := e.pinnedPlan(r, w.Digest)
		if err != nil {
			return err
		}
		key, err := e.intentKey()
		if err != nil {
			return err
		}
		if _, err := state.Apply(x, plan, state.Deactivate{Key: key, Workflow: name, At: e.o.Now(), By: e.byEngine().agent,
			Text: fmt.Sprintf("version %d of the item replaces what failed", version)}); err != nil {
			return err
		}
	}
	return nil
}

// union joins two maps; where both have a key, now wins.
func union[V any](was, now map[string]V) map[string]V {
	all := map[string]V{}
	maps.Copy(all, was)
	maps.Copy(all, now)
	return all
}

// version says what the item of a drop is from now on. What the item is called, where
// it belongs and when it came stay, as do metadata and identifiers that the drop does
// not bring anew.
func (d *drop) version(was layout.Manifest) layout.Manifest {
	m := d.manifest()
	m.Source.Drop = d.taken.ID
	m.Item, m.Version = was.Item, was.Version+1
	m.Created, m.Parent, m.Collection = was.Created, was.Parent, was.Collection
	m.Lane = layout.Name(cmp.Or(string(d.taken.Ticket.Lane), d.admission.outcome.Lane, string(was.Lane)))
	m.Label = cmp.Or(d.taken.Ticket.Label, d.admission.outcome.Label, was.Label)
	m.Batch = cmp.Or(m.Batch, was.Batch)
	m.Type = cmp.Or(m.Type, was.Type)
	m.Metadata = merge(was.Metadata, m.Metadata)
	m.Identifiers = union(was.Identifiers, m.Identifiers)
	if len(was.Originals) > 0 {
		m.Originals = union(was.Originals, m.Originals)
	}
	return m
}
