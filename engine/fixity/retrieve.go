package fixity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bagpipe/bags"
	"bagpipe/bags/archive"
	"bagpipe/bags/files"
	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
)

// Retrieved is what was handed out.
type Retrieved struct {
	Item    layout.ItemID `json:"item"`
	Version int           `json:"version"`
	Copy    string        `json:"copy"` // Deposit or Content
	From    string        `json:"from"`
	To      string        `json:"to"`
	Files   int           `json:"files"`
	Bytes   int64         `json:"bytes"`
}

// Retrieve writes a version of an item to a place where nothing is: its bag from the store
// to a folder or, by the name's ending, into an archive; of a version that was not
// deposited the object, to a folder. 0 is the item's present version. What was written is
// validated, or compared with the inventory, before it gets its name. from, unless "", is the
// target to have it from.
func (c *Checks) Retrieve(ctx context.Context, id layout.ItemID, version int, from layout.Name, to string, progress func(files.Progress)) (Retrieved, error) {
	out := Retrieved{Item: id, Version: version, To: to}
	if err := Outside(to, c.ledger, c.settings.Current()); err != nil {
		return out, err
	}
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return out, err
	}
	r, err := c.read(v, id)
	if err != nil {
		return out, err
	}
	if err := refuseDisposed(r.Manifest); err != nil {
		return out, err
	}
	now := max(r.Manifest.Version, 1)
	if version == 0 {
		out.Version = now
	}
	if out.Version > now {
		return out, fault.New(fault.NotFound, fmt.Sprintf("item %s has no version %d; it is at version %d", id.Short(), out.Version, now))
	}
	h := handing{c, r, progress}
	if from != "" || len(r.targets) > 0 {
		return h.copy(ctx, from, out)
	}
	bag, err := r.bag(out.Version)
	switch {
	case err == nil:
		out.Copy, out.From = Deposit, bag
		out.Files, out.Bytes, err = h.bag(ctx, bag, to)
	case absent(err) && out.Version == now && !r.deposited:
		out.Copy = Content
		err = h.object(ctx, &out)
	case absent(err) && out.Version == now:
		err = fault.New(fault.Damaged, fmt.Sprintf("item %s was deposited, and its bag is not in the store", id.Short()), fault.Remedy{Verb: fault.Show, Item: id})
	case absent(err) && r.elsewhere != "":
		err = r.isElsewhere()
	case absent(err) && r.Manifest.Source.Place != nil:
		err = fault.New(fault.NotFound, fmt.Sprintf("version %d of item %s was not deposited, and a later one stands in its place in catalog %s; its records are in %s",
			out.Version, id.Short(), r.Manifest.Source.Place.Catalog, layout.VersionDir(id, out.Version)))
	case absent(err):
		err = fault.New(fault.NotFound, fmt.Sprintf("version %d of item %s was not deposited; its files are in %s", out.Version, id.Short(), layout.VersionDir(id, out.Version)))
	}
	return out, err
}

// isElsewhere says that what is asked for is at another site.
func (r *record) isElsewhere() error {
	return fault.New(fault.NotFound, fmt.Sprintf("item %s was deposited by site %s, in a store of its own, and its bytes are not here", r.Manifest.Item.Short(), r.elsewhere),
		fault.Remedy{Verb: fault.GetPayload, Item: r.Manifest.Item})
}

// Outside refuses a place among what the workspace itself keeps, below the roots of catalogs, and in other folders, which
// are named as they are on this disk.
func Outside(to string, l *ledger.Ledger, now *settings.Snapshot, others ...string) error {
	dir, err := now.Keeping(to, l.Root, others...)
	if err == nil && dir != "" {
		err = fault.New(fault.Refused, fmt.Sprintf("%s lies in %s, where this command writes nothing", layout.EncodePath(to), layout.EncodePath(dir)))
	}
	return err
}

// handing hands out what is kept of one item.
type handing struct {
	c        *Checks
	r        *record
	progress func(files.Progress)
}

// copy hands out a bag that has copies on targets: of from, or the first sound one.
func (h handing) copy(ctx context.Context, from layout.Name, out Retrieved) (_ Retrieved, err error) {
	id := h.r.Manifest.Item
	if from != "" {
		if err := knownTarget(h.c, from); err != nil {
			return out, err
		}
	}
	into := ""
	if archive.FormatOfName(filepath.Base(out.To)) == archive.None {
		if _, err := os.Lstat(out.To); err == nil {
			return out, fault.New(fault.Refused, layout.EncodePath(out.To)+" is there already; nothing is written over it")
		}
		into = partOf(out.To, id, out.Version)
	}
	good, err := h.c.sound(ctx, h.r, out.Version, from, nil, into)
	if absent(err) {
		where := ""
		if from != "" {
			where = " on target " + string(from)
		}
		return out, fault.New(fault.NotFound, fmt.Sprintf("version %d of item %s has no copy%s", out.Version, id.Short(), where))
	}
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, good.drop()) }()
	out.Copy, out.From = Deposit, good.from
	if good.dir != into {
		out.Files, out.Bytes, err = h.bag(ctx, good.dir, out.To)
		return out, err
	}
	out.Files, out.Bytes = int(good.report.PayloadFiles), good.report.PayloadBytes
	if err := disk.SyncTree(into); err != nil {
		return out, err
	}
	return out, disk.Rename(into, out.To)
}

