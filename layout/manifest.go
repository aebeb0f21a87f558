package layout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const manifestSchema = 1

// ManifestConflicts is the member of a manifest that keeps, by key, all values that histories
// gave it apart, until a person chose one.
const ManifestConflicts = "conflicts"

// Conflicts gives those keys of a manifest, with their values, and in order; nil: there are none, or it cannot be read.
func Conflicts(manifest []byte) (keys []string, values map[string][]json.RawMessage) {
	if !bytes.Contains(manifest, []byte(`"`+ManifestConflicts+`"`)) { // of nearly all
		return nil, nil
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(manifest, &m) != nil || json.Unmarshal(m[ManifestConflicts], &values) != nil || len(values) == 0 {
		return nil, nil
	}
	return slices.Sorted(maps.Keys(values)), values
}

// RecordKeys are what paths into an item's records begin with: the keys of a manifest, and
// execution, below which the execution metadata is.
func RecordKeys() []string {
	keys := []string{"execution", ManifestConflicts}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Manifest]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			keys = append(keys, name)
		}
	}
	slices.Sort(keys)
	return keys
}

// CheckRecordPath refuses a path that begins with none of the RecordKeys: it leads into no
// record of any item.
func CheckRecordPath(path string) error {
	keys := RecordKeys()
	if first, _, _ := strings.Cut(path, "."); !slices.Contains(keys, first) {
		return fmt.Errorf("path %s: the records of items have no %s; they have %s", path, first, strings.Join(keys, ", "))
	}
	return nil
}

// Manifest is manifest.json: what an item is. It changes only when the content
// or its description does.
type Manifest struct {
	Schema     int               `json:"schema"`
	Item       ItemID            `json:"item"`
	Version    int               `json:"version"`
	Collection Name              `json:"collection"`
	Label      string            `json:"label"`
	Lane       Name              `json:"lane"`
	Batch      string            `json:"batch,omitempty"`
	Created    time.Time         `json:"created"`
	Since      time.Time         `json:"since,omitzero"` // when this version was registered; zero of the first
	Parent     *Parent           `json:"parent,omitempty"`
	Source     Source            `json:"source"`
	Metadata   map[string]any    `json:"metadata"`
	Inventory  *InventorySummary `json:"inventory,omitempty"`
	Recognised

	Remains
}

// Remains are what an item leaves where its bytes are not, or not any more.
type Remains struct {
	Originals map[string]Original `json:"originals,omitempty"` // that stay in the inbox though they were taken in, by path
	Disposed  *Disposed           `json:"disposed,omitempty"`  // it is a tombstone; see Tombstone
}

// Recognised is what rules said of the drop, and what checks found.
type Recognised struct {
	Type        string            `json:"type,omitempty"`        // of object
	Identifiers map[string]string `json:"identifiers,omitempty"` // people know it by, by their kind: barcode, doi
	Recognition *Recognition      `json:"recognition,omitempty"`
	Quality     *QualitySummary   `json:"quality,omitempty"` // nil: nothing was checked
}

// Recognition says how the drop came to be taken for what it is. Rules are named
// FILE/RULE; what was tried is bounded by those who write it.
type Recognition struct {
	Verdict string            `json:"verdict"` // yes or maybe
	Rule    string            `json:"rule"`
	Tried   map[string]string `json:"tried,omitempty"` // what each rule said: "no: the name does not match"
	More    int               `json:"more,omitempty"`  // rules that said no and are not listed
}

// Identified reports whether text is one of the identifiers that people know the item
// by, with or without its kind: 35112, barcode:35112.
func (m *Manifest) Identified(text string) bool {
	for kind, value := range m.Identifiers {
		if text == value || text == kind+":"+value {
			return true
		}
	}
	return false
}

// Source says what was dropped. Digest is the drop's own: of a file its
// SHA-256; of a folder as engine/inbox defines it.
type Source struct {
	Name   string    `json:"name"` // percent-encoded (EncodePath)
	Kind   string    `json:"kind"` // folder, archive, bag or file; none: of an item registered without content
	Files  int       `json:"files"`
	Bytes  int64     `json:"bytes"`
	Digest string    `json:"digest"`
	Taken  time.Time `json:"taken"`
	By     string    `json:"by"`
	Rule   string    `json:"rule,omitempty"`

	DuplicateOf ItemID `json:"duplicateOf,omitempty"` // the first item made of the same content
	Drop        ItemID `json:"drop,omitempty"`        // of a later version: what the drop was called in intake/
	Place       *Place `json:"place,omitempty"`       // where the object stays, in a catalog; nil: it was taken in
}

