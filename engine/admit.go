package engine

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
	"bagpipe/engine/recognise"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// The rules are: a drop is taken into intake/ID by one rename; recognised;
// digested; its source moved to the item's folder and synced; then the item is
// committed, register completed; then the journal in intake/ID is removed. A
// crash at any point leaves intake/ID, and the next engine goes on from there.

// registerStep is the author of the items the inbox brought; the first step of
// any workflow is completed by taking the drop in.
const registerStep = "register"

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

// box is the inbox by the settings in force. Who takes from it has registered.
func (e *Engine) box(watch bool) (*inbox.Box, error) {
	return inbox.New(e.boxOptions(watch))
}

func (e *Engine) boxOptions(watch bool) inbox.Options {
	s := e.current().settings
	return inbox.Options{
		Root: e.root, Engine: e.id, Now: e.clock, Random: e.o.Random, Log: e.o.Log,
		Watch:    watch && (s.Inbox.Watch == nil || *s.Inbox.Watch),
		Settling: s.Inbox.settling(), Of: s.settlingByCollection(), Rescan: s.rescan(), Closed: e.whyClosed, Rules: recognise.MarkerName, Together: e.together, TakenAs: e.originalIn, Companions: e.companions,
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

// resumeIntake admits what a dead engine took and did not commit, and hands what
// this engine itself could not commit before to the same.
func (e *Engine) resumeIntake(ctx context.Context, box *inbox.Box, own []inbox.Taken, told func(Admitted)) (left []inbox.Taken, err error) {
	pending, err := box.Pending(ctx, e.seat.MayBeAlive)
	if err != nil {
		err = fmt.Errorf("look into %s: %w", layout.IntakeDir, err)
	}
	left, admitErr := e.admitGroup(ctx, box, append(own, pending...), told)
	return left, errors.Join(err, admitErr)
}

// orphaned tells whether a dead engine left something in the intake.
func (e *Engine) orphaned(box *inbox.Box) bool { return box.Orphaned(e.seat.MayBeAlive) }

// drop is a taken drop on its way to being an item.
type drop struct {
	Admitted
	taken     inbox.Taken
	admission admission
	sum       inbox.Sum
	done      bool // an item already, or rejected
	refused   string
	rule      string // of the refusal
	heir      heir   // what it is to be a version of; zero: an item of its own
	err       error

	created     time.Time
	metadata    map[string]any // of side-cars
	identifiers map[string]string
}

// admitTaken makes items of taken drops; their syncs and commits are shared. It
// may be called again for the same drops after a crash, or after an error, at any
// point of it.
func (e *Engine) admitTaken(ctx context.Context, box *inbox.Box, taken []inbox.Taken, who actor) []drop {
	drops, all := make([]drop, len(taken)), make([]*drop, len(taken))
	for i, t := range taken {
		drops[i] = drop{taken: t, Admitted: Admitted{Item: t.ID, Collection: t.Collection, Label: cmp.Or(t.Ticket.Label, layout.EncodePath(t.Name))}}
		all[i] = &drops[i]
	}
	eachOf(all, dropsAtOnce, func(d *drop) { d.err = e.prepare(ctx, box, d) })
	first, later := e.repeats(drops)
	e.admitPrepared(ctx, box, first, who)
	eachOf(later, admissionGroup, func(d *drop) { d.err = e.refuseKnown(ctx, d) })
	e.admitPrepared(ctx, box, later, who)
	return drops
}

// admitPrepared makes items of drops that are recognised and digested, or sets them
// aside.
func (e *Engine) admitPrepared(ctx context.Context, box *inbox.Box, drops []*drop, who actor) {
	e.promote(ctx, box, drops)
	now := e.o.Now().UTC().Truncate(ms)
	eachOf(drops, admissionGroup, func(d *drop) {
		var bad *inbox.BadError
		switch {
		case errors.As(d.err, &bad):
			d.refused, d.rule = bad.Error(), bad.Rule
			d.err = e.reject(ctx, box, d)
		case d.err != nil:
		case d.refused != "":
			d.err = e.reject(ctx, box, d)
		default:
			d.created = now // of one time, they are in the order of their identifiers
			d.err = e.commitDrop(ctx, box, d, who)
		}
	})
	// All of these work on one folder: more at a time only wait for each other there.
	const finishedAtOnce = 8
	eachOf(drops, finishedAtOnce, func(d *drop) {
		if d.err == nil && d.Rejected == "" && d.rule != ruleOriginal {
			d.err = box.Done(d.taken)
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
func (e *Engine) prepare(ctx context.Context, box *inbox.Box, d *drop) (err error) {
	if d.done, err = e.exists(d.taken.ID); err != nil || d.done {
		return err
	}
	if d.done, err = e.takeBack(box, d); err != nil || d.done {
		return err
	}
	if d.admission, d.refused, err = e.plan(ctx, d.taken); err != nil || d.refused != "" {
		d.rule = "recognition"
		return err
	}
	d.Workflow, d.Admitted.Collection = d.admission.workflow.def.Name, d.admission.collection
	d.Label = cmp.Or(d.taken.Ticket.Label, d.admission.outcome.Label, d.Label)
	if err := box.CheckLists(ctx, d.taken); err != nil {
		return err
	}
	if err := e.describe(ctx, d); err != nil || d.refused != "" {
		return err
	}
	if d.sum, err = inbox.Digest(ctx, d.taken.Path); err != nil {
		return err
	}
	return e.refuseKnown(ctx, d)
}

// promote moves the content of those that will be items to their folders.
func (e *Engine) promote(ctx context.Context, box *inbox.Box, drops []*drop) {
	var ready []inbox.Taken
	var of []*drop
	for _, d := range drops {
		if d.err == nil && d.refused == "" && d.heir.item == "" && !d.taken.Promoted {
			ready, of = append(ready, d.taken), append(of, d)
		}
	}
	if len(ready) == 1 {
		t, err := box.Promote(ctx, ready[0])
		of[0].promoted(t, err)
		return
	}
	for i, r := range box.PromoteAll(ctx, ready) {
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
func (e *Engine) commitDrop(ctx context.Context, box *inbox.Box, d *drop, who actor) error {
	if !d.done && d.heir.item != "" {
		return e.commitVersion(ctx, box, d, who)
	}
	if !d.done {
		m := d.manifest()
		m.Created = d.created
		guard, err := e.guardKnown(ctx, &m)
		if err == nil {
			err = e.registerItem(ctx, m, d.admission.workflow, d.admission.skip, who, guard)
		}
		if err := d.refusedBy(err); err != nil {
			return fmt.Errorf("register %s: %w", d.Label, err)
		}
		if d.refused != "" { // another was faster
			return e.rejectOrInherit(ctx, box, d, who)
		}
	}
	return nil
}

// rejectOrInherit is for a drop that another was faster than: within its transaction
// it was found to be known.
func (e *Engine) rejectOrInherit(ctx context.Context, box *inbox.Box, d *drop, who actor) error {
	v, err := e.store.Tip()
	if err != nil {
		return err
	}
	m := d.manifest()
	if err := e.inherit(ctx, v, d, &m); err != nil {
		return err
	}
	if d.heir.item == "" {
		return e.reject(ctx, box, d)
	}
	if d.taken, err = box.Demote(d.taken); err != nil {
		return err
	}
	return e.commitVersion(ctx, box, d, who)
}

// manifest says what the item of a drop will be, but for when it is made.
func (d *drop) manifest() layout.Manifest {
	t := d.taken
	m := layout.Manifest{
		Item: t.ID, Version: 1, Collection: layout.Name(cmp.Or(string(d.admission.collection), string(t.Collection))), Label: d.Label, Lane: layout.Name(d.admission.lane),
		Batch: t.Ticket.Batch, Metadata: d.metadata, Identifiers: d.identifiers,
		Source: layout.Source{Name: layout.EncodePath(t.Name), Kind: d.admission.kind, Files: d.sum.Files, Bytes: d.sum.Bytes,
			Digest: d.sum.Digest, Taken: t.At.UTC().Truncate(ms), By: t.Ticket.By, Rule: d.admission.rule},
	}
	if o := t.Original; o != nil {
		m.Originals = map[string]layout.Original{o.Path: *o}
	}
	d.admission.describe(&m)
	return m
}

func (e *Engine) exists(id layout.ItemID) (bool, error) {
	v, err := e.store.Tip()
	if err != nil {
		return false, err
	}
	_, err = v.ReadFile(layout.ItemDir(id) + "/" + layout.ExecutionJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// reject sets a drop aside with its reason; nothing of it is lost.
func (e *Engine) reject(ctx context.Context, box *inbox.Box, d *drop) error {
	if d.rule == ruleOriginal {
		return e.forgetCopy(box, d)
	}
	taken, err := box.Demote(d.taken) // it may have come as far as its item's folder
	if err != nil {
		return err
	}
	d.taken = taken
	kept, err := box.RejectTaken(ctx, d.taken, d.rule, d.refused)
	if err != nil {
		return fmt.Errorf("set %s aside: %w", d.Label, err)
	}
	d.Item, d.Rejected, d.KeptAs = "", d.refused, kept
	return nil
}

// admitAll takes in settled drops, in groups. A drop another process took, or
// that vanished or changed meanwhile, is no error: the next scan tells. It goes on
// past drops that fail, joins their errors, and gives back those that are taken
// and not yet items.
func (e *Engine) admitAll(ctx context.Context, box *inbox.Box, settled []inbox.Drop, batch layout.Name, told func(Admitted)) (left []inbox.Taken, err error) {
	var errs []error
	for part := range admissionGroups(settled) {
		if ctx.Err() != nil || e.space.low() != nil {
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
		l, err := e.admitGroup(ctx, box, taken, told)
		left, errs = append(left, l...), append(errs, err)
	}
	return left, errors.Join(errs...)
}

// admitGroup admits what the inbox brought and tells of each.
func (e *Engine) admitGroup(ctx context.Context, box *inbox.Box, taken []inbox.Taken, told func(Admitted)) (left []inbox.Taken, err error) {
	var errs []error
	e.announce.hold(taken)
	drops := e.admitTaken(ctx, box, taken, e.byRobot(registerStep))
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
		e.announce.release(d.taken.ID)
	}
	return left, errors.Join(errs...)
}
