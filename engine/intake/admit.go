package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/user"
	"strconv"
	"syscall"
	"time"

	"bagpipe/engine/inbox"
	"bagpipe/engine/intake/identity"
	"bagpipe/engine/intake/recognition"
	"bagpipe/engine/ledger"
	"bagpipe/engine/recognise"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// The rules are: a drop is taken into intake/ID by one rename; recognised;
// digested; its source moved to the item's folder and synced; then the item is
// committed, register completed; then the journal in intake/ID is removed. A
// crash at any point leaves intake/ID, and the next engine goes on from there.

// RegisterStep is the author of the items the inbox brought; the first step of
// any workflow is completed by taking the drop in.
const RegisterStep = "register"

// Admitted is an item that was taken in, or a drop that could not be.
type Admitted struct {
	Item       layout.ItemID `json:"item,omitempty"`
	Collection layout.Name   `json:"collection"`
	Label      string        `json:"label"`
	Workflow   string        `json:"workflow,omitempty"`
	Rejected   string        `json:"rejected,omitempty"` // why it could not be admitted
	KeptAs     string        `json:"keptAs,omitempty"`   // where a rejected drop is
	Stays      string        `json:"stays,omitempty"`    // where its original is, which may not be removed
	Version    int           `json:"version,omitempty"`  // that it is of an item that was there; 0: a new item
}

// Box is the inbox by the settings in force. Who takes from it has registered.
func (in *Intake) Box(watch bool) (*inbox.Box, error) {
	return inbox.New(in.BoxOptions(watch))
}

func (in *Intake) BoxOptions(watch bool) inbox.Options {
	s := in.settings.Current().Settings
	return inbox.Options{
		Root: in.ledger.Root, Engine: in.ledger.ID, Now: in.ledger.Clock, Random: in.ledger.Random, Log: in.ledger.Log,
		Watch:    watch && (s.Inbox.Watch == nil || *s.Inbox.Watch),
		Settling: s.Settling(), Of: s.SettlingByCollection(), Rescan: s.Rescan(), Closed: in.whyClosed, Rules: recognise.MarkerName, Together: in.recognition.Together, TakenAs: in.originalIn, Companions: in.recognition.Companions,
	}
}

// ownerOf names who owns a drop, for the manifest.
func ownerOf(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	uid := strconv.FormatUint(uint64(st.Uid), 10)
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return "uid " + uid
}

// ResumeIntake admits what a dead engine took and did not commit, and hands what
// this engine itself could not commit before to the same.
func (in *Intake) ResumeIntake(ctx context.Context, box *inbox.Box, own []inbox.Taken, told func(Admitted)) (left []inbox.Taken, err error) {
	pending, err := box.Pending(ctx, in.ledger.Seat.MayBeAlive)
	if err != nil {
		err = fmt.Errorf("look into %s: %w", layout.IntakeDir, err)
	}
	left, admitErr := in.admitGroup(ctx, box, append(own, pending...), told)
	return left, errors.Join(err, admitErr)
}

// Orphaned tells whether a dead engine left something in the intake.
func (in *Intake) Orphaned(box *inbox.Box) bool { return box.Orphaned(in.ledger.Seat.MayBeAlive) }

// drop is a taken drop on its way to being an item.
type drop struct {
	Admitted
	taken     inbox.Taken
	admission recognition.Admission
	sum       inbox.Sum
	done      bool // an item already, or rejected
	refused   string
	rule      string        // of the refusal
	heir      identity.Heir // what it is to be a version of; zero: an item of its own
	err       error
	place     *layout.Place // where it stays; nil: it is taken in

	created     time.Time
	metadata    map[string]any // of side-cars
	identifiers map[string]string
}

// admitting is the admission of drops that one box took, caused by one actor.
type admitting struct {
	*Intake
	box *inbox.Box
	who ledger.Actor
}

// admitTaken makes items of taken drops; their syncs and commits are shared. It
// may be called again for the same drops after a crash, or after an error, at any
// point of it.
func (a *admitting) admitTaken(ctx context.Context, taken []inbox.Taken) []drop {
	drops, all := make([]drop, len(taken)), make([]*drop, len(taken))
	for i, t := range taken {
		drops[i] = drop{taken: t, Admitted: Admitted{Item: t.ID, Collection: t.Collection, Label: cmp.Or(t.Ticket.Label, layout.EncodePath(t.Name))}}
		all[i] = &drops[i]
	}
	eachOf(all, dropsAtOnce, func(d *drop) { d.err = a.prepare(ctx, d) })
	first, later := a.repeats(drops)
	a.admitPrepared(ctx, first)
	eachOf(later, admissionGroup, func(d *drop) { d.err = a.refuseKnown(ctx, d) })
	a.admitPrepared(ctx, later)
	return drops
}

