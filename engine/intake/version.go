package intake

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"bagpipe/engine/claim"
	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/inbox"
	"bagpipe/engine/intake/identity"
	"bagpipe/engine/ledger"
	"bagpipe/engine/recognise"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// notHere says that a new version waits for the bytes of the one that it replaces: kept
// under versions/, what lies in the folder would pass for them. Asked again and again
// while a drop waits, it looks at the bytes now and then.
func (in *Intake) notHere(rec *ledger.Record) string {
	const lookAgain = 30 * time.Second
	id, now := rec.Manifest.Item, in.ledger.Clock()
	in.away.Lock()
	defer in.away.Unlock()
	if was, there := in.away.of[id]; there && was.digest == rec.Manifest.Source.Digest && now.Sub(was.at) < lookAgain {
		return was.why
	}
	delete(in.away.of, id)
	if folder.Freed(rec.Manifest, rec.Execution) != "" { // what is kept of it is its deposit
		return ""
	}
	why, err := in.folder.Missing(context.Background(), rec.Manifest, rec.Execution)
	if err != nil {
		why = err.Error()
	}
	if why == "" {
		return ""
	}
	if in.away.of == nil {
		in.away.of = map[layout.ItemID]elsewhere{}
	}
	why = fmt.Sprintf("waits for item %s: %s", id.Short(), why)
	in.away.of[id] = elsewhere{digest: rec.Manifest.Source.Digest, why: why, at: now}
	return why
}

// away is what notHere found wanting lately.
type away struct {
	sync.Mutex // guards of
	of         map[layout.ItemID]elsewhere
}

type elsewhere struct {
	digest, why string
	at          time.Time
}

// The rules are: a drop that has an identifier of one item, and whose rule says known:
// version, becomes the next version of that item, once nothing of the item is under
// way; so does a drop that a person adds as a version of it. Until then it stays in the intake, and status says what it waits for. First the
// item is closed by the folder of the version to be replaced (engine/inbox): who
// begins a step takes its claim first and then looks for that folder; who closes the
// item looks for claims afterwards, so that one of the two sees the other. Then the
// bytes move, and one commit makes the version. A crash before it is taken back at the
// next start, and the drop goes through its admission again.

// inherit makes a drop that is known by its identifiers a version of the item that has
// them, if its rule says so, or of the item that a person named.
func (a *admitting) inherit(ctx context.Context, r gitstore.Reader, d *drop, m *layout.Manifest) error {
	known, chosen := d.rule == identity.RuleIdentifier, d.taken.Ticket.VersionOf
	if chosen == "" && !known || d.refused != "" && !known {
		return nil
	}
	k, err := a.Identities.Load(ctx)
	if err != nil {
		return err
	}
	h, refusal, err := k.HeirOf(r, m, chosen)
	if err != nil {
		return err
	}
	if chosen == "" && d.admission.Outcome.Known != recognise.KnownVersion && (refusal != "" || !h.First) {
		return nil
	}
	if d.refused = refusal; refusal == "" {
		d.rule, d.heir = "", h
	}
	return nil
}

// takeBack begins the admission of a drop anew that was on its way to be a version. It
// tells whether the version is committed.
func (a *admitting) takeBack(d *drop) (done bool, err error) {
	t := d.taken
	if t.Item == "" {
		return false, nil
	}
	v, err := a.ledger.Store.Tip()
	if err != nil {
		return false, err
	}
	rec, err := a.ledger.Read(v, t.Item, "")
	if err == nil {
		done, err = a.isVersion(rec.Manifest, t)
	}
	switch {
	case err != nil && !fault.Is(err, fault.NotFound):
		return false, err
	case done && !t.Promoted:
		return false, fmt.Errorf("drop %s is version %d of item %s and not in its folder", layout.EncodePath(t.Name), t.Version, t.Item)
	case done:
		d.Admitted.Item, d.Version = t.Item, t.Version
		return true, nil
	}
	d.taken, err = a.box.Restore(t)
	return false, err
}

// Bound tells whether a drop waits for the item that it is to be a version of, and why.
func (in *Intake) Bound(t inbox.Taken) (why string, waits bool) {
	if t.Item == "" || t.Promoted {
		return "", false
	}
	v, err := in.ledger.Store.Tip()
	if err != nil {
		return "", false
	}
	rec, err := in.ledger.Read(v, t.Item, "")
	if err != nil {
		return "", false // its admission tells
	}
	if why = notYet(rec); why == "" {
		why = in.notHere(rec)
	}
	return why, why != ""
}

