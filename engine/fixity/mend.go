package fixity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps/target"
)

// mending is what is done about what a look found of one item.
type mending struct {
	*Checks
	found  Result
	record *record
}

// alone calls do, which looks at an item and, if mend is set, mends it and notes so; then no other process of the
// workspace does so meanwhile, of which one would take the other's copy for a damaged one.
func alone(ctx context.Context, c *Checks, mend bool, id layout.ItemID, do func() (Result, error)) (r Result, err error) {
	if !mend {
		return do()
	}
	dir := c.ledger.Path(layout.StateDir + "/mends")
	if err := disk.MkdirAll(dir, 0o777); err != nil {
		return Result{}, err
	}
	lock := flock.New(filepath.Join(dir, string(id[:2]))) // of some hundred, which stay
	if _, err := lock.TryLockContext(ctx, mendPoll); err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	return do()
}

// mendPoll is how often it is looked whether another process has mended an item.
const mendPoll = 50 * time.Millisecond

// heal mends what was found, and notes why that is not done: what is damaged is damaged all the same.
func heal(ctx context.Context, c *Checks, r Result, p *pace) Result {
	r, r.unhealed = c.mend(ctx, r, p)
	return r
}

// mend replaces the copies on targets that a check found damaged, from a sound one; without
// one they stay as they are. What mends that were killed set aside of sound ones goes.
func (c *Checks) mend(ctx context.Context, r Result, p *pace) (Result, error) {
	bad := map[int]map[layout.Name]bool{}
	for _, name := range slices.Sorted(maps.Keys(r.noted)) {
		for version, copied := range r.noted[name] {
			switch {
			case copied.Outcome == layout.FixityFailed:
				if bad[version] == nil {
					bad[version] = map[layout.Name]bool{}
				}
				bad[version][name] = true
			case r.read[name] && copied.Aside != "":
				if err := c.sweepAside(ctx, r, name, version); err != nil {
					return r, err
				}
			}
		}
	}
	if len(bad) == 0 {
		return r, nil
	}
	v, err := c.ledger.Store.Tip()
	if err != nil {
		return r, err
	}
	rec, err := c.read(v, r.Item)
	if err != nil {
		return r, err
	}
	rec.pace = p
	m := mending{c, r, rec}
	for _, version := range slices.Sorted(maps.Keys(bad)) { // of an OCFL object the earlier ones are there first
		if err := m.version(ctx, version, bad[version]); err != nil {
			return r, err
		}
	}
	return r, nil
}

// sweepAside removes what a mend that was killed set aside of a copy that was read and is sound.
func (c *Checks) sweepAside(ctx context.Context, r Result, name layout.Name, version int) error {
	copied := r.noted[name][version]
	t, err := c.target(name)
	if err == nil {
		err = target.Sweep(ctx, t, r.Item, copied, r.known[name])
	}
	if err == nil {
		called := copyName(name, version, layout.Manifest{Version: r.version})
		found := r.Copies[called]
		copied.Aside = setAside(ctx, t, r.Item, copied)
		found.Aside, r.noted[name][version] = copied.Aside, copied
		r.Copies[called] = found
	}
	if down := (*target.Down)(nil); errors.As(err, &down) {
		return nil // the next look does it
	}
	if err != nil {
		return fmt.Errorf("item %s: target %s: bytes that a mend set aside: %w", r.Item.Short(), name, err)
	}
	return nil
}

// version replaces the damaged copies of a version. One that cannot be replaced now stays damaged, and says why.
func (m mending) version(ctx context.Context, version int, names map[layout.Name]bool) (err error) {
	good, err := m.soundOf(ctx, version, names)
	if fault.Is(err, fault.Damaged) || absent(err) {
		return nil // the item is held
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, good.drop()) }()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		err := m.copy(ctx, name, version, good)
		var down *target.Down
		var wrong *target.Damage
		switch {
		case errors.As(err, &down), errors.As(err, &wrong):
			m.unmended(name, version, err)
		case err != nil:
			return err
		}
	}
	return nil
}

