package export

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Object writes an item's object, verified, to a place where nothing is.
type Object func(ctx context.Context, id layout.ItemID, to string) error

// packageEnding is what a package is called until all of it is there.
const packageEnding = ".part"

// Package writes a dissemination package of an item, dir/ITEM, and gives its name. A crash leaves
// dir/ITEM.part, which the next call removes.
func (x *Exports) Package(ctx context.Context, id layout.ItemID, dir string, object Object) (name string, err error) {
	name = filepath.Join(dir, string(id))
	if _, err := os.Lstat(name); err == nil {
		return "", fault.New(fault.Refused, layout.EncodePath(name)+" is there already")
	}
	made := name + packageEnding
	if err := disk.RemoveTree(made); err != nil {
		return "", err
	}
	if err := disk.MkdirAll(made, 0o777); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, disk.RemoveTree(made))
		}
	}()
	if err := object(ctx, id, filepath.Join(made, layout.ContentDir)); err != nil {
		return "", err
	}
	v, err := x.ledger.Store.Tip()
	if err != nil {
		return "", err
	}
	r, err := x.read(v, id)
	if err != nil {
		return "", err
	}
	if r.inventory != nil {
		for file := range r.inventory.Files {
			path, err := layout.DecodePath(file)
			if err == nil {
				_, err = os.Lstat(filepath.Join(made, layout.ContentDir, filepath.FromSlash(path)))
			}
			if err != nil {
				return "", fmt.Errorf("item %s changed meanwhile: %w", id.Short(), err)
			}
		}
	}
	var mets bytes.Buffer
	if err := x.Write(&mets, METS, "", []layout.ItemID{id}); err != nil {
		return "", err
	}
	crate, err := r.crate()
	if err != nil {
		return "", err
	}
	for file, data := range map[string][]byte{"mets.xml": mets.Bytes(), crateFile: crate} {
		if err := os.WriteFile(filepath.Join(made, file), data, 0o666); err != nil {
			return "", err
		}
	}
	if err := disk.SyncTree(made); err != nil {
		return "", err
	}
	return name, disk.Rename(made, name)
}

const crateFile = "ro-crate-metadata.json"

type entity map[string]any

func refer(id string) entity { return entity{"@id": id} }

// crate describes a package as RO-Crate 1.2 has it.
func (r *record) crate() ([]byte, error) {
	m := r.Manifest
	root := entity{"@id": "./", "@type": "Dataset", "identifier": r.id(), "name": cmp.Or(m.Label, string(m.Item)),
		"description":   cmp.Or(r.text("description", "abstract", "dc:description"), "Version "+fmt.Sprint(r.version())+" of an item of the collection "+string(m.Collection)),
		"datePublished": stamp(r.published()), "dateCreated": stamp(m.Created), "version": fmt.Sprint(r.version())}
	graph := []entity{{"@id": crateFile, "@type": "CreativeWork", "conformsTo": refer("https://w3id.org/ro/crate/1.2"), "about": refer("./")}, root}
	licence := r.text("license", "licence", "rights", "dc:rights")
	about := entity{"@id": "#license", "@type": "CreativeWork", "name": cmp.Or(licence, "Not stated"), "description": "As the item's metadata say"}
	if licence == "" {
		about["description"] = "The item's metadata do not say under which terms it may be used"
	}
	graph = append(graph, about)
	root["license"] = refer("#license")
	parts := []entity{refer("mets.xml")}
	graph = append(graph, entity{"@id": "mets.xml", "@type": "File", "name": "METS with PREMIS", "encodingFormat": "application/xml"})
	if r.inventory != nil {
		formats := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(r.inventory.Files)) {
			f := r.inventory.Files[name]
			id := layout.ContentDir + "/" + reference(name)
			parts = append(parts, refer(id))
			encoding := []any{cmp.Or(f.Type, "application/octet-stream")}
			if f.PUID != "" {
				at := "https://www.nationalarchives.gov.uk/PRONOM/" + f.PUID
				formats[at] = cmp.Or(f.Format, f.PUID)
				encoding = append(encoding, refer(at))
			}
			graph = append(graph, entity{"@id": id, "@type": "File", "name": name, "contentSize": fmt.Sprint(f.Size), "encodingFormat": encoding, "sha256": f.SHA256})
		}
		for _, at := range slices.Sorted(maps.Keys(formats)) {
			graph = append(graph, entity{"@id": at, "@type": "WebPage", "name": formats[at]})
		}
	}
	root["hasPart"] = parts
	return layout.EncodeJSON(entity{"@context": "https://w3id.org/ro/crate/1.2/context", "@graph": graph})
}

// published is when the present version was deposited first, or else when the item was made.
func (r *record) published() time.Time {
	at := time.Time{}
	for _, c := range r.copies() {
		if c.version == r.version() && !c.Written.IsZero() && (at.IsZero() || c.Written.Before(at)) {
			at = c.Written
		}
	}
	if at.IsZero() {
		return r.Manifest.Created
	}
	return at
}

// text is the first of some members of the metadata that is a text.
func (r *record) text(keys ...string) string {
	business, _ := r.Manifest.Metadata["business"].(map[string]any)
	for _, key := range keys {
		for _, in := range []map[string]any{r.Manifest.Metadata, business} {
			if text, ok := in[key].(string); ok && text != "" {
				return text
			}
		}
	}
	return ""
}
