package target

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"bagpipe/layout"

	"github.com/minio/minio-go/v7"
)

// Remove removes all that stands of an item on a target: its bags and their revisions, what
// was set aside of them, what a dead put left, and its folders of plain files. It is
// idempotent; a crash leaves some of it, and the next call goes on. Of a store that keeps
// versions all are removed. Errors: *Down, also of bytes that the store does not let go yet.
func Remove(ctx context.Context, t Target, item layout.ItemID) error {
	switch t := t.(type) {
	case *bagTarget:
		return removeOf(ctx, t.b, item, "")
	case *tarTarget:
		return removeOf(ctx, t.b, item, tarEnd)
	case *ocflTarget:
		return t.removeObject(ctx, item)
	}
	return fmt.Errorf("remove item %s: %w", item.Short(), errors.ErrUnsupported)
}

// Stands reports whether a copy of a version of an item, or a revision of it, stands on a target, sound or not; of OCFL, whose versions
// share one object, that. Errors: *Down.
func Stands(ctx context.Context, t Target, item layout.ItemID, version int) (bool, error) {
	switch t := t.(type) {
	case *bagTarget:
		return standsAs(ctx, t.b, item, version, "")
	case *tarTarget:
		return standsAs(ctx, t.b, item, version, tarEnd)
	case *ocflTarget:
		root, err := t.open(ctx)
		if err != nil {
			return false, err
		}
		object, err := root.object(objectID(item))
		if err != nil {
			return false, err
		}
		return stands(ctx, t.b, object)
	}
	return false, fmt.Errorf("look for item %s: %w", item.Short(), errors.ErrUnsupported)
}

func standsAs(ctx context.Context, b backend, item layout.ItemID, version int, ending string) (bool, error) {
	names, err := entries(ctx, b, path.Dir(Place(item, 1)))
	return slices.ContainsFunc(names, func(name string) bool {
		base, is := strings.CutSuffix(name, ending)
		id, v, _, whole := ParsePlace(base)
		return is && whole && id == item && v == version
	}), err
}

// entries are the names of the folders and files directly in a folder.
func entries(ctx context.Context, b backend, dir string) ([]string, error) {
	names, err := b.folders(ctx, dir)
	if err != nil {
		return nil, err
	}
	err = b.list(ctx, dir, false, func(name string, _ int64) error {
		names = append(names, name)
		return nil
	})
	return names, err
}

// Sweep removes what a mend that was killed set aside of a copy of an item, which a look has just found sound by
// reading it. record has the copies of all its versions there. Errors: *Down.
func Sweep(ctx context.Context, t Target, item layout.ItemID, c layout.DepositCopy, record map[int]layout.DepositCopy) error {
	at, err := layout.DecodePath(c.Place)
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case *bagTarget:
		return t.b.remove(ctx, aside(at))
	case *tarTarget:
		return t.b.remove(ctx, aside(at))
	case *ocflTarget:
		return t.sweep(ctx, at, item, c.State, record)
	}
	return nil
}

// Aside tells where bytes stand, as places do, that mends set aside of a copy of an item, of OCFL of any of its versions, and
// that are not removed yet; "": none. Errors: *Down.
func Aside(ctx context.Context, t Target, item layout.ItemID, c layout.DepositCopy) (string, error) {
	dir, err := layout.DecodePath(c.Place)
	if err != nil {
		return "", err
	}
	var b backend
	switch t := t.(type) {
	case *bagTarget:
		b, dir = t.b, aside(dir)
	case *tarTarget:
		b, dir = t.b, aside(dir)
	case *ocflTarget:
		root, err := t.open(ctx)
		if err != nil {
			return "", err
		}
		b, dir = t.b, asideIn(root, item)
	default:
		return "", nil
	}
	if is, err := stands(ctx, b, dir); err != nil || !is {
		return "", err
	}
	return layout.EncodePath(dir), nil
}

// removeOf removes what is named for an item in the folder where its bags belong.
func removeOf(ctx context.Context, b backend, item layout.ItemID, ending string) error {
	dir := path.Dir(Place(item, 1))
	names, err := entries(ctx, b, dir)
	if err != nil {
		return err
	}
	if keeper, is := unpaced(b).(versioned); is { // what was deleted is listed no more
		return keeper.purge(ctx, path.Join(dir, string(item)))
	}
	removed := false
	for _, name := range names {
		if namedFor(name, ending) != item {
			continue
		}
		if err := b.remove(ctx, path.Join(dir, name)); err != nil {
			return err
		}
		removed = true
	}
	if !removed {
		return nil
	}
	return b.settle(ctx, dir)
}

// removeObject removes an item's OCFL object, and what a dead put staged of it.
func (t *ocflTarget) removeObject(ctx context.Context, item layout.ItemID) error {
	root, err := t.open(ctx)
	if err != nil {
		return err
	}
	object, err := root.object(objectID(item))
	if err != nil {
		return err
	}
	names, err := t.b.folders(ctx, root.stage)
	if err != nil {
		return err
	}
	all := []string{path.Join(root.stage, string(item)), object}
	for _, name := range names {
		if stagedFor(name, item) || name == string(item)+asideEnd {
			all = append(all, path.Join(root.stage, name))
		}
	}
	for _, at := range all {
		if keeper, is := unpaced(t.b).(versioned); is {
			err = keeper.purge(ctx, at+"/")
		} else {
			err = t.b.remove(ctx, at)
		}
		if err != nil {
			return err
		}
	}
	return t.b.settle(ctx, "")
}

// namedFor is the item of a name in a folder of bags: of a bag, a revision, or what stands
// beside one; "" of anything else.
func namedFor(name, ending string) layout.ItemID {
	if len(name) > 0 && name[0] == '.' {
		name = name[1:]
		if part, _, is := strings.Cut(name, ".part-"); is {
			name = part
		}
		for _, end := range []string{".part", ".damaged"} {
			if base := len(name) - len(end); base > 0 && name[base:] == end {
				name = name[:base]
			}
		}
	}
	if base := len(name) - len(ending); base > 0 && name[base:] == ending {
		name = name[:base]
	}
	item, _, _, _ := ParsePlace(name)
	return item
}

// versioned is a backend that keeps what was deleted as older versions.
type versioned interface {
	// purge removes all versions of the files whose names begin so.
	purge(ctx context.Context, prefix string) error
}

// purge removes what stands below ID, ID-vN and ID.tar, with all versions and markers.
func (b *bucket) purge(ctx context.Context, prefix string) error {
	for o := range b.core.Client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.key(prefix), Recursive: true, WithVersions: true}) {
		err := o.Err
		if err == nil {
			err = b.core.Client.RemoveObject(ctx, b.name, o.Key, minio.RemoveObjectOptions{VersionID: o.VersionID})
		}
		if err != nil {
			return b.failed(err)
		}
	}
	return nil
}
