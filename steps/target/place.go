package target

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"bagpipe/layout"
)

// Place is where the first bag of an item's version belongs, below a target's root.
func Place(item layout.ItemID, version int) string {
	fan := strings.TrimPrefix(layout.ItemDir(item), layout.ItemsDir+"/")
	if version > 1 {
		fan += "-v" + strconv.Itoa(version)
	}
	return fan
}

// Revision is the place of revision n of the bag whose first has the place first.
func Revision(first string, n int) string {
	if n == 1 {
		return first
	}
	return first + "-r" + strconv.Itoa(n)
}

// ParsePlace reads the last part of a place, ID[-vN][-rN]; is reports whether it is one.
func ParsePlace(base string) (item layout.ItemID, version, revision int, is bool) {
	id, rest, more := strings.Cut(base, "-")
	item, err := layout.ParseItemID(id)
	if err != nil {
		return "", 0, 0, false
	}
	version, revision = 1, 1
	for part := ""; more; {
		part, rest, more = strings.Cut(rest, "-")
		if part == "" {
			return "", 0, 0, false
		}
		n, err := strconv.Atoi(part[1:])
		switch {
		case err != nil || n < 2:
			return "", 0, 0, false
		case part[0] == 'v' && version == 1 && revision == 1:
			version = n
		case part[0] == 'r' && revision == 1:
			revision = n
		default:
			return "", 0, 0, false
		}
	}
	return item, version, revision, path.Base(Revision(Place(item, version), revision)) == base
}

// staged is the name that a copy is made under.
func staged(at string) string { return path.Dir(at) + "/." + path.Base(at) + ".part" }

// errTaken is a put that another engine came before.
var errTaken = errors.New("another engine puts the item there at the same time")

// staging is where something of a place is made before it comes there: a folder, with what a put of this target makes in it, own,
// and what others make, or left as they died, which is its.
type staging struct {
	b        backend
	dir, own string
	is       func(name string) bool
}

// parts is where the copy of a place is made.
func parts(b backend, at, token string) staging {
	base := path.Base(staged(at))
	return staging{b, path.Dir(at), base + "-" + token, func(name string) bool { return name == base || strings.HasPrefix(name, base+"-") }}
}

// at is the path of what this target makes.
func (s staging) at() string { return path.Join(s.dir, s.own) }

func (s staging) names(ctx context.Context) ([]string, error) {
	names, err := s.b.folders(ctx, s.dir)
	if err == nil {
		err = s.b.list(ctx, s.dir, false, func(name string, _ int64) error {
			names = append(names, name)
			return nil
		})
	}
	return slices.DeleteFunc(names, func(name string) bool { return !s.is(name) }), err
}

// claim takes what a dead put left: of several that do one gets it. An engine that was only thought dead
// finds that it lost.
func (s staging) claim(ctx context.Context) error {
	names, err := s.names(ctx)
	mine := slices.Contains(names, s.own)
	for _, name := range names {
		switch {
		case err != nil:
			return err
		case name == s.own:
		case mine:
			err = s.b.remove(ctx, path.Join(s.dir, name))
		default:
			err = s.b.rename(ctx, path.Join(s.dir, name), s.at())
			if mine = err == nil; errors.Is(err, fs.ErrNotExist) { // another took it
				err = nil
			}
		}
	}
	return err
}

// clear removes what is made, also of a put that died or is to find that it lost.
func (s staging) clear(ctx context.Context) error {
	if !s.b.traits().renames {
		return nil
	}
	names, err := s.names(ctx)
	for _, name := range names {
		if err == nil {
			err = s.b.remove(ctx, path.Join(s.dir, name))
		}
	}
	return err
}

// lost gives a put's error its meaning: what this target made is gone where another took it.
func (s staging) lost(ctx context.Context, err error) error {
	if !s.b.traits().renames || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errTaken) {
		return err
	}
	if !errors.Is(err, errTaken) {
		err = fmt.Errorf("%w: %v", errTaken, err) // says which of its files is gone
	}
	return errors.Join(&Down{err}, s.b.remove(ctx, s.at()))
}

// aside is the name that a damaged copy has until a sound one stands in its place.
func aside(at string) string { return path.Dir(at) + "/." + path.Base(at) + ".damaged" }

// mended removes what was set aside, once made has made a sound copy.
func mended(ctx context.Context, b backend, at string, made func() (layout.DepositCopy, error)) (layout.DepositCopy, error) {
	c, err := made()
	if err != nil {
		return c, err
	}
	return c, errors.Join(parts(b, at, "").clear(ctx), b.remove(ctx, aside(at)))
}

// remade makes a copy in the place of a damaged one; where another engine has done so at the same time, it is that
// one, which there reads.
func remade(made, there func() (layout.DepositCopy, error)) (layout.DepositCopy, error) {
	c, err := made()
	if errors.Is(err, fs.ErrExist) {
		c, err = there()
		if wrong := (*Damage)(nil); errors.As(err, &wrong) || errors.Is(err, fs.ErrNotExist) {
			err = &Down{errTaken}
		}
	}
	return c, err
}

// setAside makes room at a damaged copy's place, to which it gives another name. Where nothing stands, what a dead Replace set
// aside stays; where a copy does, that is the newer of two broken ones.
func setAside(ctx context.Context, b backend, at, to string) error {
	if there, err := stands(ctx, b, at); err != nil || !there {
		return err
	}
	err := b.rename(ctx, at, to)
	if errors.Is(err, fs.ErrExist) {
		if err = b.remove(ctx, to); err == nil {
			err = b.rename(ctx, at, to)
		}
	}
	return err
}

// comeIn gives a file of a mend its name, from which what stood there was set aside just now. Where another engine's mend has
// ended meanwhile, and swept what this one made, that was the sound file: it gets its name back.
func comeIn(ctx context.Context, b backend, made, at, to string) error {
	err := b.rename(ctx, made, at)
	switch {
	case errors.Is(err, fs.ErrExist): // another engine's came in first
		return errors.Join(&Down{errTaken}, b.remove(ctx, made))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := b.rename(ctx, to, at); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return &Down{errTaken}
}

// stands reports whether there is a file, a folder or what is neither.
func stands(ctx context.Context, b backend, at string) (bool, error) {
	r, err := b.open(ctx, at, 0)
	if err == nil {
		return true, r.Close()
	}
	var wrong *Damage
	if errors.As(err, &wrong) { // no regular file, or one that cannot be read
		return true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	err = b.list(ctx, at, true, func(string, int64) error { return errEnough })
	if errors.Is(err, errEnough) {
		return true, nil
	}
	return false, err
}
