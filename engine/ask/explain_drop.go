package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"bagpipe/engine/inbox"
	"bagpipe/engine/intake/recognition"
	"bagpipe/engine/recognise"
	"bagpipe/engine/settings"
	"bagpipe/layout"
)

// Recognised is what would become of a path.
type Recognised struct {
	Path     string   `json:"path"`
	Together []string `json:"together,omitempty"` // the files that it would be taken in with, and the path is one of
	recognise.Outcome
	Held string `json:"held,omitempty"` // why it would not be taken in yet

	Objects []ExplainedObject `json:"objects,omitempty"` // that lie side by side in it
	Left    []string          `json:"left,omitempty"`    // files beside them that belong to none
	Lane    string            `json:"lane,omitempty"`
	Becomes string            `json:"becomes,omitempty"` // where an item has one of its identifiers: a version of it, or nothing
}

// Recognise tells what the rules make of a path, which it only reads, were it dropped
// into inbox/COLLECTION. More are rule files to be asked as if they were in rules/,
// in the place of those of the same name.
func (dr *Drops) Recognise(ctx context.Context, path string, collection layout.Name, more []*settings.RuleFile) (Recognised, error) {
	x := Recognised{Path: layout.EncodePath(path)}
	if err := dr.settings.CheckCollection(collection); err != nil {
		return x, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return x, err
	}
	if _, err := os.Lstat(abs); errors.Is(err, fs.ErrNotExist) {
		return x, fmt.Errorf("%s is not there", layout.EncodePath(path))
	}
	c := *dr.settings.Current()
	c.Rules = slices.Concat(slices.DeleteFunc(slices.Clone(c.Rules), func(f *settings.RuleFile) bool {
		return slices.ContainsFunc(more, func(m *settings.RuleFile) bool { return m.Name == f.Name })
	}), more)
	c.MakeBook()
	name := filepath.Base(abs)
	asked := dr.recognition.Candidate(abs, name, collection, abs)
	x.Held = c.Book.Waits(asked)
	set, err := dr.looseSet(ctx, c.Book, abs, collection)
	if err != nil {
		return x, err
	}
	if set != nil {
		name, asked.Name, asked.Path, asked.Files = set.Name, set.Name, filepath.Dir(abs), set.Files
		x.Together = encodePaths(set.Files)
	}
	o, err := c.Book.Recognise(ctx, asked, dr.recognition.Asking(c.Settings))
	if recognition.IsRuleFile(err) { // no rule was asked
		x.Outcome = recognise.Outcome{Verdict: recognise.Unknown, Tried: []recognise.Trial{}}
		return x, nil
	}
	if err != nil {
		return x, err
	}
	x.Outcome = *o
	if _, several := o.Metadata[recognise.ObjectCount]; several || c.Book.Splits(o.Rule) {
		if err := x.part(ctx, c.Book, asked, dr.recognition.Asking(c.Settings)); err != nil {
			return x, err
		}
	}
	if o.Refused != "" {
		return x, nil
	}
	s := c.Settings.Collection(layout.Name(cmp.Or(string(o.Collection), string(collection))))
	x.Collection = layout.Name(cmp.Or(string(o.Collection), string(collection)))
	x.Workflow, x.Lane = cmp.Or(o.Workflow, s.Workflow), cmp.Or(o.Lane, s.Lane)
	x.Label = cmp.Or(o.Label, layout.EncodePath(name))
	if len(o.Identifiers) > 0 {
		x.Becomes, err = dr.intake.Fate(ctx, o.Identifiers, o.Known == recognise.KnownVersion)
	}
	return x, err
}

// ExplainedObject is one of several objects in a drop.
type ExplainedObject struct {
	Object string   `json:"object"` // percent-encoded, as the files are
	Files  []string `json:"files"`
}

// part tells which files belong to which of the objects.
func (x *Recognised) part(ctx context.Context, b *recognise.Book, asked recognise.Candidate, how recognise.Options) error {
	parted, err := b.Objects(ctx, asked, x.Rule, how)
	if err != nil {
		return err
	}
	for _, o := range parted.Objects {
		if o.Whole {
			o.Files = []string{o.Files[0] + "/"}
		}
		x.Objects = append(x.Objects, ExplainedObject{layout.EncodePath(o.Name), encodePaths(o.Files)})
	}
	x.Left = encodePaths(parted.Left)
	return nil
}

func encodePaths(names []string) (out []string) {
	for _, name := range names {
		out = append(out, layout.EncodePath(name))
	}
	return out
}

// looseSet is the set that a file lying in an inbox belongs to by the rules of book; nil:
// it is a drop of its own, or lies elsewhere.
func (dr *Drops) looseSet(ctx context.Context, book *recognise.Book, path string, c layout.Name) (*inbox.Set, error) {
	dir, home := filepath.Dir(path), dr.ledger.Path(layout.InboxDir+"/"+string(c))
	if batches := dr.settings.Current().Settings.Drops(c).Batches == settings.BatchFolders; !batches && dir != home || batches && filepath.Dir(dir) != home {
		return nil, nil
	}
	opt := dr.intake.BoxOptions(false)
	opt.Together = func(ctx context.Context, c layout.Name, dir string, names []string) []inbox.Set {
		return recognition.Sets(ctx, book, c, dir, home, names)
	}
	box, err := inbox.New(opt)
	if err != nil {
		return nil, err
	}
	return box.SetOf(ctx, c, path)
}
