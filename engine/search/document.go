package search

import (
	"crypto/sha256"
	"encoding/binary"
	"path"
	"slices"
	"strconv"
	"strings"

	"bagpipe/engine/ledger"
	"bagpipe/engine/query"
	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// document is what of an item is searched.
type document struct {
	id         layout.ItemID
	collection layout.Name
	label      string
	fields     []field // the label is the first
	files      []string
	terms      []term
	reach
	digest int64
	alike  string // its name and size; "": they are not known yet
}

// field is a text of an item and where it stands.
type field struct{ name, text string }

// term is what items have in common.
type term struct{ facet, value string }

// The facets of a search.
const (
	facetCollection = "collection"
	facetType       = "type"
	facetTag        = "tag"
	facetYear       = "year"
	facetFormat     = "format"
)

// read makes out what is searched; nil of records that cannot be read.
func read(id layout.ItemID, r ledger.Records) *document {
	if r.Manifest == nil {
		return nil
	}
	m, err := manifestOf(r.Manifest)
	if err != nil || m.Item != id {
		return nil
	}
	d := &document{id: id, collection: m.Collection, label: ledger.Printable(m.Label), digest: digestOf(r)}
	d.add("label", m.Label)
	d.add("source", shownName(m.Source.Name))
	if p := m.Source.Place; p != nil && strings.Contains(p.Path, "/") {
		d.add("folder", shownName(path.Dir(p.Path)))
	}
	d.add("type", m.Type)
	d.values("identifiers", gjson.GetBytes(r.Manifest, "identifiers"))
	d.values("metadata", gjson.GetBytes(r.Manifest, "metadata"))
	d.common(facetCollection, string(m.Collection))
	d.common(facetType, m.Type)
	d.bounds, d.located = query.Bounds(r.Manifest)
	if d.span, d.timed = query.Time(r.Manifest); d.timed {
		d.common(facetYear, strconv.Itoa(d.span.Start.Year()))
	}
	for _, tag := range query.Tags(r.Manifest) {
		d.common(facetTag, tag)
	}
	d.inventory(m.Source.Name, r.Inventory)
	return d
}

// manifestOf reads a manifest, without its metadata where the head of the manifest can be read by itself: to decode the
// metadata took a third of the time in which an item is read.
func manifestOf(data []byte) (layout.Manifest, error) {
	m, ok := layout.ManifestHead(data)
	if !ok {
		return layout.DecodeManifest(data)
	}
	source := gjson.GetBytes(data, "source")
	m.Source.Name = source.Get("name").Str
	if path := source.Get("place.path").Str; path != "" {
		m.Source.Place = &layout.Place{Path: path}
	}
	return m, nil
}

func digestOf(r ledger.Records) int64 {
	h := sha256.New()
	h.Write(binary.AppendUvarint(nil, uint64(len(r.Manifest))))
	h.Write(r.Manifest)
	h.Write(r.Inventory)
	return int64(binary.LittleEndian.Uint64(h.Sum(nil)))
}

func (d *document) add(name, text string) {
	if text != "" || name == "label" {
		d.fields = append(d.fields, field{name, text})
	}
}

// common adds a term, once.
func (d *document) common(facet, value string) {
	if t := (term{facet, value}); value != "" && !slices.Contains(d.terms, t) {
		d.terms = append(d.terms, t)
	}
}

// notes are where the robots describe and tag keep word of what they wrote: no texts of their own.
var notes = []string{"metadata.described", "metadata.tagged"}

// values adds the texts and numbers below a path. A footprint is no text.
func (d *document) values(at string, v gjson.Result) {
	switch {
	case slices.Contains(notes, at):
	case strings.HasPrefix(at, "metadata.space") && (v.Type == gjson.Number || strings.HasSuffix(at, ".boundary")):
	case v.IsObject():
		v.ForEach(func(key, value gjson.Result) bool {
			d.values(at+"."+key.Str, value)
			return true
		})
	case v.IsArray():
		v.ForEach(func(_, value gjson.Result) bool {
			d.values(at, value)
			return true
		})
	case v.Type == gjson.String || v.Type == gjson.Number:
		d.add(at, v.String())
	}
}

// hasWords reports whether each text at a path of the manifest is among the fields.
func hasWords(path string) bool {
	if strings.ContainsAny(path, `*?#@|!\`) { // of gjson: it may lead anywhere
		return false
	}
	return path == "label" || strings.HasPrefix(path, "identifiers.") || strings.HasPrefix(path, "metadata.") && !strings.HasPrefix(path, "metadata.space") &&
		!slices.ContainsFunc(notes, func(note string) bool { return strings.HasPrefix(path, note) })
}

// inventory adds the files of an item, and what it has in common with items of one name, as they were dropped or lie in a
// catalog, and one size.
func (d *document) inventory(name string, data []byte) {
	if data == nil {
		return
	}
	size := int64(0)
	gjson.GetBytes(data, "files").ForEach(func(path, about gjson.Result) bool {
		d.files = append(d.files, path.Str)
		d.common(facetFormat, about.Get("puid").Str)
		size += about.Get("size").Int()
		return true
	})
	slices.Sort(d.files)
	d.alike = name + "\x00" + strconv.FormatInt(size, 10)
}

// shownName is a name as it was dropped; what is no UTF-8 stays encoded.
func shownName(encoded string) string {
	if name, err := layout.DecodePath(encoded); err == nil {
		return name
	}
	return encoded
}