// isVersion tells whether a drop is, or was, the version of the item that it was to be.
// Another may have become it, and others others since.
func (a *admitting) isVersion(m layout.Manifest, t inbox.Taken) (bool, error) {
	if m.Version > t.Version {
		return a.box.Begun(t)
	}
	return m.Version == t.Version && m.Source.Drop == t.ID, nil
}

// notYet says what a new version of an item waits for; "" is nothing.
func notYet(rec *ledger.Record) string {
	item := rec.Manifest.Item.Short()
	if len(rec.Execution.Holds()) > 0 {
		return fmt.Sprintf("waits for item %s, which is held", item)
	}
	what := rec.Execution.Underway()
	if rec.Manifest.Source.Bare() {
		if what = state.AtWork(rec.Execution); what == "" && state.Fetched(rec.Execution) {
			return fmt.Sprintf("item %s was registered without content, and a step of it fetched that meanwhile", item)
		}
	}
	if what != "" {
		return fmt.Sprintf("waits for item %s: %s is not done", item, what)
	}
	return ""
}

// WhyBound says what a drop in the intake waits for that is to be a version.
func (in *Intake) WhyBound(t inbox.Taken) string {
	if why, waits := in.Bound(t); waits {
		return "taken in as a new version; " + why
	}
	return fmt.Sprintf("taken in as a new version of item %s; the next run goes on with it", t.Item.Short())
}

// commitVersion makes a drop the next version of its item, or lets it wait.
func (a *admitting) commitVersion(ctx context.Context, d *drop) error {
	h := d.heir
	v, rec, err := a.ledger.ReadTip(h.Item, "")
	if err != nil {
		return err
	}
	why := notNow(a.Intake, rec, h)
	if why == "" {
		why = a.notHere(rec)
	}
	if why != "" {
		return a.letWait(d, why)
	}
	records := map[string][]byte{layout.ManifestJSON: rec.Committed.Manifest}
	inventory, err := ledger.ReadOptional(v, layout.ItemDir(h.Item)+"/"+layout.InventoryJSON)
	if err != nil {
		return err
	}
	if inventory != nil {
		records[layout.InventoryJSON] = inventory
	}
	d.taken, err = a.box.Replace(ctx, d.taken, inbox.Next(h), records, func() error { return a.freeForVersion(ctx, h) })
	if err == nil {
		err = a.registerVersion(ctx, d, rec.Committed.Manifest)
	}
	var waits *inbox.WaitsError
	if errors.As(err, &waits) {
		if d.taken, err = a.box.Restore(d.taken); err != nil {
			return err
		}
		return a.letWait(d, waits.Reason)
	}
	if err != nil {
		return fmt.Errorf("register %s as version %d of item %s: %w", d.Label, h.Version, h.Item, err)
	}
	return nil
}

// notNow is notYet by the version that the drop was to follow.
func notNow(in *Intake, rec *ledger.Record, h identity.Heir) string {
	if rec.Manifest.Version+1 != h.Version {
		return fmt.Sprintf("another drop became version %d of item %s", rec.Manifest.Version, h.Item.Short())
	}
	return notYet(rec)
}

// letWait leaves a drop in the intake.
func (a *admitting) letWait(d *drop, why string) error {
	if err := a.box.Intend(d.taken, d.heir.Item, d.heir.Version); err != nil {
		return err
	}
	d.taken.Item, d.taken.Version = d.heir.Item, d.heir.Version // it has not begun
	return &inbox.WaitsError{Reason: why}
}

// freeForVersion is asked when the item is closed: no engine may be at work on it, and
// none may have been since it was looked at.
func (a *admitting) freeForVersion(ctx context.Context, h identity.Heir) error {
	if err := a.claimed(h.Item); err != nil {
		return err
	}
	// Who has released a claim since has committed before.
	if err := a.ledger.Store.Refresh(ctx); err != nil {
		return err
	}
	_, rec, err := a.ledger.ReadTip(h.Item, "")
	if err != nil {
		return err
	}
	if why := notNow(a.Intake, rec, h); why != "" {
		return &inbox.WaitsError{Reason: why}
	}
	return nil
}

