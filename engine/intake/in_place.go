package intake

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/inbox"
	"bagpipe/engine/intake/identity"
	"bagpipe/engine/ledger"
	"bagpipe/engine/recognise"
	"bagpipe/engine/roots"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The rules are: an object in place becomes an item under an identifier that its catalog has
// committed before, so that registering it again after a crash changes nothing. Its digest is
// taken between two equal stamps, of a file by that which it had when it was listed, and by no link below the root. It becomes the next version of its item when its digest
// differs; a version does not wait for the one before, whose bytes are gone, but for a robot
// that is at work on it.

// InPlace is an object that stays where it is.
type InPlace struct {
	Item     layout.ItemID // that it is, or is to be
	Catalog  *roots.Catalog
	Path     string   // below the catalog's root
	With     []string // names of the files beside it that are the object together with it, sorted
	Workflow string   // that it was recognised for, "": the catalog's

	New     bool              // Item is a new identifier: no item has it
	Anew    bool              // other rules are in force than it was recognised by: its item says what they say
	Same    bool              // it is as it was catalogued: it is read only where its item says otherwise
	Carried bool              // it lies here now, and cannot be looked into
	Seen    *recognise.Survey // by which the object was recognised; nil: none
	Told    *Told             // how it was listed; nil: it is a folder
}

// Told is what the rules said of an object, a file, while it was this large, had this inode, and was
// modified so many nanoseconds after 1970.
type Told struct {
	Outcome  *recognise.Outcome // whole; nil: that is not known
	Size     int64
	Inode    uint64
	Modified int64
}

// Refused is an object that cannot be an item; its catalog notes the reason.
type Refused struct{ Reason string }

func (r *Refused) Error() string { return r.Reason }

// ErrUnsettled is an object that changes while it is looked at.
var ErrUnsettled = errors.New("it changes while it is looked at")

// RegisterInPlace makes an item of an object, unless it is one.
func (in *Intake) RegisterInPlace(ctx context.Context, o InPlace) (made bool, err error) {
	if !o.New {
		if is, err := in.ledger.Exists(o.Item); err != nil || is {
			return false, err
		}
	}
	a := &admitting{Intake: in, who: in.registrar}
	d, err := a.inPlace(ctx, o)
	if err != nil {
		return false, err
	}
	m := d.manifest()
	m.Created = d.taken.At
	guard, err := a.flagKnown(ctx, &m)
	if err != nil {
		return false, err
	}
	// Killed once it is committed, and before its records are shown, the workspace of a first item
	// would look as if items/ were not mounted.
	if _, seen := in.tops.Load(o.Item[0]); !seen {
		if err := disk.MkdirAll(in.ledger.Path(layout.ItemsDir+"/"+string(o.Item[:1])), 0o750); err != nil {
			return false, err
		}
		in.tops.Store(o.Item[0], true)
	}
	return true, in.ledger.RegisterItem(ctx, m, d.admission.Workflow, d.admission.Skip, a.who, guard)
}

// inPlace recognises and digests an object where it is. A file is the one that was listed, and what the rules said of it
// then holds; else it is looked at again by the next scan.
func (a *admitting) inPlace(ctx context.Context, o InPlace) (_ *drop, err error) {
	held, err := disk.Hold(o.Catalog.Root, o.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, ErrUnsettled)
	}
	if err != nil {
		return nil, err
	}
	defer held.Release()
	stamp, err := folder.StampPlace(ctx, held.Path(), o.With, o.Catalog.Trusting())
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(err, ErrUnsettled)
	}
	if err != nil {
		return nil, held.Named(err)
	}
	var told *recognise.Outcome
	if was := o.Told; was != nil {
		if told = was.Outcome; stamp != folder.StampFile(was.Size, was.Inode, was.Modified, o.Catalog.Trusting()) {
			return nil, ErrUnsettled
		}
	}
	d, err := recognised(ctx, a, o, held.Real, stamp, told)
	if err != nil {
		return nil, err
	}
	if files := o.files(); files != nil {
		d.sum, err = inbox.DigestFiles(ctx, filepath.Dir(held.Path()), files)
	} else {
		d.sum, err = inbox.Digest(ctx, held.Path())
	}
	var bad *inbox.BadError
	if errors.As(err, &bad) && bad.Rule != inbox.RuleUnreadable {
		return nil, &Refused{bad.Error()}
	}
	if errors.Is(err, inbox.ErrChanged) || errors.Is(err, inbox.ErrGone) || errors.Is(err, fs.ErrNotExist) {
		return nil, ErrUnsettled
	}
	if err != nil {
		return nil, fmt.Errorf("digest %s: %w", layout.EncodePath(held.Real), held.Named(cmp.Or(errors.Unwrap(err), err)))
	}
	return d, unmoved(ctx, o, stamp)
}

