package inbox

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	"bagpipe/engine/fault"
	"bagpipe/layout"

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

// access is what a survey shows of whose a drop is.
type access struct {
	owner   *unix.Stat_t // of the drop itself
	foreign bool         // an entry belongs to another account
	fixed   string       // a folder of another account whose entries may not be removed, relative
}

// own notes whose an entry is.
func (a *access) own(rel string, st *unix.Stat_t) {
	if rel == "." {
		top := *st
		a.owner = &top
	}
	a.foreign = a.foreign || int(st.Uid) != os.Geteuid()
}

// enter notes whether the entries of a folder may be removed. This account may change
// the permissions of its own folders.
func (a *access) enter(dir *os.File, path, rel string) {
	var st unix.Stat_t
	if !a.foreign || a.fixed != "" || unix.Fstat(int(dir.Fd()), &st) != nil || int(st.Uid) == os.Geteuid() {
		return
	}
	if unix.Access(path, unix.W_OK|unix.X_OK) != nil || st.Mode&unix.S_ISVTX != 0 && os.Geteuid() != 0 {
		a.fixed = rel
	}
}

// join adds whose another file of a set is.
func (a *access) join(one access) {
	if a.owner == nil || one.foreign {
		a.owner = one.owner
	}
	a.foreign = a.foreign || one.foreign
}

// mayMove tells why entries of a folder of drops may not be renamed; empty: they may,
// where it is sticky by their owners alone.
func mayMove(dir string) (why string, sticky bool) {
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Sprintf("%s may not be written to by %s", layout.EncodePath(filepath.Base(dir)), accountName(os.Geteuid())), false
	}
	var st unix.Stat_t
	err := unix.Stat(dir, &st)
	return "", err == nil && st.Mode&unix.S_ISVTX != 0 && int(st.Uid) != os.Geteuid()
}

// stays tells why a drop may not leave its place, and why its original may not be
// removed; empty: nothing forbids it.
func (p *place) stays(d Drop, s survey) (unmoved, unremoved string) {
	switch st := s.access.owner; {
	case st == nil:
		return "", ""
	case p.fixed != "":
		unmoved = p.fixed
	case int(st.Uid) == os.Geteuid() || os.Geteuid() == 0:
	case p.sticky:
		unmoved = "its folder lets only its owner move it (sticky bit)"
	case s.kind == Folder && !d.IsSet() && unix.Access(d.Path, unix.W_OK) != nil:
		unmoved = fmt.Sprintf("%s may not write to it, which moving a folder needs", accountName(os.Geteuid()))
	}
	if unremoved = unmoved; unremoved == "" && s.access.fixed != "" {
		unremoved = fmt.Sprintf("%s may not remove what is in %s", accountName(os.Geteuid()), layout.EncodePath(s.access.fixed))
	}
	return unmoved, unremoved
}

// barFor has a drop wait for the owner of path, who can give this account the access.
func (w *Waiting) barFor(path string, s survey, why, access string) {
	owner := "another account"
	if s.access.owner != nil {
		owner = accountName(int(s.access.owner.Uid))
	}
	w.Reason = fmt.Sprintf("belongs to %s; %s", owner, why)
	w.Remedies = []fault.Remedy{permit(path, s.access.owner, access)}
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
	return fault.Remedy{Verb: fault.PermitAccount, Name: path, Access: access, Account: accountName(os.Geteuid())}
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

// accountName is an account's name, or its number where it has none.
func accountName(uid int) string {
	text := strconv.Itoa(uid)
	if u, err := user.LookupId(text); err == nil {
		return u.Username
	}
	return text
}

// bar has a settled drop wait for a person where nothing can be done with it here, and
// one that was taken in before though its original stays; of any other it notes how it
// is to be taken.
func (p *place) bar(ctx context.Context, d *Drop, s survey) (bool, error) {
	unmoved, unremoved := p.stays(*d, s)
	bad := s.bad
	if bad == nil && s.empty() {
		bad = &BadError{RuleEmpty, ".", "is empty"}
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
		d.Stays, d.foreign = unremoved, s.access.foreign
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
