package folder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"bagpipe/engine/fault"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// InPlace reports whether what an item is stands in its catalog: no step made a content of its own.
func (fo *Folders) InPlace(m layout.Manifest) bool {
	if m.Source.Place == nil {
		return false
	}
	_, err := os.Lstat(filepath.Join(fo.path(layout.ItemDir(m.Item)), layout.ContentDir))
	return err != nil
}

// OpenInPlace opens a file of an object in place by the path that its inventory has; no link below
// the catalog's root is followed. It is a fault, and says why, where the object is away, gone or has changed
// since it was catalogued, and where it is packed. The caller closes the file.
func (fo *Folders) OpenInPlace(ctx context.Context, m layout.Manifest, name string) (*os.File, error) {
	at, _, err := fo.rootOf(m)
	if err != nil {
		return nil, err
	}
	why, err := fo.PlaceChanged(ctx, m)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return nil, fo.NotAsCatalogued(m, why)
	}
	if with, err := m.Source.Place.Beside(); err != nil || len(with) > 0 {
		if name != filepath.Base(at.rel) && !slices.Contains(with, name) {
			err = errors.Join(err, fault.New(fault.NotFound, fmt.Sprintf("%s is no file of the object %s in catalog %s", layout.EncodePath(name), m.Source.Place.Path, m.Source.Place.Catalog)))
		}
		if err != nil {
			return nil, err
		}
		return disk.OpenBeneath(at.root, filepath.Join(filepath.Dir(at.rel), name), os.O_RDONLY)
	}
	object, err := disk.OpenBeneath(at.root, at.rel, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	info, err := object.Stat()
	if err == nil && !info.IsDir() && m.Source.Kind == "file" {
		return object, nil // whatever its inventory calls it
	}
	if err = errors.Join(err, object.Close()); err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fault.New(fault.Refused, Packed(m)+": its files are not sent one by one")
	}
	if !filepath.IsLocal(name) {
		return nil, fault.New(fault.Refused, fmt.Sprintf("%q is no file of the object", name))
	}
	return disk.OpenBeneath(at.root, filepath.Join(at.rel, name), os.O_RDONLY)
}

// Packed says that an object in place is packed.
func Packed(m layout.Manifest) string {
	return fmt.Sprintf("%s in catalog %s is packed, and is unpacked for its steps alone", m.Source.Place.Path, m.Source.Place.Catalog)
}

// NotAsCatalogued words what PlaceChanged found of an object of which nothing is given out then.
func (fo *Folders) NotAsCatalogued(m layout.Manifest, why string) error {
	if why != NotThere {
		return fault.New(fault.Refused, fmt.Sprintf("%s in catalog %s %s", m.Source.Place.Path, m.Source.Place.Catalog, why))
	}
	if gone := fo.PlaceGone(m); gone != "" {
		return fault.New(fault.NotFound, gone)
	}
	return fault.New(fault.Busy, fmt.Sprintf("%s in catalog %s %s%s", m.Source.Place.Path, m.Source.Place.Catalog, why, fo.WhyNotThere(m)))
}

// WhyNotThere says after NotThere of an object that is not gone why that is so: its catalog is away.
func (fo *Folders) WhyNotThere(m layout.Manifest) string {
	if why := fo.Away(m.Source.Place.Catalog); why != "" {
		return ", as the catalog is away: " + why
	}
	return "; a moment ago its catalog was away"
}
