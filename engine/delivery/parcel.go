package delivery

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/engine/stac"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps/target"
)

// parcel is what goes to a target: names, and what they hold.
type parcel struct {
	Key     string        `json:"key"` // ITEM-vVERSION-TARGET
	Item    layout.ItemID `json:"item"`
	Version int           `json:"version"`
	Target  layout.Name   `json:"target"`
	Digest  string        `json:"digest"`
	Format  string        `json:"format"`

	files   []part // by name
	unknown bool   // its files are; whether anything of the item stands there can be asked
}

// part is one file of a parcel: bytes, or a file on disk.
type part struct {
	name   string
	data   []byte
	file   string // "": data
	size   int64
	sha256 string // "": not known beforehand
}

func keyOf(id layout.ItemID, version int, to layout.Name) string {
	return fmt.Sprintf("%s-v%d-%s", id, version, to)
}

// formatOf is the format of what goes to a target.
func formatOf(c target.Config) string {
	if c.Layout != "" || c.Kind == target.KindS3 || c.Kind == target.KindSFTP {
		return target.FormatBag
	}
	return cmp.Or(c.Format, target.FormatFiles)
}

// pack makes the parcel of an item for a target. content is the folder where its files stand, or the one file that it is;
// template the file of the target's.
func pack(o *object, inventory []byte, content string, to layout.Name, g goal, template string) (parcel, error) {
	p := parcel{Key: keyOf(o.id, o.version(), to), Item: o.id, Version: o.version(), Target: to, Digest: o.digest(to, g), Format: formatOf(g.Config)}
	if p.Format == target.FormatText {
		return p, p.addText(o, inventory, template)
	}
	if inventory == nil {
		return p, fmt.Errorf("the item has no inventory yet: its content is not known")
	}
	files, err := layout.DecodeInventory(inventory)
	if err != nil {
		return p, err
	}
	info, err := os.Lstat(content)
	single := err == nil && info.Mode().IsRegular() // whatever its name is by now
	for encoded, f := range files.Files {
		name, err := layout.DecodePath(encoded)
		if err != nil || !filepath.IsLocal(name) {
			return p, fmt.Errorf("the inventory names %q, which is no file of the item", encoded)
		}
		at := content
		if !single {
			at = filepath.Join(content, name)
		}
		p.files = append(p.files, part{name: name, file: at, size: f.Size, sha256: f.SHA256})
	}
	slices.SortFunc(p.files, func(a, b part) int { return cmp.Compare(a.name, b.name) })
	switch p.Format {
	case target.FormatBag:
		p.toBag(o)
	case target.FormatSTAC:
		item, err := stac.Item(o.manifest, inventory, filesOf(o, g.Config))
		if err != nil {
			return p, err
		}
		p.add("item.json", item)
	}
	return p, nil
}

// filesOf is where the files of a delivered item are had: beside its document, but of an address, which gets the document alone,
// where the target says; else nowhere.
func filesOf(o *object, c target.Config) stac.Files {
	switch {
	case c.Href != "":
		return stac.Files{Href: stac.Below(c.Href, o.id)}
	case c.Kind == target.KindURL:
		return stac.Files{}
	}
	return stac.Files{Href: func(name string) string { return "./" + name }}
}

func (p *parcel) add(name string, data []byte) {
	sum := sha256.Sum256(data)
	p.files = append(p.files, part{name: name, data: data, size: int64(len(data)), sha256: hex.EncodeToString(sum[:])})
}

// addText makes the one file that a template makes of the manifest.
func (p *parcel) addText(o *object, inventory []byte, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the template: %w", err)
	}
	var values, files map[string]any
	if err := json.Unmarshal(o.manifest, &values); err != nil {
		return err
	}
	if inventory != nil {
		if err := json.Unmarshal(inventory, &files); err != nil {
			return err
		}
	}
	values["files"], values["key"] = files["files"], p.Key
	out, err := fill(file, string(text), values)
	var lacks *lacking
	if errors.As(err, &lacks) {
		return lacks
	}
	if err != nil {
		return fmt.Errorf("template: %w", err)
	}
	p.add(strings.TrimSuffix(filepath.Base(file), ".tmpl"), out)
	return nil
}

