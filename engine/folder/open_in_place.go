package folder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"bagpipe/engine/fault"
	"bagpipe/layout"
)

// InPlace reports whether what an item is stands in its catalog: no step made a content of its own.
func (fo *Folders) InPlace(m layout.Manifest) bool {
	if m.Source.Place == nil {
		return false
	}
	_, err := os.Lstat(filepath.Join(fo.path(layout.ItemDir(m.Item)), layout.ContentDir))
	return err != nil
}

// OpenInPlace opens a file of an object in place by the path that its inventory has; no link leads
// out of the object. It is a fault, and says why, where the object is away, gone or has changed
// since it was catalogued, and where it is packed. The caller closes the file.
func (fo *Folders) OpenInPlace(ctx context.Context, m layout.Manifest, name string) (*os.File, error) {
	path, _, err := fo.PlaceOf(m)
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
	object, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if object.IsDir() {
		return openBelow(path, name)
	}
	if m.Source.Kind != "file" {
		return nil, fault.New(fault.Refused, Packed(m)+": its files are not sent one by one")
	}
	return openBelow(filepath.Dir(path), filepath.Base(path)) // whatever its inventory calls it
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

func openBelow(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(filepath.FromSlash(name))
}
