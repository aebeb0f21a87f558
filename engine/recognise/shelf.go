package recognise

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Survey recognises what lies below a folder that is known already: of what was listed, nothing is
// listed again, and of a file whose name does not decide the beginning is read, once. It tells verdicts, rules and workflows
// alone: no reasons, and nothing that stands in files, but for outcomes that are whole.
type Survey struct {
	b     *Book
	o     Options
	root  Candidate
	known func(path string) Listed
	marks marks
}

// Survey begins one of the folder root. known tells of a folder below it what is known; nil: nothing.
func (b *Book) Survey(root string, collection layout.Name, o Options, known func(path string) Listed) *Survey {
	s := &Survey{b: b, o: o, root: Candidate{Collection: collection, Inbox: root, InPlace: true}, known: known}
	s.marks.by = map[string]func() (*marker, error){}
	s.marks.lacks = func(dir string) bool {
		l := known(strings.TrimPrefix(strings.TrimPrefix(dir, root), "/"))
		return l != nil && !l.Has(MarkerName)
	}
	s.o.marks, s.o.brief = &s.marks, true
	return s
}

// Of reports whether there is a survey, and it asks the rules of a book.
func (s *Survey) Of(b *Book) bool { return s != nil && s.b == b }

// Recognise is Book.Recognise of a candidate below the root: the rule files of the folders above are read once.
func (s *Survey) Recognise(ctx context.Context, c Candidate, o Options) (*Outcome, error) {
	o.marks = &s.marks
	return s.b.Recognise(ctx, c, o)
}

// Shelf is one folder whose entries are recognised, perhaps side by side.
type Shelf struct {
	*Survey
	path  string // below the root
	dir   string
	above Candidate
	files func() (ruling, error) // of a file here
	other func() (ruling, error) // of a folder of which neither name nor rule file says more
	open  func() (disk.Folder, error)

	opened bool // written by open
}

// ruling is what is asked of an entry.
type ruling struct {
	rules      []*Rule
	folderType string
}

// Shelf begins with the folder at a path below the root; its rule file counts as it is now.
func (s *Survey) Shelf(path string) *Shelf {
	h := &Shelf{Survey: s, path: path, dir: s.root.Inbox, above: s.root}
	if path != "" {
		h.dir += "/" + path
	}
	h.above.Above = FoldersTo(s.root.Inbox, path)
	order := func(folder bool) func() (ruling, error) {
		return sync.OnceValues(func() (a ruling, err error) {
			c := h.above
			c.Files = []string{} // it has no rule file of its own
			a.rules, a.folderType, err = s.b.order(c, folder, &s.marks)
			return a, err
		})
	}
	h.files, h.other = order(false), order(true)
	h.open = sync.OnceValues(func() (disk.Folder, error) {
		h.opened = true
		return disk.OpenFolderBeneath(s.root.Inbox, cmp.Or(path, "."))
	})
	return h
}

// Close ends the looks at files.
func (h *Shelf) Close() error {
	if !h.opened {
		return nil
	}
	in, err := h.open()
	if err != nil {
		return nil // told of each file
	}
	return in.Close()
}

func (h *Shelf) candidate(name string, file bool) *facts {
	c := h.above
	c.Path, c.Name, c.File = h.dir+"/"+name, name, file
	return &facts{c: c, lists: &h.b.inside, limits: h.o.Limits, turn: h.b.turn, sieve: h.b.sieve}
}

// ByName recognises a file without a look at it, by its name and its size as it was listed. ok is false
// where a rule that the name fits asks more: File answers then.
func (h *Shelf) ByName(ctx context.Context, name string, size int64) (o *Outcome, ok bool, err error) {
	asks, err := h.files()
	if err != nil {
		return nil, false, err
	}
	rules := asks.rules
	f := h.candidate(name, true)
	f.size = size
	fits := false
	for _, r := range h.forKind(rules, "") {
		if (questions{f}).deny(&r.Match) {
			continue
		}
		if r.Program != nil || r.Split != "" || r.Match.asksContent() || r.Expect.asksContent() {
			return nil, false, nil
		}
		if fits = true; r.Match.isNamed() && r.Expect.everything && r.Verdict != "maybe" {
			break // it decides, or a rule before it
		}
	}
	if f.kind = KindFile; !fits {
		o = &Outcome{Kind: f.kind}
		o.settle(nil)
		return o, true, nil
	}
	o, err = f.judge(ctx, h.forKind(rules, f.kind), "", h.o)
	return o, err == nil, err
}

// File recognises a file. One that is none any more is fs.ErrNotExist. Of a file that a rule takes the
// outcome is whole, unless a program would be asked.
func (h *Shelf) File(ctx context.Context, name string) (*Outcome, error) {
	f := h.candidate(name, true)
	in, err := h.open()
	if err == nil {
		err = f.readFirst(in.OpenRaw(name))
	}
	if err != nil {
		return nil, fmt.Errorf("recognise %s: %w", layout.EncodePath(name), err)
	}
	asks, err := h.files()
	if err != nil {
		return nil, err
	}
	rules := h.forKind(asks.rules, f.kind)
	o, err := f.judge(ctx, rules, "", h.o)
	if err != nil || o.Rule == "" || o.Refused != "" || slices.ContainsFunc(rules, func(r *Rule) bool { return r.Program != nil }) {
		return o, err
	}
	all := h.o // what is nobody's is told by the brief look, which asks few rules
	all.brief = false
	if o, err = f.judge(ctx, rules, asks.folderType, all); err == nil {
		o.Whole = true
	}
	return o, err
}

// Folder recognises a folder.
func (h *Shelf) Folder(ctx context.Context, name string) (*Outcome, error) {
	f := h.candidate(name, false)
	info, err := os.Lstat(f.c.Path)
	if err == nil && !info.IsDir() {
		err = fs.ErrNotExist // as the folder that it was
	}
	if err != nil {
		return nil, fmt.Errorf("recognise %s: %w", layout.EncodePath(name), err)
	}
	if f.listed = h.known(strings.TrimPrefix(h.path+"/"+name, "/")); f.listed == nil {
		return h.b.Recognise(ctx, f.c, h.o)
	}
	if f.kind = KindFolder; f.listed.Has("bagit.txt") {
		f.kind = KindBag
	}
	asks, err := h.other()
	rules := asks.rules
	if err == nil && (h.b.words[fold1(name)] || f.listed.Has(MarkerName)) {
		rules, _, err = h.b.order(f.c, true, &h.marks)
	}
	if err != nil {
		return nil, err
	}
	return f.judge(ctx, h.forKind(rules, f.kind), "", h.o)
}

// forKind leaves out the rules for other kinds; "" is a file that may be an archive.
func (h *Shelf) forKind(rules []*Rule, kind string) []*Rule {
	if len(rules) > 0 && len(rules) == len(h.b.rules) && &rules[0] == &h.b.rules[0] {
		return h.b.byKind[kind]
	}
	return ofKind(rules, kind)
}

// EndsOf notes how the name of a file or folder ends.
func (b *Book) EndsOf(name string, to *Endings) { b.sieve.add(name, to) }