// Bare is the kind of source of an item that was registered without content.
const Bare = "none"

// Bare reports whether nothing was dropped yet.
func (s *Source) Bare() bool { return s.Kind == Bare }

// Place is where an object stays that was not taken in. Digest, Files and Bytes of its Source
// are those of the object while it has the Stamp.
type Place struct {
	Catalog Name   `json:"catalog"`
	Path    string `json:"path"`  // below the catalog's root, percent-encoded
	Stamp   string `json:"stamp"` // sha256:HEX of names, types, sizes, inodes and times

	// With are the names of the files beside the one at Path that are the object together with it, percent-encoded,
	// in order; none: what is at Path is the object.
	With []string `json:"with,omitempty"`
}

// Equal reports whether both say the same.
func (p *Place) Equal(o *Place) bool {
	return p.Catalog == o.Catalog && p.Path == o.Path && p.Stamp == o.Stamp && slices.Equal(p.With, o.With)
}

// Beside gives the names of the files that With lists; each is a name alone.
func (p *Place) Beside() (names []string, err error) {
	for _, coded := range p.With {
		name, err := DecodePath(coded)
		if err == nil && (name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00")) {
			err = fmt.Errorf("%q is no name of a file", coded)
		}
		if err != nil {
			return nil, fmt.Errorf("the place in %s: %w", ManifestJSON, err)
		}
		names = append(names, name)
	}
	return names, nil
}

// Original is what the original of a drop is known by that was copied and may not be
// removed. The same State at the same Path is the same original.
type Original struct {
	File  string `json:"file"`  // which file or folder: inode and, where known, time of birth
	Path  string `json:"path"`  // percent-encoded, below the workspace where it lies in it
	State string `json:"state"` // sha256:HEX of names, types, sizes and times
}

// InventorySummary is what the manifest says of inventory.json.
type InventorySummary struct {
	Digest string `json:"digest"` // sha256:HEX of the file inventory.json
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// DecodeManifest reads manifest.json; a newer schema is a *SchemaError.
func DecodeManifest(data []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("read %s: %w", ManifestJSON, err)
	}
	if m.Schema > manifestSchema {
		return m, &SchemaError{File: ManifestJSON, Schema: m.Schema, Known: manifestSchema}
	}
	if _, err := ParseItemID(string(m.Item)); err != nil {
		return m, fmt.Errorf("read %s: %w", ManifestJSON, err)
	}
	if err := m.Parent.check(); err != nil {
		return m, fmt.Errorf("read %s: parent: %w", ManifestJSON, err)
	}
	return m, nil
}

// ManifestHead reads of manifest.json what says which item it is and where it
// belongs, and leaves the rest out: a tenth of the work. ok is false when it is not
// as Encode writes it; then DecodeManifest tells what it is.
func ManifestHead(data []byte) (m Manifest, ok bool) {
	s := Scanner{b: data}
	text := func() string {
		b := s.Text()
		if !utf8.Valid(b) {
			s.Refuse()
		}
		return string(b)
	}
	s.Open()
	for k := s.Key(nil); k != nil; k = s.Key(k) {
		switch string(k) {
		case "schema":
			m.Schema = s.Int()
		case "item":
			m.Item = ItemID(s.Text())
		case "version":
			m.Version = s.Int()
		case "collection":
			m.Collection = Name(text())
		case "label":
			m.Label = text()
		case "lane":
			m.Lane = Name(text())
		case "batch":
			m.Batch = text()
		case "created":
			m.Created = s.Time()
		case "since":
			m.Since = s.Time()
		case "type":
			m.Type = text()
		case "identifiers":
			m.Identifiers = map[string]string{}
			texts(&s, func(k, v string) { m.Identifiers[k] = v })
		case "recognition":
			skipRecognition(&s)
		case "metadata", "originals", "quality", "disposed":
			if !s.IsObject() {
				s.Refuse()
			}
			s.Skip()
		case "source":
			m.Source.Kind = skipPlain(&s)
		case "inventory":
			skipPlain(&s)
		default:
			s.Refuse() // may be another spelling of a known key
		}
	}
	if _, err := ParseItemID(string(m.Item)); err != nil || m.Schema > manifestSchema {
		return m, false
	}
	return m, s.Done()
}