// claimed answers a *inbox.WaitsError while an engine that lives has claimed a step of an item.
func (a *admitting) claimed(item layout.ItemID) error {
	holders, err := claim.List(a.ledger.Root)
	if err != nil {
		return err
	}
	for _, c := range holders {
		if c.Damaged || c.Item != item {
			continue
		}
		if lives, err := a.ledger.Seat.Alive(c.Engine); err != nil || lives {
			return errors.Join(err, &inbox.WaitsError{Reason: fmt.Sprintf("waits for item %s: engine %s is at work on it", item.Short(), c.Engine)})
		}
	}
	return nil
}

// registerVersion commits the version: what the item is now, without an inventory, and
// its workflow started anew. What failed before is taken out of the queues. kept is the
// manifest as it is kept with the version before: the item must be at that still.
func (a *admitting) registerVersion(ctx context.Context, d *drop, kept []byte) error {
	h := d.heir
	var m layout.Manifest
	err := a.ledger.Transact(ctx, h.Item, func(r gitstore.Reader) (*gitstore.Change, error) {
		rec, err := a.ledger.Read(r, h.Item, "")
		if err != nil {
			return nil, err
		}
		if why := notNow(a.Intake, rec, h); why != "" {
			return nil, &inbox.WaitsError{Reason: why}
		}
		if !bytes.Equal(rec.Committed.Manifest, kept) {
			return nil, &inbox.WaitsError{Reason: fmt.Sprintf("item %s has changed meanwhile; it is looked at again", h.Item.Short())}
		}
		if err := a.stillHeir(ctx, r, d); err != nil {
			return nil, err
		}
		c, now, err := a.versionChange(r, rec, d)
		m = now
		return c, err
	})
	if err == nil {
		d.Admitted.Item, d.Version, d.Admitted.Collection, d.Label = h.Item, h.Version, m.Collection, m.Label
	}
	return err
}

// versionChange is the commit that makes a drop the next version of an item.
func (a *admitting) versionChange(r gitstore.Reader, rec *ledger.Record, d *drop) (_ *gitstore.Change, m layout.Manifest, err error) {
	if rec.Manifest.Source.Bare() {
		return a.contentChange(r, rec, d)
	}
	n, now := rec.Manifest.Version+1, a.ledger.Now().UTC().Truncate(ledger.Resolution)
	if err := a.endFailed(r, rec, n); err != nil {
		return nil, m, err
	}
	x, def := rec.Execution, d.admission.Workflow.Def
	_, last := state.Instance(x.Latest(def.Name))
	tr, err := state.Apply(x, def, state.Start{Workflow: def.Name + "." + strconv.Itoa(last+1),
		Attempt: x.NextKey(layout.Name(def.Steps[0].Name), a.ledger.ID), At: now, Runner: a.ledger.Runner(), Version: a.ledger.Version, Skip: d.admission.Skip})
	if err != nil {
		return nil, m, err
	}
	m = d.version(rec.Manifest)
	m.Since = now
	manifest, err := m.EncodeNext(rec.Committed.Manifest)
	if err != nil {
		return nil, m, err
	}
	dir := layout.ItemDir(rec.Manifest.Item) + "/"
	files := map[string][]byte{dir + layout.ManifestJSON: manifest, dir + layout.ExecutionJSON: x.Encode()}
	for _, name := range []string{layout.InventoryJSON, layout.QualityJSON} { // of the version before
		old, err := ledger.ReadOptional(r, dir+name)
		if err != nil {
			return nil, m, err
		}
		if old != nil {
			files[dir+name] = nil
		}
	}
	if err := errors.Join(ledger.Pin(r, d.admission.Workflow, files), a.ledger.OpenBatch(r, layout.Name(d.taken.Ticket.Batch), m.Source.By, files)); err != nil {
		return nil, m, err
	}
	return &gitstore.Change{Files: files, Author: a.who.Author,
		Message: ledger.StepMessage(rec.Manifest.Item, m, tr, fmt.Sprintf("version %d", n), a.who.Agent,
			ledger.Trailer{"Bagpipe-Version", strconv.Itoa(n)}, ledger.Trailer{"Bagpipe-Definition", def.Digest},
			ledger.Trailer{"Bagpipe-Source", m.Source.Digest}, ledger.Trailer{"Bagpipe-Batch", d.taken.Ticket.Batch})}, m, nil
}