// recognised asks the rules of an object.
func recognised(ctx context.Context, a *admitting, o InPlace, path, stamp string, told *recognise.Outcome) (_ *drop, err error) {
	c := o.Catalog
	t := inbox.Taken{Path: path, Name: filepath.Base(path), Collection: c.Collection, ID: o.Item, At: a.ledger.Now(),
		Ticket: inbox.Ticket{Collection: c.Collection, Chosen: true, Workflow: layout.Name(cmp.Or(o.Workflow, c.Workflow)), By: "catalog " + string(c.Name)}}
	files := o.files()
	if files != nil {
		if t.Name, err = a.recognition.NameOf(ctx, t, c.Root, files); err != nil {
			return nil, err
		}
	}
	d := &drop{taken: t, Admitted: Admitted{Item: o.Item, Collection: c.Collection, Label: layout.EncodePath(t.Name)}}
	if d.admission, d.refused, err = a.recognition.PlanInPlace(ctx, t, files, c.Root, o.Seen, told); err != nil {
		return nil, err
	}
	switch {
	case d.refused != "" && d.admission.Outcome != nil && d.admission.Outcome.Refused == "": // the settings are to be mended
		return nil, errors.New(d.refused)
	case d.refused != "":
		return nil, &Refused{d.refused}
	}
	d.Label = cmp.Or(d.admission.Outcome.Label, d.Label)
	d.place = &layout.Place{Catalog: c.Name, Path: layout.EncodePath(o.Path), Stamp: stamp, With: o.encodedWith()}
	return d, nil
}

// files are the names of those that are the object together, the main one first; nil: one file or folder is it.
func (o *InPlace) files() []string {
	if len(o.With) == 0 {
		return nil
	}
	return append([]string{filepath.Base(o.Path)}, o.With...)
}

func (o *InPlace) encodedWith() (with []string) {
	for _, name := range o.With {
		with = append(with, layout.EncodePath(name))
	}
	return with
}

// unmoved answers ErrUnsettled where an object has another stamp than it had.
func unmoved(ctx context.Context, o InPlace, stamp string) error {
	held, err := disk.Hold(o.Catalog.Root, o.Path)
	if err != nil {
		return errors.Join(err, ErrUnsettled)
	}
	defer held.Release()
	after, err := folder.StampPlace(ctx, held.Path(), o.With, o.Catalog.Trusting())
	if err != nil || after != stamp {
		return errors.Join(held.Named(err), ErrUnsettled)
	}
	return nil
}

// flagKnown notes of which item an object in place is a duplicate: it cannot be set aside.
func (a *admitting) flagKnown(ctx context.Context, m *layout.Manifest) (func(gitstore.Reader, *layout.Manifest) error, error) {
	if !identity.Asks(a.settings.Current().Settings.Drops(m.Collection).Duplicates, m) {
		return nil, nil
	}
	k, err := a.Identities.Load(ctx)
	if err != nil {
		return nil, err
	}
	return func(r gitstore.Reader, m *layout.Manifest) error {
		if err := k.JudgeContent(r, m, settings.DupFlag); err != nil {
			return err
		}
		k.Add(m.Item, identity.KeysOf(m))
		return nil
	}, nil
}

// Refreshed is what a look at an object made of its item.
type Refreshed struct {
	New     bool // the object became an item, which a scan before had left to be made
	Version int  // that the object became; 0: its bytes are the same
	Anew    bool // nothing but what the rules say of it is new
}

// RefreshInPlace makes an object the next version of its item when its digest is another. Where it
// lies elsewhere now, only its times are others, or the rules say something else of it, the item's
// record says so from now on. A *inbox.WaitsError leaves it to the next scan.
func (in *Intake) RefreshInPlace(ctx context.Context, o InPlace) (is Refreshed, err error) {
	a := &admitting{Intake: in, who: in.registrar}
	if o.Carried {
		return is, carry(ctx, a, o)
	}
	d, err := asCatalogued(ctx, a, o)
	if err == nil && d == nil {
		d, err = a.inPlace(ctx, o)
	}
	if err != nil {
		return is, err
	}
	m, committed, err := manifestAtTip(in.ledger, o.Item)
	switch gone := m.Disposed; {
	case fault.Is(err, fault.NotFound):
		is.New, err = in.RegisterInPlace(ctx, o)
		return is, err
	case err != nil:
		return is, err
	case gone != nil:
		return is, &Refused{fmt.Sprintf("its item %s was disposed of at %s", o.Item.Short(), layout.FormatTime(gone.At))}
	case m.Source.Digest == d.sum.Digest:
		is.Anew, err = a.samePlace(ctx, o, m, committed, d)
		return is, err
	}
	_, rec, err := in.ledger.ReadTip(o.Item, "")
	if err != nil {
		return is, err
	}
	is.Version = rec.Manifest.Version + 1
	return is, a.versionInPlace(ctx, rec, d)
}