// partOf is where a bag that comes from a target is written until it is whole: an interrupted
// retrieval leaves it, and the next one to the same place goes on with it.
func partOf(to string, id layout.ItemID, version int) string {
	return filepath.Join(filepath.Dir(to), fmt.Sprintf(".%s.%s-v%d.part", filepath.Base(to), id, version))
}

// bag writes a bag of the item.
func (h handing) bag(ctx context.Context, bag, to string) (n int, size int64, err error) {
	id := h.r.Manifest.Item
	if archive.FormatOfName(filepath.Base(to)) != archive.None {
		if _, err := checkBag(ctx, bag, id, nil); err != nil {
			return 0, 0, notSound(bag, err)
		}
		report, err := bags.Serialize(ctx, bag, to, bags.SerializeOptions{Verify: true, Progress: h.progress})
		if err != nil {
			return 0, 0, err
		}
		return int(report.PayloadFiles), report.PayloadBytes, nil
	}
	err = place(ctx, bag, nil, to, nil, func(made string) error {
		report, err := checkBag(ctx, made, id, nil)
		n, size = int(report.PayloadFiles), report.PayloadBytes
		return notSound(bag, err)
	})
	return n, size, err
}

// object writes the object of an item that was not deposited.
func (h handing) object(ctx context.Context, out *Retrieved) error {
	r := h.r
	object, err := h.c.object(r.Manifest)
	if err != nil && r.elsewhere != "" {
		return r.isElsewhere()
	}
	inPlace := h.c.folder.InPlace(r.Manifest)
	switch {
	case inPlace && absent(err):
		return h.c.folder.NotAsCatalogued(r.Manifest, folder.NotThere)
	case inPlace && fault.Is(err, fault.NotFound): // its catalog was removed
		return err
	case inPlace && err == nil && r.Manifest.Source.Kind == "archive":
		return fault.New(fault.Refused, folder.Packed(r.Manifest)+"; it can be had whole from where it stands: "+layout.EncodePath(object))
	}
	if err != nil || r.inventory == nil {
		return fault.New(fault.Refused, fmt.Sprintf("item %s was not deposited yet, and has no inventory to check a copy by", r.Manifest.Item.Short()), fault.Remedy{Verb: fault.Why, Item: r.Manifest.Item})
	}
	if archive.FormatOfName(filepath.Base(out.To)) != archive.None {
		return fault.New(fault.Refused, fmt.Sprintf("item %s was not deposited yet; its object can be had as a folder", r.Manifest.Item.Short()))
	}
	beside, err := besideIn(h.c, r.Manifest)
	if err != nil {
		return err
	}
	out.From = object
	return place(ctx, object, beside, out.To, r.inventory, func(made string) error {
		out.Files, out.Bytes, err = compare(ctx, made, nil, r.inventory, nil)
		if err != nil && inPlace {
			if why, changed := h.c.folder.PlaceChanged(ctx, r.Manifest); changed == nil && why != "" {
				return h.c.folder.NotAsCatalogued(r.Manifest, why)
			}
		}
		return notSound(object, err)
	})
}

// place copies a tree to a place where nothing is, and checks the copy before it gets its
// name. The file of a loose one is called as the inventory calls it; nil: of a bag.
func place(ctx context.Context, from string, beside []string, to string, inventory *layout.Inventory, check func(made string) error) (err error) {
	scratch, err := files.NewScratch(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scratch.Close()) }()
	tree, err := steps.ObjectTree(ctx, from, beside...)
	if err != nil {
		return notSound(from, unreadable(err))
	}
	if len(beside) == 0 {
		tree = steps.Known(tree, from, inventory)
	}
	if len(tree.Others) > 0 {
		return notSound(from, damage(layout.EncodePath(tree.Others[0].Path)+" is no regular file"))
	}
	if err := disk.MkdirAll(scratch.Made(), 0o777); err != nil {
		return err
	}
	if err := files.Place(ctx, tree, scratch.Made(), false); err != nil {
		return err
	}
	if err := check(scratch.Made()); err != nil {
		return err
	}
	return scratch.Publish(disk.SyncTree)
}

// notSound says of which copy damage is.
func notSound(copy string, err error) error {
	var wrong damage
	if errors.As(err, &wrong) {
		return fault.New(fault.Damaged, fmt.Sprintf("%s is not sound, and nothing was handed out: %s", layout.EncodePath(copy), wrong))
	}
	return err
}