// toBag makes a bag of the files: data/ and the tag files, whose digests the inventory has.
func (p *parcel) toBag(o *object) {
	var manifest, tags strings.Builder
	var size int64
	for i, f := range p.files {
		p.files[i].name = "data/" + f.name
		fmt.Fprintf(&manifest, "%s  %s\n", f.sha256, bagName.Replace(p.files[i].name))
		size += f.size
	}
	payload := len(p.files)
	p.add("bagit.txt", []byte("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"))
	p.add("bag-info.txt", fmt.Appendf(nil, "External-Identifier: %s\nPayload-Oxum: %d.%d\n", o.id, size, payload))
	p.add("manifest-sha256.txt", []byte(manifest.String()))
	for _, f := range p.files[payload:] {
		fmt.Fprintf(&tags, "%s  %s\n", f.sha256, f.name)
	}
	p.add("tagmanifest-sha256.txt", []byte(tags.String()))
}

// bagName is how RFC 8493 writes names in manifests.
var bagName = strings.NewReplacer("%", "%25", "\n", "%0A", "\r", "%0D")

// open gives a part's bytes.
func (f *part) open() (io.ReadCloser, error) {
	if f.file == "" {
		return io.NopCloser(bytes.NewReader(f.data)), nil
	}
	return disk.Open(f.file)
}

// copyTo writes a part, and refuses what is not as the inventory has it.
func (f *part) copyTo(w io.Writer) error {
	in, err := f.open()
	if err != nil {
		return err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, h), in)
	if err = errors.Join(err, in.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); n != f.size || f.sha256 != "" && got != f.sha256 {
		return &changed{f.name}
	}
	return nil
}

// changed is a file of the item that is not what its inventory says.
type changed struct{ name string }

func (c *changed) Error() string {
	return fmt.Sprintf("%s is not as the inventory has it; nothing of it is delivered", layout.EncodePath(c.name))
}

// write writes a parcel into an empty folder, durably, and reads it back.
func (p *parcel) write(ctx context.Context, dir string) error {
	for i := range p.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := &p.files[i]
		if err := f.writeBelow(dir); err != nil {
			return fmt.Errorf("write %s: %w", layout.EncodePath(f.name), err)
		}
	}
	if err := disk.SyncTree(dir); err != nil {
		return err
	}
	for i := range p.files {
		f := p.files[i]
		back := part{name: f.name, file: filepath.Join(dir, f.name), size: f.size, sha256: f.sha256}
		if err := back.copyTo(io.Discard); err != nil {
			return fmt.Errorf("read back what was written: %w", err)
		}
	}
	return nil
}

func (f *part) writeBelow(dir string) error {
	to := filepath.Join(dir, f.name)
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(f.copyTo(out), out.Close())
}

// holds reports whether a folder has the parcel's files, by names and sizes.
func (p *parcel) holds(dir string) bool {
	for _, f := range p.files {
		info, err := os.Lstat(filepath.Join(dir, f.name))
		if err != nil || !info.Mode().IsRegular() || info.Size() != f.size {
			return false
		}
	}
	return true
}

// single is the one file that goes over the wire by itself: a text, or the STAC item alone.
func (p *parcel) single() *part {
	for i := range p.files {
		if p.Format == target.FormatText || p.Format == target.FormatSTAC && p.files[i].name == "item.json" {
			return &p.files[i]
		}
	}
	return nil
}

// typeOf is the media type of what is sent.
func (f *part) typeOf() string {
	switch path.Ext(f.name) {
	case ".json":
		return "application/json"
	case ".xml":
		return "application/xml"
	case ".html":
		return "text/html; charset=utf-8"
	}
	return "text/plain; charset=utf-8"
}