// admitPrepared makes items of drops that are recognised and digested, or sets them
// aside.
func (a *admitting) admitPrepared(ctx context.Context, drops []*drop) {
	a.promote(ctx, drops)
	now := a.ledger.Now().UTC().Truncate(ledger.Resolution)
	eachOf(drops, admissionGroup, func(d *drop) {
		var bad *inbox.BadError
		switch {
		case errors.As(d.err, &bad):
			d.refused, d.rule = bad.Error(), bad.Rule
			d.err = a.reject(ctx, d)
		case d.err != nil:
		case d.refused != "":
			d.err = a.reject(ctx, d)
		default:
			d.created = now // of one time, they are in the order of their identifiers
			d.err = a.commitDrop(ctx, d)
		}
	})
	// All of these work on one folder: more at a time only wait for each other there.
	const finishedAtOnce = 8
	eachOf(drops, finishedAtOnce, func(d *drop) {
		if d.err == nil && d.Rejected == "" && d.rule != identity.RuleOriginal {
			d.err = a.box.Done(d.taken)
		}
	})
}

// admissionGroups parts drops into groups that share their syncs: the more the better,
// but none waits long for the bytes of the others, which may have to be copied.
func admissionGroups(drops []inbox.Drop) iter.Seq[[]inbox.Drop] {
	return func(yield func([]inbox.Drop) bool) {
		begin, bytes := 0, int64(0)
		for i, d := range drops {
			if i > begin && (i-begin == admissionGroup || bytes+d.Bytes > admissionBytes) {
				if !yield(drops[begin:i]) {
					return
				}
				begin, bytes = i, 0
			}
			bytes += d.Bytes
		}
		if begin < len(drops) {
			yield(drops[begin:])
		}
	}
}

const (
	admissionGroup = 512
	admissionBytes = 1 << 30
	dropsAtOnce    = 64 // that are read side by side
)

// eachOf runs f for every drop, so many at a time.
func eachOf(drops []*drop, atOnce int, f func(d *drop)) {
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, d := range drops {
		g.Go(func() error { f(d); return nil })
	}
	_ = g.Wait() // every drop holds its own error
}

// prepare recognises and digests a drop, unless it is an item already.
func (a *admitting) prepare(ctx context.Context, d *drop) (err error) {
	if d.done, err = a.ledger.Exists(d.taken.ID); err != nil || d.done {
		return err
	}
	if d.done, err = a.takeBack(d); err != nil || d.done {
		return err
	}
	if d.admission, d.refused, err = a.recognition.Plan(ctx, d.taken); err != nil || d.refused != "" {
		d.rule = "recognition"
		return err
	}
	d.Workflow, d.Admitted.Collection = d.admission.Workflow.Def.Name, d.admission.Collection
	d.Label = cmp.Or(d.taken.Ticket.Label, d.admission.Outcome.Label, d.Label)
	if err := a.box.CheckLists(ctx, d.taken); err != nil {
		return err
	}
	if err := a.describe(ctx, d); err != nil || d.refused != "" {
		return err
	}
	if d.sum, err = inbox.Digest(ctx, d.taken.Path); err != nil {
		return err
	}
	return a.refuseKnown(ctx, d)
}

// promote moves the content of those that will be items to their folders.
func (a *admitting) promote(ctx context.Context, drops []*drop) {
	var ready []inbox.Taken
	var of []*drop
	for _, d := range drops {
		if d.err == nil && d.refused == "" && d.heir.Item == "" && !d.taken.Promoted {
			ready, of = append(ready, d.taken), append(of, d)
		}
	}
	if len(ready) == 1 {
		t, err := a.box.Promote(ctx, ready[0])
		of[0].promoted(t, err)
		return
	}
	for i, r := range a.box.PromoteAll(ctx, ready) {
		of[i].promoted(r.Taken, r.Err)
	}
}

// promoted notes where the drop is now; one that could not be moved is where it
// was.
func (d *drop) promoted(now inbox.Taken, err error) {
	if d.err = err; err == nil {
		d.taken = now
	}
}

// commitDrop commits the item of a promoted drop; the journal is then to be forgotten.
func (a *admitting) commitDrop(ctx context.Context, d *drop) error {
	if !d.done && d.heir.Item != "" {
		return a.commitVersion(ctx, d)
	}
	if !d.done {
		m := d.manifest()
		m.Created = d.created
		guard, err := a.guardKnown(ctx, &m)
		if err == nil {
			err = a.ledger.RegisterItem(ctx, m, d.admission.Workflow, d.admission.Skip, a.who, guard)
		}
		if err := d.refusedBy(err); err != nil {
			return fmt.Errorf("register %s: %w", d.Label, err)
		}
		if d.refused != "" { // another was faster
			return a.rejectOrInherit(ctx, d)
		}
	}
	return nil
}

