package fixity

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"bagpipe/bags"
	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/inbox"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
	"bagpipe/steps/target"
)

// damage is what is wrong with a copy: not an error of the check.
type damage string

func (d damage) Error() string { return string(d) }

// notRead is damage of a copy that the disk does not give. barred: this account may not read it.
type notRead struct {
	damage
	barred bool
}

func (n notRead) Unwrap() error { return n.damage }

// Check looks at the copies of one item, and records nothing.
func (c *Checks) Check(ctx context.Context, id layout.ItemID) (Result, error) {
	return c.look(ctx, id, view{})
}

// view is which copies of an item are looked at, and how fast.
type view struct {
	of   string        // OfStore, OfTargets, OfCatalogs; "": all
	at   []layout.Name // of targets only these; none: all
	pace *pace         // nil: as fast as it goes
}

func (w view) local(name string) bool {
	switch w.of {
	case OfTargets:
		return false
	case OfStore:
		return name == Deposit
	case OfCatalogs:
		return name == Source || name == Content
	}
	return true
}

func (w view) target(name layout.Name) bool {
	return w.of != OfCatalogs && (w.of != OfStore || name == steps.StoreTarget) && (len(w.at) == 0 || slices.Contains(w.at, name))
}

// refuseDisposed refuses an item of which nothing is kept but its records.
func refuseDisposed(m layout.Manifest) error {
	if m.Disposed == nil {
		return nil
	}
	return fault.New(fault.Refused, fmt.Sprintf("item %s was disposed of at %s", m.Item.Short(), layout.FormatTime(m.Disposed.At)))
}

func (c *Checks) look(ctx context.Context, id layout.ItemID, w view) (Result, error) {
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return Result{}, err
	}
	r, err := c.read(v, id)
	if err != nil {
		return Result{}, err
	}
	if r.atWork() {
		return Result{}, errAtWork
	}
	if err := refuseDisposed(r.Manifest); err != nil {
		return Result{}, err
	}
	r.pace = w.pace
	m := r.Manifest
	out := Result{Item: id, Collection: m.Collection, Label: m.Label, Copies: map[string]layout.FixityCheck{}, targetsOnly: w.of == OfTargets, partly: w.of == OfStore || w.of == OfCatalogs}
	if m.Source.Place != nil {
		out.catalog = m.Source.Place.Catalog
	}
	if err := (ownCopies{c, r}).look(ctx, w, out.Copies); err != nil {
		return out, err
	}
	if len(r.targets) > 0 { // which the store is one of, or not
		delete(out.Copies, Deposit)
	}
	if err := c.targetCopies(ctx, r, &out, func(name layout.Name, _ int) (target.Level, bool) { return target.Read, w.target(name) }); err != nil {
		return out, err
	}
	if !r.deposited && out.Copies[Deposit].Outcome == layout.FixityAbsent {
		delete(out.Copies, Deposit) // none was made
	}
	if out.Copies[Derived].Outcome == layout.FixityAbsent {
		delete(out.Copies, Derived) // what steps make is removed in time
	}
	if w.of == "" {
		judge(c.ledger.Site, r, out.Copies)
	} else if found, is := out.Copies[Deposit]; is && r.deposited && found.Outcome == layout.FixityAbsent {
		found.Outcome, found.How, found.Message = layout.FixityFailed, HowMissing, "a deposit was made, and is not in the store"
		out.Copies[Deposit] = found
	}
	// What changed meanwhile was not compared with what it should be by now.
	if v, err = c.ledger.Store.Tip(); err != nil {
		return Result{}, err
	}
	now, err := c.read(v, id)
	if err == nil && (now.atWork() || !bytes.Equal(now.Committed.Manifest, r.Committed.Manifest) || !bytes.Equal(now.Committed.Execution, r.Committed.Execution)) {
		err = errAtWork
	}
	return out, err
}

// notInPlace tells of an object that stays in a catalog, and is not in its place, what a look found: its catalog's root
// is away, or, as a sweep of catalogs is told, the object is gone. What a scan found gone no sweep of catalogs looks at.
func notInPlace(c *Checks, m layout.Manifest, w view, found *layout.FixityCheck) {
	path, err := c.folder.Found(m)
	if path == "" {
		return // it was taken in, or its catalog was removed
	}
	if err == nil {
		return // it has no inventory
	}
	gone := c.folder.PlaceGone(m)
	switch {
	case gone == "":
		found.Outcome = layout.FixityDown
	case w.of == OfCatalogs:
		found.Outcome, found.How, found.Message = layout.FixityFailed, HowMissing, gone
	}
}

// newerInstead tells of a changed object in place that it is newer than its record, where its size or times are not those it was
// catalogued with: someone wrote it. Bytes that decay leave these as they were.
func newerInstead(ctx context.Context, c *Checks, m layout.Manifest, found *layout.FixityCheck) error {
	why, err := c.folder.PlaceChanged(ctx, m)
	if err == nil && why != "" && why != folder.NotThere {
		found.Outcome, found.How = layout.FixityNewer, ""
		found.Message = m.Source.Place.Path + " in catalog " + string(m.Source.Place.Catalog) + " " + why
	}
	return err
}

