package target

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"bagpipe/layout"
)

// fanDepth is how deep the bags of items lie.
var fanDepth = strings.Count(Place(layout.ItemID(strings.Repeat("0", layout.ItemIDLen)), 1), "/")

// fan calls each for every folder that bags lie in, in order.
func fan(ctx context.Context, b backend, dir string, depth int, each func(dir string) error) error {
	if depth == 0 {
		return each(dir)
	}
	names, err := b.folders(ctx, dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if len(name) != 1 {
			continue
		}
		if err := fan(ctx, b, path.Join(dir, name), depth-1, each); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// tellPlaces calls each for the names that are places in dir.
func tellPlaces(dir, ending, kind string, names []string, each func(Found) error) error {
	var all []Found
	for _, name := range names {
		base, is := strings.CutSuffix(name, ending)
		if !is {
			continue
		}
		item, version, revision, is := ParsePlace(base)
		at := path.Join(dir, name)
		if !is || at != Revision(Place(item, version), revision)+ending {
			continue
		}
		all = append(all, Found{item, version, revision, layout.DepositCopy{Place: layout.EncodePath(at), Layout: kind}})
	}
	slices.SortFunc(all, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Item, b.Item), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Revision, b.Revision))
	})
	for _, f := range all {
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

// Walk tells of the bags, by the names of their folders.
func (t *bagTarget) Walk(ctx context.Context, each func(Found) error) error {
	return fan(ctx, t.b, "", fanDepth, func(dir string) error {
		names, err := t.b.folders(ctx, dir)
		if err != nil {
			return err
		}
		return tellPlaces(dir, "", LayoutBag, names, each)
	})
}

// Walk tells of the tars, by their names.
func (t *tarTarget) Walk(ctx context.Context, each func(Found) error) error {
	return fan(ctx, t.b, "", fanDepth, func(dir string) error {
		var names []string
		err := t.b.list(ctx, dir, false, func(name string, _ int64) error {
			names = append(names, name)
			return nil
		})
		if err != nil {
			return err
		}
		folders, err := t.b.folders(ctx, dir)
		if err != nil {
			return err
		}
		at := map[string]string{} // of those with a name of their own, by their folders'
		for _, f := range folders {
			named, err := t.named(ctx, path.Join(dir, f))
			if err != nil {
				return err
			}
			if len(named) > 0 {
				names, at[f+tarEnd] = append(names, f+tarEnd), path.Join(dir, f, named[0])
			}
		}
		return tellPlaces(dir, tarEnd, LayoutTar, names, func(f Found) error {
			if own := at[path.Base(Revision(Place(f.Item, f.Version), f.Revision))+tarEnd]; own != "" {
				f.Copy.Place = layout.EncodePath(own)
			}
			return each(f)
		})
	})
}

// Walk tells of the versions of the objects that are items', by their inventories.
func (t *ocflTarget) Walk(ctx context.Context, each func(Found) error) error {
	root, err := t.open(ctx)
	if err != nil {
		return err
	}
	return t.walk(ctx, root.dir, each)
}

func (t *ocflTarget) walk(ctx context.Context, dir string, each func(Found) error) error {
	object := false
	err := t.b.list(ctx, dir, false, func(name string, _ int64) error {
		object = object || name == objectMark
		return nil
	})
	if err != nil {
		return err
	}
	if object {
		return t.walkVersions(ctx, dir, each)
	}
	names, err := t.b.folders(ctx, dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if name == "extensions" {
			continue
		}
		if err := t.walk(ctx, path.Join(dir, name), each); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (t *ocflTarget) walkVersions(ctx context.Context, at string, each func(Found) error) error {
	have, _, err := readInventory(ctx, t.b, at)
	var wrong *Damage
	if errors.As(err, &wrong) || errors.Is(err, fs.ErrNotExist) {
		return nil // whose object it is cannot be told
	}
	if err != nil {
		return err
	}
	id, ours := strings.CutPrefix(have.ID, objectID(""))
	item, err := layout.ParseItemID(id)
	if err != nil || !ours {
		return nil
	}
	revisions := map[int]int{}
	for n := 1; ; n++ {
		name := "v" + strconv.Itoa(n)
		v := have.Versions[name]
		if v == nil {
			return nil
		}
		of := v.of()
		if of == 0 {
			continue
		}
		revisions[of]++
		if err := each(Found{item, of, revisions[of], layout.DepositCopy{Place: layout.EncodePath(at), Layout: LayoutOCFL, State: name}}); err != nil {
			return err
		}
	}
}
