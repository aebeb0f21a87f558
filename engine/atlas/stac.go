package atlas

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"math"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"bagpipe/engine/query"
	"bagpipe/engine/recognise"
	"bagpipe/engine/stac"
	"bagpipe/layout"
)

// member is what a collection says of an item.
type member struct {
	Collection layout.Name `json:"collection"`
	Title      string      `json:"title,omitempty"`
	BBox       []float64   `json:"bbox,omitempty"`
	From       time.Time   `json:"from"`
	Until      time.Time   `json:"until"`
	Size       int64       `json:"size"` // of its document, as it was written
	Written    time.Time   `json:"written"`
}

const (
	catalogFile = "catalog.json"
	catalogID   = "bagpipe"
)

func (x *export) itemFile(id layout.ItemID, collection layout.Name) string {
	return filepath.Join(x.dir, string(collection), string(id), string(id)+".json")
}

// word writes an item's document; the zero member is of one that is not asked for.
func (x *export) word(id layout.ItemID, manifest, inventory []byte) (member, error) {
	m, err := layout.DecodeManifest(manifest)
	if err != nil {
		return member{}, err
	}
	if len(x.options.Collections) > 0 && !slices.Contains(x.options.Collections, m.Collection) {
		return member{}, nil
	}
	file := x.itemFile(id, m.Collection)
	at, err := x.filesOf(m, filepath.Dir(file))
	if err != nil {
		return member{}, err
	}
	doc, err := stac.Item(manifest, inventory, at, stac.Link{Rel: "root", Href: "../../catalog.json", Type: stac.JSON},
		stac.Link{Rel: "parent", Href: "../collection.json", Type: stac.JSON}, stac.Link{Rel: "collection", Href: "../collection.json", Type: stac.JSON})
	if err != nil {
		return member{}, err
	}
	if err := x.write(file, doc); err != nil {
		return member{}, err
	}
	info, err := os.Lstat(file)
	if err != nil {
		return member{}, err
	}
	of := member{Collection: m.Collection, Title: m.Label, Until: m.Created, Size: info.Size(), Written: info.ModTime()}
	if s, ok := query.Time(manifest); ok {
		of.From, of.Until = s.Start, s.End
	}
	if g := query.Footprint(manifest); g != nil {
		b := g.Bound()
		of.BBox = []float64{b.Left(), b.Bottom(), b.Right(), b.Top()}
	}
	return of, nil
}

// filesOf is where an item's files are, from the folder of its document. The files of a packed
// object that stays in its place are in that one. The record says whether an object in its
// place is one file: the object itself may be away, or gone.
func (x *export) filesOf(m layout.Manifest, from string) (stac.Files, error) {
	if x.options.Href != "" {
		return stac.Files{Href: stac.Below(x.options.Href, m.Item)}, nil
	}
	object, err := x.folder.ObjectOf(m)
	if err != nil {
		return stac.Files{}, err
	}
	if p := m.Source.Place; x.folder.InPlace(m) && len(p.With) > 0 {
		object = filepath.Dir(object)
	}
	rel, err := filepath.Rel(from, object)
	if err != nil {
		return stac.Files{}, err
	}
	x.leadTo(m.Source.Place)
	base := (&url.URL{Path: filepath.ToSlash(rel)}).EscapedPath()
	if packed := m.Source.Kind == recognise.KindArchive; m.Source.Place != nil && (packed || m.Source.Kind == recognise.KindFile) {
		return stac.Files{Href: func(string) string { return base }, Packed: packed}, nil
	}
	return stac.Files{Href: func(name string) string { return base + "/" + name }}, nil
}