// manifestAtTip reads an item's manifest, and nothing else of it: of very many at once the rest takes as long as all that is done
// with them.
func manifestAtTip(l *ledger.Ledger, id layout.ItemID) (m layout.Manifest, committed []byte, err error) {
	v, err := l.Store.Tip()
	if err != nil {
		return m, nil, err
	}
	committed, err = ledger.ReadOptional(v, layout.ItemDir(id)+"/"+layout.ManifestJSON)
	if err == nil && committed == nil {
		err = ledger.NoRecords(v, id)
	}
	if err == nil {
		m, err = l.Decoded.DecodeManifest(id, committed)
	}
	return m, committed, err
}

// carry has an item say where its object lies now, which cannot be looked into there. It is the same as long as it has the
// stamp that it was catalogued with, which each step asks.
func carry(ctx context.Context, a *admitting, o InPlace) error {
	_, rec, err := a.ledger.ReadTip(o.Item, "")
	if fault.Is(err, fault.NotFound) {
		return nil // once it can be looked into it is made an item
	}
	if err != nil || rec.Manifest.Source.Place == nil || rec.Manifest.Disposed != nil {
		return err
	}
	place := *rec.Manifest.Source.Place
	place.Path = layout.EncodePath(o.Path)
	d := &drop{taken: inbox.Taken{Name: filepath.Base(o.Path)}, place: &place, sum: inbox.Sum{Digest: rec.Manifest.Source.Digest}}
	if len(place.With) > 0 { // it goes by the name that its files have together
		if d.taken.Name, err = layout.DecodePath(rec.Manifest.Source.Name); err != nil {
			return err
		}
	}
	_, err = a.samePlace(ctx, o, rec.Manifest, rec.Committed.Manifest, d)
	return err
}

// asCatalogued recognises an object that is as its item says, and as its catalog does, without a look at its bytes; nil
// where it is not.
func asCatalogued(ctx context.Context, a *admitting, o InPlace) (*drop, error) {
	if !o.Same {
		return nil, nil
	}
	_, rec, err := a.ledger.ReadTip(o.Item, "")
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	was := rec.Manifest.Source.Place
	if was == nil || was.Path != layout.EncodePath(o.Path) || !slices.Equal(was.With, o.encodedWith()) {
		return nil, nil
	}
	d, err := recognised(ctx, a, o, filepath.Join(o.Catalog.Root, o.Path), was.Stamp, nil)
	if err == nil {
		err = unmoved(ctx, o, was.Stamp)
	}
	if errors.Is(err, ErrUnsettled) {
		return nil, nil
	}
	if d != nil {
		d.sum.Digest = rec.Manifest.Source.Digest
	}
	return d, err
}

// samePlace records where an unchanged object lies now, with which stamp, and, of one that is recognised anew or lies
// elsewhere, what the rules say of it; m is the item's manifest, and how it is committed. anew reports whether that alone differs.
func (a *admitting) samePlace(ctx context.Context, o InPlace, m layout.Manifest, committed []byte, d *drop) (anew bool, err error) {
	id, n := m.Item, m.Version
	if a.folder.HasVersionDir(id, n) {
		if err := a.folder.UnkeepVersion(id, n); err != nil {
			return false, err
		}
	}
	// What is so at the tip, too, is worded here, side by side with others, and not one after the other with the commits.
	now, what, err := d.placed(o, &m, committed)
	if err != nil {
		return false, err
	}
	err = a.ledger.Transact(ctx, id, func(r gitstore.Reader) (*gitstore.Change, error) {
		file := layout.ItemDir(id) + "/" + layout.ManifestJSON
		is, m, what := now, m, what // of this try
		was, err := ledger.ReadOptional(r, file)
		if err == nil && !bytes.Equal(was, committed) {
			var rec *ledger.Record
			if rec, err = a.ledger.Read(r, id, ""); err == nil {
				m, was = rec.Manifest, rec.Committed.Manifest
				is, what, err = d.placed(o, &m, was)
			}
		}
		if anew = what == "recognised"; err != nil || is == nil {
			return nil, err
		}
		return &gitstore.Change{Files: map[string][]byte{file: is}, Author: a.who.Author,
			Message: ledger.IntentMessage(id, m, "catalog", what, d.place.Path, a.who.Agent)}, nil
	})
	return anew && err == nil, err
}