// errAtWork is an item that is being worked on: its files may change at any moment.
var errAtWork = errors.New("the item is being worked on")

func (r *record) atWork() bool {
	for _, w := range r.Execution.Workflows {
		for _, s := range w.Steps {
			if s.Status == state.InProgress {
				return true
			}
		}
	}
	return false
}

// judge fails an item of which nothing is left, unless it came in at another site and is there alone.
func judge(site state.Site, r *record, copies map[string]layout.FixityCheck) {
	there := false
	for _, found := range copies {
		there = there || found.Outcome != layout.FixityAbsent
	}
	if r.deposited && len(r.targets) == 0 && copies[Deposit].Outcome == layout.FixityAbsent {
		found := copies[Deposit]
		found.Outcome, found.How, found.Message = layout.FixityFailed, HowMissing, "a deposit was made, and is not in the store"
		copies[Deposit] = found
	} else if !there && site.Mine(state.Admitter(r.Execution)) {
		found := copies[Source]
		found.Outcome, found.How, found.Message = layout.FixityFailed, HowMissing, "no copy of the item is there"
		copies[Source] = found
	}
}

// ownCopies are the copies of an item that no target has.
type ownCopies struct {
	c *Checks
	r *record
}

// look reads the workspace's own copies that are wanted, and notes what it found.
func (o ownCopies) look(ctx context.Context, w view, copies map[string]layout.FixityCheck) error {
	for _, one := range []struct {
		copy string
		at   func(context.Context) (layout.FixityCheck, error)
	}{{Source, o.source}, {Content, o.content}, {Derived, o.derived}, {Deposit, o.deposit}} {
		if !w.local(one.copy) {
			continue
		}
		found, err := one.at(ctx)
		var wrong damage
		switch {
		case errors.As(err, &wrong):
			var unread notRead
			if found.How = HowChanged; errors.As(err, &unread) {
				found.How = HowUnreadable
			}
			found.Outcome, found.Message = layout.FixityFailed, ledger.Clip(ledger.Printable(string(wrong)), ledger.MaxMessage)
			switch inPlace := one.copy == Source && o.r.Manifest.Source.Place != nil || one.copy == Content && o.c.folder.InPlace(o.r.Manifest); {
			case unread.barred && inPlace: // its owner says who may read it, and it may be as it was
				found.Outcome, found.How = layout.FixityDown, ""
			case found.How == HowChanged && (one.copy == Source || inPlace):
				if err := newerInstead(ctx, o.c, o.r.Manifest, &found); err != nil {
					return err
				}
			}
		case absent(err), fault.Is(err, fault.NotFound): // not found: it stays in a catalog that was removed
			found.Outcome = layout.FixityAbsent
			if one.copy == Source || one.copy == Content {
				notInPlace(o.c, o.r.Manifest, w, &found)
			}
		case err != nil:
			return fmt.Errorf("item %s: %s: %w", o.r.Manifest.Item.Short(), one.copy, err)
		default:
			found.Outcome = layout.FixityPassed
		}
		found.At = o.c.ledger.Now()
		copies[one.copy] = found
	}
	return nil
}

// source compares what was dropped with its digest.
func (o ownCopies) source(ctx context.Context) (found layout.FixityCheck, err error) {
	path, err := o.c.dropped(o.r.Manifest)
	if err != nil {
		return found, err
	}
	found.Path = o.c.shown(path)
	beside, err := besideOf(o.r.Manifest)
	if err != nil {
		return found, err
	}
	sum, err := digestOf(ctx, path, beside)
	if err == nil {
		err = o.r.pace.take(ctx, sum.Bytes)
	}
	if found.Files, found.Bytes = int(sum.Files), sum.Bytes; err != nil {
		return found, unreadable(err)
	}
	if sum.Digest != o.r.Manifest.Source.Digest {
		return found, damage(fmt.Sprintf("its digest is %s, and was %s when it was taken in", sum.Digest, o.r.Manifest.Source.Digest))
	}
	return found, nil
}

// content compares the object with the inventory.
func (o ownCopies) content(ctx context.Context) (found layout.FixityCheck, err error) {
	path, err := o.c.object(o.r.Manifest)
	if err != nil || o.r.inventory == nil {
		return found, errors.Join(err, os.ErrNotExist)
	}
	if m := o.r.Manifest; m.Source.Kind == "archive" && o.c.folder.InPlace(m) { // its inventory is of what is packed; the source's digest is compared
		return found, os.ErrNotExist
	}
	found.Path = o.c.shown(path)
	beside, err := besideIn(o.c, o.r.Manifest)
	if err == nil {
		found.Files, found.Bytes, err = compare(ctx, path, beside, o.r.inventory, o.r.pace)
	}
	return found, err
}