// skipPlain passes over source and inventory, whose fields must be of their types, and gives
// the kind of source.
func skipPlain(s *Scanner) (kind string) {
	s.Open()
	for k := s.Key(nil); k != nil; k = s.Key(k) {
		switch string(k) {
		case "files", "bytes":
			s.Int()
		case "taken":
			s.Time()
		case "kind":
			if b := s.Text(); string(b) == Bare {
				kind = Bare // others are not asked for
			}
		case "name", "digest", "by", "rule", "duplicateOf", "drop":
			s.Text()
		case "place":
			texts(s, nil)
		default:
			s.Refuse()
		}
	}
	return kind
}

// texts reads an object whose members are all texts, which must be UTF-8 to be kept.
func texts(s *Scanner, keep func(k, v string)) {
	s.Open()
	for k := s.Key(nil); k != nil; k = s.Key(k) {
		name, text := string(k), s.Text()
		if keep == nil {
			continue
		}
		if !utf8.ValidString(name) || !utf8.Valid(text) {
			s.Refuse()
		}
		keep(name, string(text))
	}
}

// skipRecognition passes over recognition, whose fields must be of their types.
func skipRecognition(s *Scanner) {
	s.Open()
	for k := s.Key(nil); k != nil; k = s.Key(k) {
		switch string(k) {
		case "verdict", "rule":
			s.Text()
		case "tried":
			texts(s, nil)
		case "more":
			s.Int()
		default:
			s.Refuse()
		}
	}
}

// Encode writes m over old (nil for a new one); fields m does not know survive.
func (m Manifest) Encode(old []byte) ([]byte, error) {
	m.Schema = manifestSchema
	if m.Metadata == nil {
		m.Metadata = map[string]any{}
	}
	if at := OutOfRange(m.Metadata); at != "" { // a record that nobody could read again
		return nil, fmt.Errorf("write %s of %s: metadata.%s: the number is out of range", ManifestJSON, m.Item, at)
	}
	if len(old) == 0 {
		if out, ok := appendManifest(make([]byte, 0, 1<<10), &m); ok { // most are shorter
			return out, nil
		}
	}
	old, err := forgetWith(old, &m)
	if err != nil {
		return nil, fmt.Errorf("read %s of %s: %w", ManifestJSON, m.Item, err)
	}
	out, err := rewriteBut(old, m, "metadata", "quality", "type") // m has all of these: what it has not was taken away
	if err != nil {
		return nil, fmt.Errorf("write %s of %s: %w", ManifestJSON, m.Item, err)
	}
	return out, nil
}

// forgetWith gives what an object in place was, where it is no more made of files side by side, without their names: they are no
// field that m does not know.
func forgetWith(old []byte, m *Manifest) ([]byte, error) {
	if p := m.Source.Place; p == nil || len(p.With) > 0 || !bytes.Contains(old, []byte(`"with"`)) {
		return old, nil
	}
	var fields map[string]any
	if err := decodeNumbers(old, &fields); err != nil {
		return nil, err
	}
	if source, is := fields["source"].(map[string]any); is {
		if place, is := source["place"].(map[string]any); is {
			delete(place, "with")
		}
	}
	return encodeDocument(fields)
}

// EncodeNext writes m as the next version over old: fields that neither knows survive,
// and nothing of what old says of its source, its inventory and what it was recognised
// as.
func (m Manifest) EncodeNext(old []byte) ([]byte, error) {
	var fields map[string]any
	if err := decodeNumbers(old, &fields); err != nil {
		return nil, fmt.Errorf("read %s of %s: %w", ManifestJSON, m.Item, err)
	}
	for _, key := range []string{"identifiers", "inventory", "metadata", "quality", "recognition", "since", "source", "type"} {
		delete(fields, key)
	}
	left, err := encodeDocument(fields)
	if err != nil {
		return nil, err
	}
	return m.Encode(left)
}

// EncodeTombstone writes a tombstone over old: nothing of what old says of the content survives.
func (m Manifest) EncodeTombstone(old []byte) ([]byte, error) {
	var fields map[string]any
	if err := decodeNumbers(old, &fields); err != nil {
		return nil, fmt.Errorf("read %s of %s: %w", ManifestJSON, m.Item, err)
	}
	for _, key := range []string{"inventory", "metadata", "quality", "disposed"} {
		delete(fields, key)
	}
	left, err := encodeDocument(fields)
	if err != nil {
		return nil, err
	}
	return m.Encode(left)
}
