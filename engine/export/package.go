package export

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
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
	r, err := x.read(v, id, nil)
	if err == nil {
		err = r.load()
	}
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
	if err := create(filepath.Join(made, crateFile), r.writeCrate); err != nil {
		return "", err
	}
	err = create(filepath.Join(made, "mets.xml"), func(w io.Writer) error { return x.Write(ctx, w, METS, "", []layout.ItemID{id}) })
	if err != nil {
		return "", err
	}
	if err := durable(made, len(r.fileNames())); err != nil {
		return "", err
	}
	return name, disk.Rename(made, name)
}

// Folder writes a document of each item, ITEM and the format's ending, into a folder, which is made.
// A crash leaves it with some; what stands in it under such a name is whole.
func (x *Exports) Folder(ctx context.Context, dir string, f Format, table string, items []layout.ItemID) error {
	if err := os.Mkdir(dir, 0o777); errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Refused, layout.EncodePath(dir)+" is there already; name a folder that is not, which is made")
	} else if err != nil {
		return err
	}
	var large sync.Mutex // whoever has an item of very many files in memory
	err := x.each(ctx, f, table, items, func(read func(layout.ItemID) (*record, error), some []layout.ItemID) error {
		return sideBySide(ctx, some, func(id layout.ItemID) error {
			r, err := read(id)
			if err != nil {
				return err
			}
			if len(r.listed) > largeInventory {
				large.Lock()
				defer large.Unlock()
			}
			name := filepath.Join(dir, string(id)+f.Ending())
			if err := create(name+packageEnding, func(w io.Writer) error { return writeOne(w, f, table, r) }); err != nil {
				return fmt.Errorf("export item %s: %w", id.Short(), err)
			}
			return os.Rename(name+packageEnding, name)
		})
	})
	if err != nil {
		return err
	}
	return durable(dir, len(items))
}

// mostOfOne is as long as the document of an item of one file and some steps, in bytes.
const mostOfOne = 16 << 10

// writeOne writes a document of one item.
func writeOne(w io.Writer, f Format, table string, r *record) error {
	out := bufio.NewWriterSize(w, mostOfOne)
	doc, err := newDocument(out, f, table)
	if err == nil {
		err = doc.item(r)
	}
	if err == nil {
		err = doc.end()
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// largeInventory is of some 10,000 files, in bytes. A document of more is written while no other such is.
const largeInventory = 4 << 20

// manyFiles are written out sooner together, with what else the file system has to write, than one by one.
const manyFiles = 32

// durable syncs all in a folder of so many files.
func durable(dir string, files int) error {
	if files > manyFiles {
		return disk.SyncFS(dir)
	}
	return disk.SyncTree(dir)
}

// create writes a file as it comes: a document of 100,000 files is not held in memory.
func create(name string, write func(io.Writer) error) error {
	f, err := disk.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

const crateFile = "ro-crate-metadata.json"

type entity map[string]any

// reference to an entity; a root has one for each file.
type crateRef struct {
	ID string `json:"@id"`
}

// writeCrate describes a package as RO-Crate 1.2 has it, an entity a line.
func (r *record) writeCrate(to io.Writer) error {
	out := bufio.NewWriter(to)
	fmt.Fprint(out, `{"@context": "https://w3id.org/ro/crate/1.2/context", "@graph": [`)
	between := "\n"
	for _, each := range []func(func(entity) error) error{r.crateRoot, r.crateFiles} {
		err := each(func(e entity) error {
			data, err := json.Marshal(e)
			fmt.Fprintf(out, "%s%s", between, data) // an error of the writer stays until it is flushed
			between = ",\n"
			return err
		})
		if err != nil {
			return err
		}
	}
	fmt.Fprint(out, "\n]}\n")
	return out.Flush()
}

// crateRoot tells of the description, the package, its terms and its METS.
func (r *record) crateRoot(tell func(entity) error) error {
	m := r.Manifest
	parts := []crateRef{{"mets.xml"}}
	for _, name := range r.fileNames() {
		parts = append(parts, crateRef{layout.ContentDir + "/" + reference(name)})
	}
	licence := r.text("license", "licence", "rights", "dc:rights")
	about := entity{"@id": "#license", "@type": "CreativeWork", "name": cmp.Or(licence, "Not stated"), "description": "As the item's metadata say"}
	if licence == "" {
		about["description"] = "The item's metadata do not say under which terms it may be used"
	}
	for _, e := range []entity{
		{"@id": crateFile, "@type": "CreativeWork", "conformsTo": crateRef{"https://w3id.org/ro/crate/1.2"}, "about": crateRef{"./"}},
		{"@id": "./", "@type": "Dataset", "identifier": r.id(), "name": cmp.Or(m.Label, string(m.Item)),
			"description":   cmp.Or(r.text("description", "abstract", "dc:description"), "Version "+fmt.Sprint(r.version())+" of an item of the collection "+string(m.Collection)),
			"datePublished": stamp(r.published()), "dateCreated": stamp(m.Created), "version": fmt.Sprint(r.version()), "license": crateRef{"#license"}, "hasPart": parts},
		about,
		{"@id": "mets.xml", "@type": "File", "name": "METS with PREMIS", "encodingFormat": "application/xml"},
	} {
		if err := tell(e); err != nil {
			return err
		}
	}
	return nil
}

// crateFiles tells of the files, and of their formats.
func (r *record) crateFiles(tell func(entity) error) error {
	formats := map[string]string{}
	for _, name := range r.fileNames() {
		f := r.inventory.Files[name]
		encoding := []any{cmp.Or(f.Type, "application/octet-stream")}
		if f.PUID != "" {
			at := "https://www.nationalarchives.gov.uk/PRONOM/" + f.PUID
			formats[at] = cmp.Or(f.Format, f.PUID)
			encoding = append(encoding, crateRef{at})
		}
		err := tell(entity{"@id": layout.ContentDir + "/" + reference(name), "@type": "File", "name": name, "contentSize": fmt.Sprint(f.Size), "encodingFormat": encoding, "sha256": f.SHA256})
		if err != nil {
			return err
		}
	}
	for _, at := range slices.Sorted(maps.Keys(formats)) {
		if err := tell(entity{"@id": at, "@type": "WebPage", "name": formats[at]}); err != nil {
			return err
		}
	}
	return nil
}

// fileNames are those of the inventory, in order; none where there is none.
func (r *record) fileNames() []string {
	if r.inventory == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.inventory.Files))
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