// derived validates the bag that waits for its deposit.
func (o ownCopies) derived(ctx context.Context) (found layout.FixityCheck, err error) {
	dir := steps.BagDir(o.c.ledger.Path(layout.ItemDir(o.r.Manifest.Item)), o.r.Manifest.Item)
	if _, err := os.Lstat(dir); err != nil {
		return found, err
	}
	found.Path = o.c.shown(dir)
	report, err := checkBag(ctx, dir, o.r.Manifest.Item, o.r.pace)
	found.Files, found.Bytes = int(report.PayloadFiles), report.PayloadBytes
	return found, err
}

// deposit validates the bag in the store.
func (o ownCopies) deposit(ctx context.Context) (found layout.FixityCheck, err error) {
	if !o.r.deposited && o.r.elsewhere == "" || len(o.r.targets) > 0 {
		return found, os.ErrNotExist
	}
	dir, err := o.r.bag(max(o.r.Manifest.Version, 1))
	if err != nil {
		return found, err
	}
	found.Path = o.c.shown(dir)
	report, err := checkBag(ctx, dir, o.r.Manifest.Item, o.r.pace)
	found.Files, found.Bytes = int(report.PayloadFiles), report.PayloadBytes
	return found, err
}

// checkBag wants a valid bag of an item.
func checkBag(ctx context.Context, dir string, item layout.ItemID, p *pace) (bags.Report, error) {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return bags.Report{}, cmp.Or(err, error(damage("no folder is there")))
	}
	report, err := bags.Validate(ctx, dir, bags.ValidateOptions{Progress: p.progress(ctx)})
	if err != nil {
		return report, unreadable(err)
	}
	if first, bad := report.FirstError(); bad {
		text := fmt.Sprintf("%s: %s: %s", first.Path, first.Code, first.Text)
		if first.Path == "" {
			text = fmt.Sprintf("%s: %s", first.Code, first.Text)
		}
		return report, damage(text)
	}
	named := slices.ContainsFunc(report.Info, func(f tagfile.Field) bool { return f.Label == "External-Identifier" })
	if named && !slices.ContainsFunc(report.Info, func(f tagfile.Field) bool { return f.Label == "External-Identifier" && f.Value == string(item) }) {
		return report, damage("the bag is another item's")
	}
	return report, nil
}

// compare hashes an object and compares it with an inventory.
func compare(ctx context.Context, path string, beside []string, inventory *layout.Inventory, p *pace) (n int, size int64, err error) {
	tree, err := steps.ObjectTree(ctx, path, beside...)
	if _, main := os.Lstat(path); errors.Is(err, fs.ErrNotExist) && len(beside) > 0 && main == nil {
		return 0, 0, damage("a file beside " + layout.EncodePath(filepath.Base(path)) + " is not there")
	}
	if err != nil {
		return 0, 0, unreadable(err)
	}
	if len(beside) == 0 {
		tree = steps.Known(tree, path, inventory)
	}
	n, size = len(tree.Files), tree.Bytes()
	if len(tree.Others) > 0 {
		return n, size, damage(layout.EncodePath(tree.Others[0].Path) + " is no regular file")
	}
	seen := 0
	err = files.Hash(ctx, tree, []files.Algorithm{files.SHA512}, files.HashOptions{Progress: p.progress(ctx)}, func(h files.Hashed) error {
		name := layout.EncodePath(tree.Files[h.Index].Path)
		was, known := inventory.Files[name]
		switch {
		case !known:
			return damage(name + " is not in the inventory")
		case h.Size != was.Size || hex.EncodeToString(h.Sums.Of(files.SHA512)) != was.SHA512:
			return damage(name + " is not what the inventory says")
		}
		seen++
		return nil
	})
	if err == nil && seen < len(inventory.Files) {
		for name := range inventory.Files {
			if _, missing := os.Lstat(filepath.Join(tree.Dir, filepath.FromSlash(decoded(name)))); missing != nil {
				return n, size, damage(fmt.Sprintf("%s is missing, as %d of %d files are", name, len(inventory.Files)-seen, len(inventory.Files)))
			}
		}
	}
	return n, size, unreadable(err)
}

func decoded(name string) string {
	path, err := layout.DecodePath(name)
	if err != nil {
		return name
	}
	return path
}

// unreadable makes damage of what the disk does not give, or what changed while it was
// read: an item with such a file is not sound.
func unreadable(err error) error {
	var path *os.PathError
	var broken *files.Error
	var special *inbox.BadError
	switch {
	case err == nil || errors.Is(err, context.Canceled) || fault.Is(err, fault.Busy):
		return err
	case errors.As(err, &path), errors.As(err, &broken), errors.As(err, &special), errors.Is(err, files.ErrChanged),
		errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EIO): // by hashing, which opens without names
		return notRead{damage(err.Error()), errors.Is(err, fs.ErrPermission) || special != nil && special.Rule == inbox.RuleUnreadable}
	}
	return err
}
