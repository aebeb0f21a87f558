package steps

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/layout"
)

// childDoc is what result.json says of a child.
type childDoc struct {
	Label      string         `json:"label"`
	Collection string         `json:"collection"`
	Workflow   string         `json:"workflow"`
	Lane       string         `json:"lane"`
	Metadata   map[string]any `json:"metadata"`
}

// maxChildLabel is what a label of an item may have, in bytes.
const maxChildLabel = 500

func (d childDoc) child() (c Child, err error) {
	for key, f := range map[string]struct {
		from string
		to   *layout.Name
	}{"collection": {d.Collection, &c.Collection}, "workflow": {d.Workflow, &c.Workflow}, "lane": {d.Lane, &c.Lane}} {
		if f.from == "" {
			continue
		}
		if *f.to, err = layout.ParseName(f.from); err != nil {
			return c, fmt.Errorf("%s: %w", key, err)
		}
	}
	if len(d.Label) > maxChildLabel || strings.ContainsAny(d.Label, "\n\r") {
		return c, fmt.Errorf("label: want one line of at most %d bytes", maxChildLabel)
	}
	c.Label, c.Metadata = d.Label, d.Metadata
	return c, nil
}

// commandChildren finds what a program left in the folder children, and what its
// result says of them.
func commandChildren(c *Call, said map[string]childDoc) ([]Child, error) {
	entries, err := childrenLeft(filepath.Join(c.Scratch, layout.ChildrenDir))
	if err != nil {
		return nil, fmt.Errorf("children: %w", err)
	}
	children := make([]Child, 0, len(entries))
	named := 0
	for _, entry := range entries {
		name := entry.Name()
		from := layout.ChildrenDir + "/" + name
		if err := plainTree(c.Scratch, from); err != nil {
			if _, gone := os.Lstat(filepath.Join(c.Scratch, from)); c.Children != nil && errors.Is(gone, fs.ErrNotExist) {
				continue // it was told of while the program ran, and is being taken
			}
			return nil, fmt.Errorf("children: %w", err)
		}
		doc, there := said[layout.EncodePath(name)]
		child, err := doc.child()
		if err != nil {
			return nil, fmt.Errorf("children: %s: %w", layout.EncodePath(name), err)
		}
		if there {
			named++
		}
		child.From, child.Name = layout.RelPath(from), name
		children = append(children, child)
	}
	if named < len(said) {
		return nil, fmt.Errorf("children: %s is not in the folder %s of the scratch folder", firstMissing(said, children), layout.ChildrenDir)
	}
	return children, nil
}

// ParseChild reads what a program tells of one child while it runs: name, the name of a file or
// folder in the folder children, percent-encoded, and what result.json may say of it.
func ParseChild(c *Call, line []byte) (child Child, err error) {
	var doc struct {
		Name string `json:"name"`
		childDoc
	}
	if err := decodeStrictly(line, &doc); err != nil {
		return child, fmt.Errorf("expected a JSON object with name: %w: %.80q", err, line)
	}
	name, err := layout.DecodePath(doc.Name)
	if err != nil || name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return child, fmt.Errorf("name %q: expected the name of a file or folder in %s", doc.Name, layout.ChildrenDir)
	}
	return childIn(c, layout.ChildrenDir, name, doc.childDoc)
}

// SaidOf names the file, beside a child in the folder of those that are ready, that holds what
// result.json may say of it.
func SaidOf(name string) string { return "." + name + ".json" }

// ReadyChild reads what a program renamed to name in the folder of the children that are ready.
func ReadyChild(c *Call, name string) (child Child, err error) {
	data, err := readSmall(filepath.Join(c.Scratch, layout.ReadyDir, SaidOf(name)))
	if errors.Is(err, fs.ErrNotExist) {
		data, err = []byte("{}"), nil
	}
	var doc childDoc
	if err == nil {
		err = decodeStrictly(data, &doc)
	}
	if err != nil {
		return child, fmt.Errorf("%s: %w", layout.EncodePath(SaidOf(name)), err)
	}
	return childIn(c, layout.ReadyDir, name, doc)
}

// childIn is the child that is whole in a folder of the scratch folder.
func childIn(c *Call, dir, name string, said childDoc) (child Child, err error) {
	if child, err = said.child(); err != nil {
		return child, fmt.Errorf("%s: %w", layout.EncodePath(name), err)
	}
	if _, err := childrenLeft(filepath.Join(c.Scratch, dir)); err != nil {
		return child, err
	}
	from := dir + "/" + name
	if err := plainTree(c.Scratch, from); err != nil {
		return child, err
	}
	child.From, child.Name = layout.RelPath(from), name
	return child, nil
}

func decodeStrictly(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// childrenLeft lists the folder of children, if it is there, and one: a link would
// lead to what is not the program's to give away.
func childrenLeft(dir string) ([]os.DirEntry, error) {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, errors.New("expected a folder")
	}
	return os.ReadDir(dir)
}

// plainTree wants files and folders only. Unlike outputs, children have the names
// they were given elsewhere, in any bytes.
func plainTree(scratch, name string) error {
	return filepath.WalkDir(filepath.Join(scratch, name), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(scratch, p)
		if err != nil {
			return err
		}
		return plainOutput(rel, d.Type())
	})
}

// firstMissing is the first name in order that has no child.
func firstMissing(said map[string]childDoc, children []Child) (first string) {
	there := make(map[string]bool, len(children))
	for i := range children {
		there[layout.EncodePath(children[i].Name)] = true
	}
	for name := range said {
		if !there[name] && (first == "" || name < first) {
			first = name
		}
	}
	return fmt.Sprintf("%q", first)
}