// soundOf gives a sound bag for damaged copies: from another copy or, where none is sound, from a damaged OCFL object, of
// which what tells of it alone may be at fault.
func (m mending) soundOf(ctx context.Context, version int, damaged map[layout.Name]bool) (*soundBag, error) {
	good, err := m.sound(ctx, m.record, version, "", damaged, "")
	if !fault.Is(err, fault.Damaged) && !fault.Is(err, fault.Busy) && !absent(err) { // busy: one is away
		return good, err
	}
	for _, name := range slices.Sorted(maps.Keys(damaged)) {
		if m.record.targets[name][version].Layout != target.LayoutOCFL {
			continue
		}
		if own, err := m.sound(ctx, m.record, version, name, nil, ""); err == nil {
			return own, nil
		}
	}
	if whole, gerr := m.gathered(ctx, version); gerr == nil {
		return whole, nil
	} else if ctx.Err() != nil {
		return nil, gerr
	}
	return nil, err
}

// gathered makes a sound bag of the files that the copies of a version have sound, each of which may be damaged in others, and of
// those of the object in the workspace.
func (m mending) gathered(ctx context.Context, version int) (*soundBag, error) {
	var from []target.Kept
	var names []string
	var whole layout.DepositCopy
	for _, name := range slices.Sorted(maps.Keys(m.record.targets)) {
		copied, there := m.record.targets[name][version]
		if !there || copied.Layout == target.LayoutTar || whole.Digest != "" && copied.Digest != whole.Digest {
			continue
		}
		t, err := m.target(name)
		if down := (*target.Down)(nil); errors.As(err, &down) {
			continue // the others may do
		}
		if err != nil {
			return nil, err
		}
		from, names, whole = append(from, target.Kept{Target: t, Copy: copied}), append(names, string(name)), copied
	}
	if at, err := m.object(m.record.Manifest); err == nil && len(from) > 0 && version == m.record.Manifest.Version {
		from, names = append(from, target.Object(at)...), append(names, Content)
	}
	get := func(ctx context.Context, dir string) error { return target.Gather(ctx, from, whole.Digest, dir) }
	b, err := fetching{"", get, whole, m.record.Manifest.Item, "", m.ledger, m.record.pace}.compared(ctx)
	if err == nil {
		b.from = "the sound files of " + strings.Join(names, ", ")
	}
	return b, err
}

// unmended notes why a damaged copy was not replaced.
func (m mending) unmended(name layout.Name, version int, why error) {
	called := copyName(name, version, m.record.Manifest)
	found, copied := m.found.Copies[called], m.found.noted[name][version]
	found.Message = ledger.Clip(found.Message+"; not mended: "+ledger.Printable(why.Error()), ledger.MaxMessage)
	copied.Message = found.Message
	m.found.Copies[called], m.found.noted[name][version] = found, copied
}

func (m mending) copy(ctx context.Context, name layout.Name, version int, good *soundBag) error {
	t, err := m.target(name)
	if err != nil {
		return err
	}
	r, was := m.found, m.found.noted[name][version]
	known := maps.Clone(m.record.targets[name])
	maps.Copy(known, r.noted[name]) // as this look found them
	bag := bagFor(m.Checks, m.record, version, good.dir, "mend", known)
	bag.Progress = m.record.pace.each(ctx)
	made, err := t.Replace(ctx, was, bag)
	if err != nil {
		return fmt.Errorf("mend item %s on target %s: %w", r.Item.Short(), name, err)
	}
	made.Written, made.LastFailure = m.ledger.Now(), &layout.DepositFailure{At: was.Verified, Message: was.Message}
	made.Aside = setAside(ctx, t, r.Item, made)
	r.noted[name][version] = made
	called := copyName(name, version, m.record.Manifest)
	found := r.Copies[called]
	found.At, found.Outcome, found.Files, found.Bytes = made.Verified, layout.FixityPassed, made.Files, made.Bytes
	found.Message = ledger.Clip("mended from "+good.from+"; found: "+found.Message, ledger.MaxMessage)
	found.How, found.Aside = "", made.Aside
	r.Copies[called] = found
	return nil
}