// placed has the manifest of an unchanged object say where that lies now, words it, and says what was done; nil: it said all that.
func (d *drop) placed(o InPlace, m *layout.Manifest, committed []byte) (now []byte, what string, err error) {
	was := m.Source.Place
	if was == nil || m.Source.Digest != d.sum.Digest {
		return nil, "", nil
	}
	what = "seen"
	switch {
	case was.Path != d.place.Path:
		what = "moved"
	case was.Equal(d.place):
		what = "recognised"
	}
	label, name := d.calledNow(*m), layout.EncodePath(d.taken.Name)
	stamped := *was
	stamped.Stamp = d.place.Stamp
	if touched := stamped.Equal(d.place) && what == "seen"; touched && !o.Anew && label == m.Label && name == m.Source.Name {
		if now = restamped(committed, was.Stamp, d.place.Stamp); now != nil {
			return now, what, nil
		}
	}
	if m.Label = label; d.admission.Outcome != nil && (o.Anew || what == "moved") {
		d.retell(m)
	}
	m.Source.Place, m.Source.Name = d.place, name
	now, err = m.Encode(committed)
	if err != nil || bytes.Equal(now, committed) {
		return nil, "", err
	}
	return now, what, nil
}

// restamped is a manifest with another stamp of its object and nothing else changed, which takes a tenth of the time that to word
// all of it anew does; nil: it is not to be had so.
func restamped(manifest []byte, was, is string) []byte {
	member := func(stamp string) []byte {
		quoted, _ := json.Marshal(stamp) // a text
		return append([]byte(`"stamp": `), quoted...)
	}
	if bytes.Count(manifest, member(was)) != 1 {
		return nil
	}
	return bytes.Replace(manifest, member(was), member(is), 1)
}

// retell has an item say what its next version would, were the object recognised as it is now. What else was tried counts
// only together with that.
func (d *drop) retell(m *layout.Manifest) {
	next, was := d.version(*m), m.Recognition
	m.Label, m.Type, m.Metadata, m.Identifiers, m.Recognition = next.Label, next.Type, next.Metadata, next.Identifiers, next.Recognition
	m.Source.Rule = next.Source.Rule
	if was != nil && m.Recognition != nil && was.Rule == m.Recognition.Rule && was.Verdict == m.Recognition.Verdict {
		m.Recognition = was
	}
}

// versionInPlace closes the item, keeps what was made of the version before, and commits the
// next.
func (a *admitting) versionInPlace(ctx context.Context, rec *ledger.Record, d *drop) error {
	id, n := rec.Manifest.Item, rec.Manifest.Version
	records := map[string][]byte{layout.ManifestJSON: rec.Committed.Manifest}
	inventory, err := ledger.ReadOptional(rec.At, layout.ItemDir(id)+"/"+layout.InventoryJSON)
	if err != nil {
		return err
	}
	if inventory != nil {
		records[layout.InventoryJSON] = inventory
	}
	if err := a.folder.CloseVersion(id, n, records); err != nil {
		return err
	}
	if err := a.freeInPlace(ctx, rec); err != nil {
		return errors.Join(err, a.folder.UnkeepVersion(id, n))
	}
	if err := a.folder.KeepVersion(id, n); err != nil {
		return err
	}
	err = a.ledger.Transact(ctx, id, func(r gitstore.Reader) (*gitstore.Change, error) {
		now, err := a.ledger.Read(r, id, "")
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(now.Committed.Manifest, rec.Committed.Manifest) || working(now) != "" {
			return nil, &inbox.WaitsError{Reason: fmt.Sprintf("item %s has changed meanwhile", id.Short())}
		}
		d.taken.ID = "" // no drop made the version
		c, _, err := a.versionChange(r, now, d)
		return c, err
	})
	if err != nil {
		return errors.Join(err, a.folder.UnkeepVersion(id, n))
	}
	return nil
}

// freeInPlace waits for robots that are at work on the item.
func (a *admitting) freeInPlace(ctx context.Context, rec *ledger.Record) error {
	id := rec.Manifest.Item
	if err := a.claimed(id); err != nil {
		return err
	}
	// Who has released a claim since has committed before.
	if err := a.ledger.Store.Refresh(ctx); err != nil {
		return err
	}
	_, now, err := a.ledger.ReadTip(id, "")
	if err != nil {
		return err
	}
	if what := working(now); what != "" {
		return &inbox.WaitsError{Reason: fmt.Sprintf("waits for item %s: %s runs", id.Short(), what)}
	}
	return nil
}

// working names a step that runs.
func working(rec *ledger.Record) string {
	for _, name := range rec.Execution.Names() {
		for step, s := range rec.Execution.Workflows[name].Steps {
			if s.Status == state.InProgress {
				return name + "/" + string(step)
			}
		}
	}
	return ""
}
