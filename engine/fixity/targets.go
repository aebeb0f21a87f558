package fixity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
	"bagpipe/steps/target"
)

// copyName is what a copy on a target is called beside the other copies of an item.
func copyName(name layout.Name, version int, m layout.Manifest) string {
	if version == max(m.Version, 1) {
		return string(name)
	}
	return fmt.Sprintf("%s v%d", name, version)
}

// knownTarget refuses a name that no target of the settings has.
func knownTarget(c *Checks, name layout.Name) error {
	names := c.settings.Current().Settings.TargetNames()
	if slices.Contains(names, string(name)) {
		return nil
	}
	return fault.Unknown("target", string(name), " in the settings", slices.Values(names))
}

// Poor says what targets cannot do, by their names, as they were opened last.
func (c *Checks) Poor() map[layout.Name][]string {
	all := target.ReadNotes(c.ledger.Path(layout.StateDir + "/targets"))
	names := c.settings.Current().Settings.TargetNames()
	maps.DeleteFunc(all, func(name layout.Name, _ []string) bool { return !slices.Contains(names, string(name)) })
	return all
}

// target opens a target by the settings in force.
func (c *Checks) target(name layout.Name) (target.Target, error) { return c.open(name, c.targets.Take) }

func (c *Checks) open(name layout.Name, take func(layout.Name, target.Config) (target.Target, error)) (target.Target, error) {
	set := c.settings.Current().Settings
	config, is := set.Target(c.ledger.Root, string(name), set.StoreDir(c.ledger.Root))
	if !is {
		return nil, &target.Down{Err: fmt.Errorf("the settings have no target %q any more", name)}
	}
	return take(name, config)
}

// targetCopies checks the copies on targets, and gives them as they are now known. A target
// that is down says nothing about its copies.
// level says how close the look at a copy is; false: there is none.
func (c *Checks) targetCopies(ctx context.Context, r *record, out *Result, level func(layout.Name, int) (target.Level, bool)) error {
	if out.noted == nil {
		out.noted, out.read, out.known = map[layout.Name]map[int]layout.DepositCopy{}, map[layout.Name]bool{}, r.targets
		out.version = r.Manifest.Version
	}
	for _, name := range slices.Sorted(maps.Keys(r.targets)) {
		for _, version := range slices.Sorted(maps.Keys(r.targets[name])) {
			how, looked := level(name, version)
			if !looked {
				continue
			}
			found, err := c.targetCopy(ctx, name, r.Manifest.Item, r.targets[name][version], how)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("item %s: target %s: %w", r.Manifest.Item.Short(), name, err)
			}
			found.At = c.ledger.Now()
			out.Copies[copyName(name, version, r.Manifest)] = found
			if found.Outcome == layout.FixityDown {
				continue
			}
			if err := r.pace.take(ctx, found.Bytes); err != nil {
				return err
			}
			copied := r.targets[name][version]
			copied.Verified, copied.Outcome, copied.Message, copied.Aside = found.At, found.Outcome, found.Message, found.Aside
			if out.noted[name] == nil {
				out.noted[name] = map[int]layout.DepositCopy{}
			}
			out.noted[name][version] = copied
			out.read[name] = how == target.Read
		}
	}
	return nil
}

func (c *Checks) targetCopy(ctx context.Context, name layout.Name, id layout.ItemID, copied layout.DepositCopy, level target.Level) (found layout.FixityCheck, err error) {
	found = layout.FixityCheck{Outcome: layout.FixityPassed, Path: string(name) + ":" + copied.Place}
	t, err := c.open(name, c.targets.Looking)
	if err == nil {
		found.Files, found.Bytes, err = t.Check(ctx, copied, level)
	}
	var down *target.Down
	if err == nil || t != nil && !errors.As(err, &down) {
		found.Aside = setAside(ctx, t, id, copied)
	}
	var wrong *target.Damage
	switch {
	case errors.As(err, &down):
		found.Outcome = layout.FixityDown
	case errors.As(err, &wrong):
		if found.Outcome, found.How = layout.FixityFailed, HowChanged; wrong.Unread {
			found.How = HowUnreadable
		}
	case absent(err):
		found.How = HowMissing
		found.Outcome, err = layout.FixityFailed, errors.New("nothing of it is there")
	case err != nil:
		return found, err
	}
	if err != nil {
		found.Message = ledger.Clip(ledger.Printable(err.Error()), ledger.MaxMessage)
	}
	return found, nil
}

// setAside tells where bytes stand that a mend set aside of a copy. What the target does not say now it says at the next look.
func setAside(ctx context.Context, t target.Target, id layout.ItemID, copied layout.DepositCopy) string {
	at, err := target.Aside(ctx, t, id, copied)
	if err != nil {
		return copied.Aside
	}
	return at
}

// keepTargets writes what was found of the copies on targets into the item's record.
func (r Result) keepTargets(d *layout.Deposits) {
	for name, versions := range r.noted {
		for version, copied := range versions {
			d.Note(name, version, copied)
		}
	}
}

// local are the copies in the workspace, in a catalog and in the store, which copies: of the record has. Of one that is
// away, or newer than the record, what is known stays.
func (r Result) local(known map[string]layout.FixityCheck) map[string]layout.FixityCheck {
	out := map[string]layout.FixityCheck{}
	for _, name := range []string{Source, Content, Derived, Deposit} {
		found, is := r.Copies[name]
		if found.Outcome == layout.FixityDown || found.Outcome == layout.FixityNewer {
			found, is = known[name]
		}
		if is {
			out[name] = found
		}
	}
	return out
}

// knownCopies are the copies as they were found last.
func knownCopies(d layout.Deposits) map[string]layout.FixityCheck {
	all := map[string]layout.FixityCheck{}
	maps.Copy(all, d.Copies)
	for name, versions := range d.Targets {
		newest := slices.Max(slices.Collect(maps.Keys(versions)))
		for version, c := range versions {
			all[copyName(name, version, layout.Manifest{Version: newest})] = layout.FixityCheck{At: c.Verified, Outcome: c.Outcome,
				Path: string(name) + ":" + c.Place, Files: c.Files, Bytes: c.Bytes, Message: c.Message, Aside: c.Aside}
		}
	}
	return all
}
