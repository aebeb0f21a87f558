package form

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// elements are the fifteen elements, in the order they are written.
var elements = []string{"title", "creator", "subject", "description", "publisher", "contributor", "date", "type", "format", "identifier", "source", "language", "relation", "coverage", "rights"}

// Public is the public form of an item: paths of its manifest.
type Public struct {
	Fields []string            // of the record
	DC     map[string][]string // by element of Dublin Core
}

// NewPublic is of these fields, or of those that are told where none is named; dc replaces
// what elements are made of.
func NewPublic(fields []string, dc map[string][]string) (Public, error) {
	p := Public{Fields: fields, DC: map[string][]string{"title": {"label"}, "identifier": {"identifiers.@values"}}}
	if len(fields) == 0 {
		p.Fields = []string{"item", "version", "collection", "label", "type", "identifiers", "metadata"}
	}
	for _, element := range elements {
		p.DC[element] = append(p.DC[element], "metadata."+element, "metadata."+strings.ToUpper(element[:1])+element[1:])
	}
	for element, paths := range dc {
		if !slices.Contains(elements, element) {
			return p, fmt.Errorf("%q is none of Dublin Core's elements: %s", element, strings.Join(elements, ", "))
		}
		p.DC[element] = paths
	}
	return p, nil
}

// Record is the JSON: each field under its path, and the files that can be read, by name and
// size. inventoryJSON may be nil.
func (p Public) Record(manifest, inventoryJSON []byte, names map[string]int64) ([]byte, error) {
	all := map[string]any{}
	for _, field := range p.Fields {
		if v := gjson.GetBytes(manifest, field); v.Exists() {
			all[field] = v.Value()
		}
	}
	var inventory layout.Inventory
	if inventoryJSON != nil {
		var err error
		if inventory, err = layout.DecodeInventory(inventoryJSON); err != nil {
			return nil, err
		}
	}
	shelved := map[string]any{}
	for name, size := range names {
		f := inventory.Files[layout.EncodePath(name)]
		about := map[string]any{"size": size}
		for key, text := range map[string]string{"sha512": f.SHA512, "type": f.Type, "puid": f.PUID} {
			if text != "" {
				about[key] = text
			}
		}
		shelved[layout.EncodePath(name)] = about
	}
	all["files"] = shelved
	return layout.EncodeJSON(all)
}

// DublinCore is the XML of OAI's simple Dublin Core.
func (p Public) DublinCore(item layout.ItemID, manifest []byte) []byte {
	var out bytes.Buffer
	out.WriteString(xml.Header + `<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/">` + "\n")
	for _, element := range elements {
		said := map[string]bool{}
		if element == "identifier" {
			said["bagpipe:"+string(item)] = true
		}
		for _, path := range p.DC[element] {
			for _, v := range gjson.GetBytes(manifest, path).Array() { // of one value, itself
				if text := v.String(); text != "" && !v.IsObject() {
					said[text] = true
				}
			}
		}
		for _, text := range slices.Sorted(maps.Keys(said)) {
			fmt.Fprintf(&out, "  <dc:%s>", element)
			_ = xml.EscapeText(&out, []byte(text)) // into memory; what XML cannot hold becomes U+FFFD
			fmt.Fprintf(&out, "</dc:%s>\n", element)
		}
	}
	out.WriteString("</oai_dc:dc>\n")
	return out.Bytes()
}
