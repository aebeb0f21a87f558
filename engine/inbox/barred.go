package inbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"bagpipe/engine/fault"
	"bagpipe/engine/inbox/internal/content"

	"bagpipe/layout/disk"
	"golang.org/x/sys/unix"
)

// The rules are:
//
//   - A drop whose entries all belong to this account is renamed into the intake.
//   - A drop with an entry of another account is copied, so that its owner can write
//     into nothing that an item holds, by no path and by no file still open. The
//     original is removed by Done.
//   - An original that may not be renamed or removed stays where it is (Drop.Stays).
//     Its copy's Taken carries a layout.Original: what to know the original by.
//   - A drop that may not be read is barred: it waits for its owner (Waiting.Barred), and
//     so do files that belong together, or a drop that breaks a rule, that may not be
//     moved.

// barFor has a drop wait for the owner of path, who can give this account the access.
func (w *Waiting) barFor(path string, s content.Survey, why, access string) {
	owner := "another account"
	if s.Access.Owner != nil {
		owner = disk.AccountName(int(s.Access.Owner.Uid))
	}
	w.Reason = fmt.Sprintf("belongs to %s; %s", owner, why)
	w.Remedies = []fault.Remedy{permit(path, s.Access.Owner, access)}
}

// permit has the owner of a path give this account access: to itself where it is the
// owner, to its group where this account is in that, else by an access list.
func permit(path string, st *unix.Stat_t, access string) fault.Remedy {
	switch {
	case st != nil && int(st.Uid) == os.Geteuid():
		return fault.Remedy{Verb: fault.PermitOwner, Name: path, Access: access}
	case st != nil && inGroup(int(st.Gid)):
		return fault.Remedy{Verb: fault.PermitGroup, Name: path, Access: access}
	}
	return fault.Remedy{Verb: fault.PermitAccount, Name: path, Access: access, Account: disk.AccountName(os.Geteuid())}
}

// removal has the owner of a drop remove it.
func removal(d Drop) fault.Remedy {
	if d.Kind == File {
		return fault.Remedy{Verb: fault.RemoveFile, Name: d.Path}
	}
	return fault.Remedy{Verb: fault.RemoveFolder, Name: d.Path}
}

func inGroup(gid int) bool {
	groups, err := os.Getgroups()
	return gid == os.Getegid() || err == nil && slices.Contains(groups, gid)
}

// bar has a settled drop wait for a person where nothing can be done with it here, and
// one that was taken in before though its original stays; of any other it notes how it
// is to be taken.
func (p *place) bar(ctx context.Context, d *Drop, s content.Survey) (bool, error) {
	unmoved, unremoved := p.stays(*d, s)
	bad := s.Bad
	if bad == nil && s.Empty() {
		bad = content.Bad(content.RuleEmpty, ".", "is empty")
	}
	w := Waiting{Drop: *d, Barred: true}
	switch {
	case bad != nil && bad.Rule == RuleUnreadable:
		w.barFor(d.Path, s, bad.Error(), "rX")
	case bad != nil && unmoved != "":
		w.barFor(d.Path, s, "cannot be taken in ("+bad.Error()+") and not be set aside: "+unmoved, "rwX")
		w.Remedies = append(w.Remedies, removal(*d))
	case d.IsSet() && unremoved != "":
		w.barFor(filepath.Dir(d.Path), s, "belongs with other files, and "+unremoved, "rwX")
	case bad != nil:
		return false, nil
	default:
		d.Stays, d.foreign = unremoved, s.Access.Foreign
		if unremoved == "" && !d.foreign { // a foreign one may have stayed until now
			return false, nil
		}
		if err := p.takenBefore(ctx, &w, unremoved); err != nil || w.Reason == "" {
			return false, err
		}
	}
	p.found.Waiting = append(p.found.Waiting, w)
	return true, nil
}

// takenBefore says what became of an original that stays; no reason: nothing yet. One
// that was taken in keeps no batch open.
func (p *place) takenBefore(ctx context.Context, w *Waiting, stays string) error {
	if stays != "" {
		stays = "; it stays as " + stays
	}
	b := p.box
	w.Remedies = []fault.Remedy{removal(w.Drop)}
	o, err := b.OriginalOf(ctx, w.Path)
	if err != nil {
		return err
	}
	if why := b.refusedOriginal(w.Drop, o); why != "" {
		w.Taken, w.Barred, w.Reason = true, false, fmt.Sprintf("a copy of it was rejected (%s)", why)
	} else if b.opt.TakenAs != nil {
		item, changed, err := b.opt.TakenAs(ctx, o)
		switch {
		case err != nil || item == "":
			return err
		case changed:
			w.Reason = fmt.Sprintf("changed after it was taken in as item %s; give it another name to have it taken in anew", item.Short())
		default:
			w.Taken, w.Barred, w.Reason = true, false, fmt.Sprintf("was taken in as item %s%s", item.Short(), stays)
		}
	}
	if w.Taken {
		p.left--
	}
	return nil
}
