package settings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"bagpipe/engine/audience"
	"bagpipe/layout"
)

// doubting looks below feeds/ for names that nothing has, addresses of several people, and templates that
// cannot be parsed. They are no mistakes: the file of a person may come with a later push, and of templates the
// next in line serves.
type doubting struct {
	book        *audience.Book
	isNone      func(collection string) bool
	collections []string
	all         []error
}

// Doubts gives what is allowed in the settings that CheckFolder checks, and hardly meant; each a
// *layout.FileError.
func Doubts(ctx context.Context, root string) ([]error, error) {
	v, err := treeAt(ctx, root)
	if err != nil {
		return nil, err
	}
	paths, err := Paths(v)
	if err != nil {
		return nil, err
	}
	k := newChecker(root, nil)
	d := &doubting{book: audience.New(), isNone: func(string) bool { return false }}
	sources := map[string]*layout.YAML{}
	for _, p := range paths {
		if !strings.HasPrefix(p, audience.Dir+"/") && p != layout.SettingsFile {
			continue
		}
		data, err := v.ReadFile(p)
		if err != nil {
			return nil, err
		}
		if p == layout.SettingsFile {
			d.know(k, v, p, data)
			continue
		}
		if d.book.Add(p, data) == nil { // mistakes are told by themselves
			if sources[p], err = layout.ParseYAML(p, data); err != nil {
				return nil, err
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(sources)) {
		name := strings.TrimSuffix(path.Base(p), ".yaml")
		switch path.Dir(p) {
		case audience.PeopleDir:
			d.person(sources[p], name)
		case audience.CollectionsDir:
			d.collection(sources[p], "$", name)
			c := d.book.Collections[name]
			d.people(sources[p], "$.members", c.Members)
			d.controls(sources[p], c.OptOut)
		}
	}
	if w, is := v.(overlay); is {
		if _, err := w.over.ReadFile(layout.SignersFile); err == nil {
			d.all = append(d.all, &layout.FileError{File: layout.SignersFile, Text: "lies in the workspace, where nothing reads it: it is edited in a clone, and pushed"})
		}
	}
	err = d.templates(v, audience.Dir+"/templates")
	return d.all, err
}

// templates doubts those of feeds that cannot be parsed.
func (d *doubting) templates(v tree, dir string) error {
	entries, err := v.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		p := path.Join(dir, e.Name)
		switch {
		case e.IsDir:
			err = d.templates(v, p)
		case strings.HasSuffix(p, ".tmpl"):
			var data []byte
			if data, err = v.ReadFile(p); err != nil {
				break
			}
			if _, wrong := template.New(p).Parse(string(data)); wrong != nil {
				text := strings.TrimPrefix(wrong.Error(), "template: "+p+":")
				d.all = append(d.all, &layout.FileError{File: p, Text: "cannot be used, and the next in line serves: line " + text})
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// know takes in which collections there are. A clone has no inbox, whose folders say so where
// collections are open.
func (d *doubting) know(k *checker, v tree, p string, data []byte) {
	s, err := ParseSettings(p, data)
	if err != nil {
		return
	}
	d.workflows(s, p, data)
	_, err = v.List(layout.InboxDir)
	if s.Inbox.Collections == openCollections && errors.Is(err, fs.ErrNotExist) {
		return
	}
	d.collections = append(slices.Collect(maps.Keys(s.Collections)), defaultCollection)
	d.isNone = func(name string) bool { return !k.isCollection(s, name) }
}

// workflows doubts collections whose drops are rejected unless a rule names a workflow for them.
func (d *doubting) workflows(s *Settings, p string, data []byte) {
	y, err := layout.ParseYAML(p, data)
	if err != nil {
		return
	}
	names := map[string]string{defaultCollection: "$"}
	for name := range s.Collections {
		names[name] = "$.collections." + name
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if s.Collection(layout.Name(name)).Workflow == "" {
			d.doubt(y, names[name], "collection "+name+" names no workflow, nor do defaults: a drop for which no rule names one is rejected", "")
		}
	}
}

func (d *doubting) person(y *layout.YAML, name string) {
	p := d.book.People[name]
	for i, address := range p.Addresses {
		if other := d.book.Named(address); other != name {
			d.doubt(y, fmt.Sprintf("$.addresses[%d]", i), fmt.Sprintf("%s is an address of %s, too, and acts of whoever uses it count as theirs", address, other), "")
		}
	}
	d.people(y, "$.follows", p.Follows)
	d.controls(y, p.OptOut)
}

func (d *doubting) people(y *layout.YAML, at string, names []string) {
	for i, name := range names {
		d.oneOf(y, fmt.Sprintf("%s[%d]", at, i), name)
	}
}

// oneOf doubts a name that no file of a person has; whoever has none is known by an address.
func (d *doubting) oneOf(y *layout.YAML, at, name string) {
	if strings.Contains(name, "@") || d.book.People[name] != nil {
		return
	}
	text := fmt.Sprintf("no person %q in %s/", name, audience.PeopleDir)
	d.doubt(y, at, text, layout.Nearest(name, maps.Keys(d.book.People)))
}

func (d *doubting) controls(y *layout.YAML, all []audience.Control) {
	for i, c := range all {
		at := fmt.Sprintf("$.optOut[%d]", i)
		if c.Collection != "" {
			d.collection(y, at+".collection", c.Collection)
		}
		if c.Poster != "" {
			d.oneOf(y, at+".poster", c.Poster)
		}
	}
}

func (d *doubting) collection(y *layout.YAML, at, name string) {
	if d.isNone(name) {
		d.doubt(y, at, fmt.Sprintf("no collection %q", name), layout.Nearest(name, slices.Values(d.collections)))
	}
}

func (d *doubting) doubt(y *layout.YAML, at, text, near string) {
	if near != "" {
		text += fmt.Sprintf("; did you mean %s?", near)
	}
	d.all = append(d.all, y.Errorf(at, "%s", text))
}
