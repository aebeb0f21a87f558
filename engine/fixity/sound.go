package fixity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/bags"
	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
	"bagpipe/steps/target"
)

// soundBag is a bag of an item in a folder of this machine, validated.
type soundBag struct {
	dir  string
	from string // where it was had from
	drop func() error

	report bags.Report
}

// had gives a bag that was validated.
func had(dir, from string, drop func() error, report bags.Report) *soundBag {
	return &soundBag{dir, from, drop, report}
}

// sound finds a sound bag of a version of an item: in the store, or on a target, from where it
// is fetched. Copies on targets that avoid names are passed over; only, unless "", is the one
// target to ask. into, unless "", is a folder that is written, and gone on with where it is there,
// in place of scratch. Without a sound copy it says what is wrong with each: fault.Damaged, or
// fault.Busy where targets are down, or fs.ErrNotExist where there is none.
func (c *Checks) sound(ctx context.Context, r *record, version int, only layout.Name, avoid map[layout.Name]bool, into string) (*soundBag, error) {
	id := r.Manifest.Item
	var wrong []error
	down := false
	if (only == "" || only == steps.StoreTarget) && !avoid[steps.StoreTarget] {
		dir, err := r.bag(version)
		if err == nil {
			report, rerr := checkBag(ctx, dir, id, r.pace)
			if err = rerr; err == nil {
				return had(dir, dir, func() error { return nil }, report), nil
			}
		}
		_, stored := r.targets[steps.StoreTarget][version]
		if away := fault.Is(err, fault.Busy); !absent(err) && (stored || !away) { // a store without a copy may be away
			wrong = append(wrong, fmt.Errorf("store: %w", err))
			down = down || away
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.targets)) {
		copied, there := r.targets[name][version]
		if !there || avoid[name] || name == steps.StoreTarget || only != "" && name != only {
			continue
		}
		b, err := fetch(ctx, c, r, name, copied, into)
		if err == nil {
			return b, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var away *target.Down
		down = down || errors.As(err, &away)
		wrong = append(wrong, fmt.Errorf("target %s: %w", name, err))
	}
	switch {
	case len(wrong) == 0:
		return nil, os.ErrNotExist
	case down:
		return nil, fault.New(fault.Busy, fmt.Sprintf("no sound copy of item %s could be had: %s", id.Short(), oneLine(wrong)))
	case only != "":
		return nil, fault.New(fault.Damaged, fmt.Sprintf("this copy of item %s is not sound: %s", id.Short(), oneLine(wrong)))
	}
	return nil, fault.New(fault.Damaged, fmt.Sprintf("no copy of item %s is sound: %s", id.Short(), oneLine(wrong)))
}

// oneLine words what is wrong with several copies.
func oneLine(wrong []error) string {
	return strings.ReplaceAll(errors.Join(wrong...).Error(), "\n", "; ")
}

// fetching is one copy on a target that is got from there.
type fetching struct {
	name   layout.Name
	get    func(ctx context.Context, dir string) error
	copied layout.DepositCopy
	item   layout.ItemID
	into   string // "": a folder in scratch
	ledger *ledger.Ledger
	pace   *pace
}

// getOf gets a copy as it stands.
func getOf(t target.Target, copied layout.DepositCopy) func(context.Context, string) error {
	return func(ctx context.Context, dir string) error { return t.Get(ctx, copied, dir) }
}

// ownScratch is this engine's part of scratch, which goes with it. Others leave it while the engine is known to live.
func ownScratch(l *ledger.Ledger) (string, error) {
	if _, err := l.Seat.Engine(); err != nil {
		return "", err
	}
	dir := l.Path(layout.ScratchDir + "/" + string(l.ID))
	return dir, disk.MkdirAll(dir, 0o755)
}

// fetch gets a copy from a target and judges it: by its digest on record, and by validating it.
func fetch(ctx context.Context, c *Checks, r *record, name layout.Name, copied layout.DepositCopy, into string) (*soundBag, error) {
	t, err := c.target(name)
	if err != nil {
		return nil, err
	}
	f := fetching{name, getOf(t, copied), copied, r.Manifest.Item, into, c.ledger, r.pace}
	_, there := os.Lstat(into)
	b, err := f.compared(ctx)
	var away *target.Down
	if err != nil && into != "" && !errors.As(err, &away) && ctx.Err() == nil {
		err = errors.Join(err, disk.RemoveTree(into)) // nothing of it is gone on with
		if there == nil {                             // what lay there may have been at fault
			b, err = f.compared(ctx)
		}
	}
	return b, err
}

// compared gets the copy, and compares it with its record.
func (f fetching) compared(ctx context.Context) (*soundBag, error) {
	b, err := f.validated(ctx)
	if err != nil {
		return nil, err
	}
	var digest string
	if f.copied.Layout == target.LayoutTar { // whose digest is that of the tar
		digest, err = target.TarDigest(ctx, f.item, f.copied.Place, b.dir)
	} else {
		digest, err = target.Digest(b.dir)
	}
	if err == nil && digest != f.copied.Digest {
		err = damage("its tag manifests are not those that were written")
	}
	if err != nil {
		return nil, errors.Join(err, b.drop())
	}
	return b, nil
}

// validated gets the copy and validates it.
func (f fetching) validated(ctx context.Context) (_ *soundBag, err error) {
	dir, drop := f.into, func() error { return nil }
	if dir == "" {
		own, err := ownScratch(f.ledger)
		if err != nil {
			return nil, err
		}
		top, err := os.MkdirTemp(own, "fetch-")
		if err != nil {
			return nil, err
		}
		dir, drop = filepath.Join(top, string(f.item)), func() error { return disk.RemoveTree(top) }
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, drop())
		}
	}()
	if err := disk.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	if err := f.get(ctx, dir); err != nil {
		return nil, err
	}
	if err := f.pace.take(ctx, f.copied.Bytes); err != nil {
		return nil, err
	}
	report, err := checkBag(ctx, dir, f.item, f.pace)
	return had(dir, string(f.name)+":"+f.copied.Place, drop, report), err
}

// bagFor describes a bag for a target, of which record has the copies.
func bagFor(c *Checks, r *record, version int, dir, why string, record map[int]layout.DepositCopy) target.Bag {
	m, l := r.Manifest, c.ledger
	return target.Bag{Item: m.Item, Name: c.settings.Current().Settings.Collection(m.Collection).Bag.NameOf(r.Committed.Manifest), Version: version, Dir: dir, By: l.ByPerson().Author.Name, At: l.Now(), Record: record,
		Message: fmt.Sprintf("%s: %s (%s/%s)", why, m.Item, m.Collection, m.Label)}
}
