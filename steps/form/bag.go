package form

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"bagpipe/bags"
	"bagpipe/bags/tagfile"

	"github.com/tidwall/gjson"
)

// Bag says what the bags of a collection say beside what all do. A value is a path of
// the manifest, as in metadata.title, whose values are written one a line; or, behind =, the
// text itself.
type Bag struct {
	Info map[string]string            `yaml:"info"` // bag-info.txt, by label; in the place of what else has that label
	Tags map[string]map[string]string `yaml:"tags"` // other tag files, by name and label
	Name string                       `yaml:"name"` // of its archives, with paths in braces: example.edu.{label}
}

// Check says which key is wrong, and how.
func (m *Bag) Check() (key string, err error) {
	for _, label := range slices.Sorted(maps.Keys(m.Info)) {
		if err := checkLabel(label, m.Info[label]); err != nil {
			return "info", err
		}
		if tagfile.SameLabel(label, "External-Identifier") {
			return "info", fmt.Errorf("External-Identifier is the item's identifier; copies are known by it")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Tags)) {
		top, _, deep := strings.Cut(name, "/")
		if name == "" || path.Clean(name) != name || path.IsAbs(name) || top == ".." || !strings.HasSuffix(name, ".txt") || tagfile.IsSpecified(name) ||
			deep && slices.Contains([]string{"data", "bagpipe", "received", "outside"}, top) {
			return "tags", fmt.Errorf("%q: expected the name of a tag file of the profile, such as aptrust-info.txt", name)
		}
		for _, label := range slices.Sorted(maps.Keys(m.Tags[name])) {
			if err := checkLabel(label, m.Tags[name][label]); err != nil {
				return "tags", fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if m.Name != "" && (!strings.Contains(m.Name, "{") || strings.Count(m.Name, "{") != strings.Count(m.Name, "}") || safeName(inBraces.ReplaceAllString(m.Name, "x")) != inBraces.ReplaceAllString(m.Name, "x")) {
		return "name", fmt.Errorf("%q: expected letters, digits, dots, - and _, with a path of the manifest in braces, as in example.edu.{label}", m.Name)
	}
	return "", nil
}

var (
	inBraces = regexp.MustCompile(`\{[^{}]+\}`)
	unsafe   = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
)

// mostName keeps an archive's name, with what is put around it, below what file systems take.
const mostName = 200

// safeName makes a file's name of a text that every store takes.
func safeName(text string) string {
	text = strings.TrimLeft(unsafe.ReplaceAllString(text, "_"), ".-")
	return text[:min(len(text), mostName)]
}

// NameOf is what the archive of an item's bag is called, and the folder in it; "": its identifier.
func (m *Bag) NameOf(manifest []byte) string {
	if m == nil || m.Name == "" {
		return ""
	}
	return safeName(inBraces.ReplaceAllStringFunc(m.Name, func(p string) string {
		return gjson.GetBytes(manifest, p[1:len(p)-1]).String()
	}))
}

func checkLabel(label, value string) error {
	if err := (tagfile.Field{Label: label, Value: "x"}).Check(); err != nil {
		return err
	}
	if value == "" || value == "=" {
		return fmt.Errorf("%s: expected a path of the manifest, as in metadata.title, or =TEXT", label)
	}
	return nil
}

// fieldsOf gives what labels say of an item, by label.
func fieldsOf(labels map[string]string, manifest []byte) (fields []tagfile.Field) {
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		text, constant := strings.CutPrefix(labels[label], "=")
		if constant {
			fields = append(fields, tagfile.Field{Label: label, Value: text})
			continue
		}
		for _, v := range gjson.GetBytes(manifest, text).Array() { // of one value, itself
			if f := (tagfile.Field{Label: label, Value: strings.TrimSpace(v.String())}); f.Value != "" && !v.IsObject() && f.Check() == nil {
				fields = append(fields, f)
			}
		}
	}
	return fields
}

// InfoOf gives the labels of bag-info.txt that the mapping has for an item.
func (m *Bag) InfoOf(manifest []byte) []tagfile.Field { return fieldsOf(m.Info, manifest) }

// TagFilesOf gives the other tag files.
func (m *Bag) TagFilesOf(manifest []byte) (all []bags.TagFile, err error) {
	for _, name := range slices.Sorted(maps.Keys(m.Tags)) {
		var text bytes.Buffer
		if err := tagfile.WriteInfo(&text, fieldsOf(m.Tags[name], manifest)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, bags.TagFile{Path: name, Data: text.Bytes()})
	}
	return all, nil
}