// leadTo notes what links lead to: when it lies elsewhere, or is no more, they are others.
func (x *export) leadTo(p *layout.Place) {
	name := layout.Name("")
	if p != nil {
		name = p.Catalog
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, noted := x.roots[name]; !noted {
		x.roots[name] = x.seen(name)
	}
}

// seen is where the root of a catalog, or the workspace, lies, seen from the folder that is written; "": there is none.
func (x *export) seen(catalog layout.Name) string {
	root := x.workspace
	if catalog != "" {
		root, _ = x.folder.Roots(catalog)
	}
	if root == "" {
		return ""
	}
	rel, err := filepath.Rel(x.dir, root)
	if err != nil {
		return ""
	}
	return rel
}

// finish writes the collections and the catalog, and removes what is no more.
func (x *export) finish() error {
	byName := map[layout.Name][]layout.ItemID{}
	for id, m := range x.now {
		byName[m.Collection] = append(byName[m.Collection], id)
	}
	x.out.Items = len(x.now)
	links := []stac.Link{{Rel: "root", Href: "./catalog.json", Type: stac.JSON}}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if err := x.collection(name, byName[name]); err != nil {
			return err
		}
		links = append(links, stac.Link{Rel: "child", Href: "./" + url.PathEscape(string(name)) + "/collection.json", Type: stac.JSON, Title: string(name)})
	}
	doc, err := stac.Catalog(catalogID, "Items of a Bagpipe workspace, by collection", links)
	if err != nil {
		return err
	}
	if err := x.write(filepath.Join(x.dir, catalogFile), doc); err != nil {
		return err
	}
	return x.removeGone(byName)
}

func (x *export) collection(name layout.Name, items []layout.ItemID) error {
	slices.Sort(items)
	links := []stac.Link{{Rel: "root", Href: "../catalog.json", Type: stac.JSON}, {Rel: "parent", Href: "../catalog.json", Type: stac.JSON}}
	box, from, until := []float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}, time.Time{}, time.Time{}
	for i, id := range items {
		m := x.now[id]
		links = append(links, stac.Link{Rel: "item", Href: path.Join(string(id), string(id)+".json"), Type: stac.GeoJSON, Title: m.Title})
		if len(m.BBox) == len(box) {
			box = []float64{min(box[0], m.BBox[0]), min(box[1], m.BBox[1]), max(box[2], m.BBox[2]), max(box[3], m.BBox[3])}
		}
		if i == 0 || m.From.Before(from) {
			from = m.From
		}
		if m.Until.After(until) {
			until = m.Until
		}
	}
	if math.IsInf(box[0], 1) { // nobody knows where any of them lies
		box = []float64{-180, -90, 180, 90}
	}
	doc, err := stac.Collection(string(name), "Items of the collection "+string(name), box, from, until, links)
	if err != nil {
		return err
	}
	return x.write(filepath.Join(x.dir, string(name), "collection.json"), doc)
}

// removeGone removes the documents of items that are no more, or in another collection now.
func (x *export) removeGone(byName map[layout.Name][]layout.ItemID) error {
	gone := map[layout.Name]bool{}
	for _, m := range x.was {
		gone[m.Collection] = true
	}
	entries, err := os.ReadDir(x.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, err := layout.ParseName(e.Name())
		if err != nil || !e.IsDir() {
			continue // something else of a person's
		}
		removed, err := x.removeGoneOf(name)
		if err != nil {
			return err
		}
		x.out.Removed += removed
		gone[name] = gone[name] || removed > 0
	}
	for name := range gone {
		if dir := filepath.Join(x.dir, string(name)); byName[name] == nil {
			if err := remove(filepath.Join(dir, "collection.json"), dir); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(x.out.Problems, cmp.Compare[string])
	return nil
}

// removeGoneOf removes the documents of items that are not in a collection, as it finds them in its folder: a note that was
// lost said nothing of them.
func (x *export) removeGoneOf(name layout.Name) (removed int, err error) {
	entries, err := os.ReadDir(filepath.Join(x.dir, string(name)))
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		id, err := layout.ParseItemID(e.Name())
		if err != nil || !e.IsDir() || x.now[id].Collection == name {
			continue
		}
		file := x.itemFile(id, name)
		if _, err := os.Lstat(file); err != nil {
			continue // no document of an export is in it
		}
		if err := remove(file, filepath.Dir(file)); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// remove removes a file, and its folder where nothing else is in it.
func remove(file, dir string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Remove(dir) // something else of a person's may stand there
	return nil
}