// contentChange is the commit that brings an item the content that it was registered
// without. Its workflows go on.
func (a *admitting) contentChange(r gitstore.Reader, rec *ledger.Record, d *drop) (_ *gitstore.Change, m layout.Manifest, err error) {
	m = d.version(rec.Manifest)
	m.Since = rec.Manifest.Since
	manifest, err := m.EncodeNext(rec.Committed.Manifest)
	if err != nil {
		return nil, m, err
	}
	files := map[string][]byte{layout.ItemDir(m.Item) + "/" + layout.ManifestJSON: manifest}
	if err := a.ledger.OpenBatch(r, layout.Name(d.taken.Ticket.Batch), m.Source.By, files); err != nil {
		return nil, m, err
	}
	message := ledger.Message(fmt.Sprintf("content: attached %s (%s/%s)", m.Item, m.Collection, ledger.Clip(m.Label, 100)), "",
		[]ledger.Trailer{{"Bagpipe-Item", string(m.Item)}, {"Bagpipe-Version", strconv.Itoa(m.Version)},
			{"Bagpipe-Source", m.Source.Digest}, {"Bagpipe-Batch", d.taken.Ticket.Batch}, {"Bagpipe-Agent", a.who.Agent}})
	return &gitstore.Change{Files: files, Author: a.who.Author, Message: a.who.Sign(message)}, m, nil
}

// stillHeir asks within the transaction what was asked before: that the content is
// none that is refused, and that all identifiers are the item's.
func (a *admitting) stillHeir(ctx context.Context, r gitstore.Reader, d *drop) error {
	k, err := a.Identities.Load(ctx)
	if err != nil {
		return err
	}
	m := d.manifest()
	var is *identity.KnownError
	if err := k.JudgeOriginals(r, &m); err != nil && !errors.As(err, &is) {
		return err
	}
	if err := k.JudgeContent(r, &m, a.settings.Current().Settings.Drops(m.Collection).Duplicates); err != nil && !errors.As(err, &is) {
		return err
	}
	h, refusal, err := k.HeirOf(r, &m, d.taken.Ticket.VersionOf)
	if err != nil {
		return err
	}
	if is != nil || refusal != "" || h != d.heir {
		return &inbox.WaitsError{Reason: "what is known of it has changed; it is looked at again"}
	}
	return nil
}

// endFailed takes the item's failed workflows out of the queues.
func (a *admitting) endFailed(r gitstore.Reader, rec *ledger.Record, version int) error {
	x := rec.Execution
	for _, name := range x.Names() {
		w := x.Workflows[name]
		if !w.Active() {
			continue
		}
		plan, err := a.ledger.PinnedPlan(r, w.Digest)
		if err != nil {
			return err
		}
		key, err := a.ledger.IntentKey()
		if err != nil {
			return err
		}
		if _, err := state.Apply(x, plan, state.Deactivate{Key: key, Workflow: name, At: a.ledger.Now(), By: a.ledger.ByEngine().Agent,
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

// calledNow is the label of the item before, but that of an object in place that was called by its name, and renamed, is the new one.
func (d *drop) calledNow(was layout.Manifest) string {
	if d.place != nil && was.Source.Place != nil && was.Label == was.Source.Name {
		return layout.EncodePath(d.taken.Name)
	}
	return was.Label
}

// version says what the item of a drop is from now on. What the item is called, where
// it belongs and when it came stay, as do metadata and identifiers that the drop does
// not bring anew.
func (d *drop) version(was layout.Manifest) layout.Manifest {
	m := d.manifest()
	m.Source.Drop = d.taken.ID
	m.Item, m.Version = was.Item, was.Version+1
	m.Created, m.Parent, m.Collection = was.Created, was.Parent, was.Collection
	m.Lane = layout.Name(cmp.Or(string(d.taken.Ticket.Lane), d.admission.Outcome.Lane, string(was.Lane)))
	m.Label = cmp.Or(d.taken.Ticket.Label, d.admission.Outcome.Label, d.calledNow(was))
	m.Batch = cmp.Or(m.Batch, was.Batch)
	if d.place == nil { // of an object in place the rules in force say it alone
		m.Type = cmp.Or(m.Type, was.Type)
	}
	m.Metadata = ledger.Merge(was.Metadata, m.Metadata)
	m.Identifiers = union(was.Identifiers, m.Identifiers)
	if len(was.Originals) > 0 {
		m.Originals = union(was.Originals, m.Originals)
	}
	return m
}