// rejectOrInherit is for a drop that another was faster than: within its transaction
// it was found to be known.
func (a *admitting) rejectOrInherit(ctx context.Context, d *drop) error {
	v, err := a.ledger.Store.Tip()
	if err != nil {
		return err
	}
	m := d.manifest()
	if err := a.inherit(ctx, v, d, &m); err != nil {
		return err
	}
	if d.heir.Item == "" {
		return a.reject(ctx, d)
	}
	if d.taken, err = a.box.Demote(d.taken); err != nil {
		return err
	}
	return a.commitVersion(ctx, d)
}

// manifest says what the item of a drop will be, but for when it is made.
func (d *drop) manifest() layout.Manifest {
	t := d.taken
	m := layout.Manifest{
		Item: t.ID, Version: 1, Collection: layout.Name(cmp.Or(string(d.admission.Collection), string(t.Collection))), Label: d.Label, Lane: layout.Name(d.admission.Lane),
		Batch: t.Ticket.Batch, Metadata: d.metadata, Recognised: layout.Recognised{Identifiers: d.identifiers},
		Source: layout.Source{Name: layout.EncodePath(t.Name), Kind: d.admission.Kind, Files: d.sum.Files, Bytes: d.sum.Bytes,
			Digest: d.sum.Digest, Taken: t.At.UTC().Truncate(ledger.Resolution), By: t.Ticket.By, Rule: d.admission.Rule, Place: d.place},
	}
	if o := t.Original; o != nil {
		m.Originals = map[string]layout.Original{o.Path: *o}
	}
	d.admission.Describe(&m)
	return m
}

// reject sets a drop aside with its reason; nothing of it is lost.
func (a *admitting) reject(ctx context.Context, d *drop) error {
	if d.rule == identity.RuleOriginal {
		return a.forgetCopy(d)
	}
	taken, err := a.box.Demote(d.taken) // it may have come as far as its item's folder
	if err != nil {
		return err
	}
	d.taken = taken
	kept, err := a.box.RejectTaken(ctx, d.taken, d.rule, d.refused)
	if err != nil {
		return fmt.Errorf("set %s aside: %w", d.Label, err)
	}
	d.Item, d.Rejected, d.KeptAs = "", d.refused, kept
	return nil
}

// AdmitAll takes in settled drops, in groups. A drop another process took, or
// that vanished or changed meanwhile, is no error: the next scan tells. It goes on
// past drops that fail, joins their errors, and gives back those that are taken
// and not yet items.
func (in *Intake) AdmitAll(ctx context.Context, box *inbox.Box, settled []inbox.Drop, batch layout.Name, told func(Admitted)) (left []inbox.Taken, err error) {
	var errs []error
	for part := range admissionGroups(settled) {
		if ctx.Err() != nil || in.folder.Space.Low() != nil {
			break
		}
		reqs := make([]inbox.Request, len(part))
		for i, d := range part {
			reqs[i] = inbox.Request{Drop: d, Ticket: ticket(AddOptions{Collection: d.Collection, Batch: cmp.Or(d.Batch, batch)}, ownerOf(d.Path))}
		}
		var taken []inbox.Taken
		for i, r := range box.TakeAll(ctx, reqs) {
			switch {
			case r.Err == nil:
				taken = append(taken, r.Taken)
			case !errors.Is(r.Err, inbox.ErrGone) && !errors.Is(r.Err, inbox.ErrChanged):
				errs = append(errs, notTaken(part[i].Collection, part[i].Name, r.Err))
			}
		}
		l, err := in.admitGroup(ctx, box, taken, told)
		left, errs = append(left, l...), append(errs, err)
	}
	return left, errors.Join(errs...)
}

// admitGroup admits what the inbox brought and tells of each.
func (in *Intake) admitGroup(ctx context.Context, box *inbox.Box, taken []inbox.Taken, told func(Admitted)) (left []inbox.Taken, err error) {
	var errs []error
	in.Announce.hold(taken)
	drops := (&admitting{Intake: in, box: box, who: in.registrar}).admitTaken(ctx, taken)
	for i := range drops {
		d := &drops[i]
		var waits *inbox.WaitsError
		switch {
		case errors.As(d.err, &waits): // told of by who keeps it
			left = append(left, d.taken)
		case d.err != nil:
			errs = append(errs, d.err)
			left = append(left, d.taken)
		case !d.done:
			if d.taken.Original != nil {
				d.Stays = d.taken.Original.Path
			}
			told(d.Admitted)
		}
		in.Announce.release(d.taken.ID)
	}
	return left, errors.Join(errs...)
}

// whyClosed says why nothing may be added to a batch; empty: it may.
func (in *Intake) whyClosed(name layout.Name) string {
	if err := in.ledger.CheckBatch(name); err != nil {
		return err.Error()
	}
	return ""
}

// notTaken words an error at one drop. What the permissions forbid only a person can
// mend.
func notTaken(collection layout.Name, name string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s/%s stays in the inbox, as it may not be taken: %w", collection, layout.EncodePath(name), err)
	}
	return fmt.Errorf("take in %s/%s: %w", collection, layout.EncodePath(name), err)
}
