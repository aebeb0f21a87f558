package recognise

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"bagpipe/bags"
	"bagpipe/layout"
)

// Book is all rule files together, in the order in which they are asked. It does not
// change, and may be used by several goroutines; turn bounds how many archives are
// listed at once.
type Book struct {
	files    []*File
	rules    []*Rule // those of no list, in order
	byName   map[string]*Rule
	keywords []keyword
	drops    List
	inside   List
	turn     chan struct{}

	// Broken are the mistakes of one file about another: while there are any, nothing
	// is recognised.
	Broken []error
}

type keyword struct {
	word           string // folded
	files, folders []*Rule
}

// lastFile is asked after all others.
const lastFile = "default"

// NewBook brings files into order: by order, then by name; default.yaml comes last.
func NewBook(files []*File) *Book {
	b := &Book{files: slices.Clone(files), byName: map[string]*Rule{}, turn: make(chan struct{}, listAtOnce)}
	slices.SortStableFunc(b.files, func(x, y *File) int {
		last := func(f *File) int {
			if f.Name == lastFile {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(last(x), last(y)), cmp.Compare(x.Order, y.Order), strings.Compare(x.Name, y.Name))
	})
	for _, f := range b.files {
		for i := range f.Rules {
			r := &f.Rules[i]
			b.byName[r.ID()] = r
			if !r.Listed {
				b.rules = append(b.rules, r)
			}
		}
		b.drops = b.drops.and(f.Lists.Drops)
		b.inside = b.inside.and(f.Lists.Inside)
	}
	for _, f := range b.files {
		b.addKeywords(f)
	}
	return b
}

func (l List) and(m List) List {
	return List{Allow: append(slices.Clone(l.Allow), m.Allow...), Deny: append(slices.Clone(l.Deny), m.Deny...)}
}

// addKeywords looks up the rules that a file's keywords name.
func (b *Book) addKeywords(f *File) {
	for i, k := range f.Keywords {
		out := keyword{word: fold1(k.Keyword)}
		for _, list := range []struct {
			key  string
			from []string
			to   *[]*Rule
		}{{"files", k.Files, &out.files}, {"folders", k.Folders, &out.folders}} {
			for j, name := range list.from {
				r, err := b.rule(name, f)
				if err != nil {
					b.Broken = append(b.Broken, f.Errorf(fmt.Sprintf("$.keywords[%d].%s[%d]", i, list.key, j), "%v", err))
					continue
				}
				*list.to = append(*list.to, r)
			}
		}
		b.keywords = append(b.keywords, out)
	}
}

// fold1 makes keywords alike that differ by case or white space alone.
func fold1(word string) string { return strings.ToLower(fold(word)) }

// rule finds a rule by FILE/RULE, or by RULE: of the same file, or the only one of
// that name.
func (b *Book) rule(name string, near *File) (*Rule, error) {
	if r := b.byName[name]; r != nil {
		return r, nil
	}
	if near != nil {
		if r := b.byName[near.Name+"/"+name]; r != nil {
			return r, nil
		}
	}
	var found []string
	for _, f := range b.files {
		if b.byName[f.Name+"/"+name] != nil {
			found = append(found, f.Name+"/"+name)
		}
	}
	switch len(found) {
	case 1:
		return b.byName[found[0]], nil
	case 0:
		return nil, fmt.Errorf("no rule %q in rules/; bagpipe rules list shows them", name)
	}
	return nil, fmt.Errorf("rule %q stands in several files; write %s", name, strings.Join(found, " or "))
}

// Rules lists all rules in the order in which they are asked; those of no list first.
func (b *Book) Rules() []*Rule {
	all := slices.Clone(b.rules)
	for _, f := range b.files {
		for i := range f.Rules {
			if f.Rules[i].Listed {
				all = append(all, &f.Rules[i])
			}
		}
	}
	return all
}

// Options are what a recognition needs besides rules.
type Options struct {
	Limits bags.Limits // of archives that are listed
}

// Waits says why a drop must not be taken in yet: a rule file that concerns it is
// broken, or it is on a black list. "" when it may. It reads metadata.rule files and
// nothing else.
func (b *Book) Waits(c Candidate) string { return b.Look().Waits(c) }

// Look is one look at many drops: the rule file of an inbox is read once.
type Look struct {
	b       *Book
	inboxes map[string]markerRead
}

type markerRead struct {
	m   *marker
	err error
}

// Look begins one.
func (b *Book) Look() *Look { return &Look{b, map[string]markerRead{}} }

// Waits is Book.Waits.
func (l *Look) Waits(c Candidate) string {
	if why := l.b.listed(c.Name); why != "" {
		return why
	}
	if err := l.mistake(c); err != nil {
		return "is held: " + err.Error()
	}
	return ""
}

// mistake is the first in the rule files that concern a candidate.
func (l *Look) mistake(c Candidate) error {
	if len(l.b.Broken) > 0 {
		return l.b.Broken[0]
	}
	above, ok := l.inboxes[c.Inbox]
	if !ok && c.Inbox != "" {
		above.m, above.err = readMarker(c.Inbox, string(c.Collection))
		if above.err == nil {
			_, above.err = l.b.marked(c, nil, above.m, true)
		}
		if above.err == nil {
			_, above.err = l.b.marked(c, nil, above.m, false)
		}
		l.inboxes[c.Inbox] = above
	}
	if above.err != nil || c.File {
		return above.err
	}
	own, err := readMarker(c.Path, c.Name)
	if err == nil {
		_, err = l.b.marked(c, own, nil, true)
	}
	return err
}

// listed says why the lists keep a drop out.
func (b *Book) listed(name string) string {
	for _, glob := range b.drops.Deny {
		if inside(glob, name) {
			return fmt.Sprintf("is not taken in: lists: drops: deny: in rules/ names %s", glob)
		}
	}
	if len(b.drops.Allow) > 0 && !slices.ContainsFunc(b.drops.Allow, func(glob string) bool { return inside(glob, name) }) {
		return "is not taken in: lists: drops: allow: in rules/ does not name it"
	}
	return ""
}

// order gives the rules for a candidate in the order in which they are asked, and
// the type that a metadata.rule gives its folder.
func (b *Book) order(c Candidate) (rules []*Rule, folderType string, err error) {
	if len(b.Broken) > 0 {
		return nil, "", b.Broken[0]
	}
	var own, above *marker
	info, gone := os.Lstat(c.Path)
	folder := gone == nil && info.IsDir()
	if folder && c.Files == nil {
		if own, err = readMarker(c.Path, c.Name); err != nil {
			return nil, "", err
		}
	}
	if c.Inbox != "" {
		if above, err = readMarker(c.Inbox, string(c.Collection)); err != nil {
			return nil, "", err
		}
	}
	if own.plugins() || above.plugins() {
		rules, err = b.marked(c, own, above, folder)
	} else {
		rules = b.keyed(c, own, above, folder)
	}
	rules = append(rules, b.rules...)
	return unique(rules), typeOf(own, above), err
}

func typeOf(markers ...*marker) string {
	for _, m := range markers {
		if m == nil {
			continue
		}
		if _, err := layout.ParseName(m.kind); err == nil {
			return m.kind
		}
	}
	return ""
}

// marked are the rules that metadata.rule files name; the drop's own come first.
func (b *Book) marked(c Candidate, own, above *marker, folder bool) (rules []*Rule, err error) {
	for _, of := range []struct {
		m     *marker
		shown string
		lists []func(*marker) []named
	}{
		{own, c.Name, []func(*marker) []named{folders, files}},
		{above, string(c.Collection), map[bool][]func(*marker) []named{true: {folders}, false: {files}}[folder]},
	} {
		if of.m == nil {
			continue
		}
		for _, list := range of.lists {
			for _, n := range list(of.m) {
				r, err := b.rule(n.name, nil)
				if err != nil {
					return nil, &layout.FileError{File: layout.EncodePath(of.shown) + "/" + MarkerName, Line: n.line, Column: n.column, Text: err.Error()}
				}
				rules = append(rules, r)
			}
		}
	}
	return rules, nil
}

func files(m *marker) []named   { return m.files }
func folders(m *marker) []named { return m.folders }

// keyed are the rules of the keywords that fit: the drop's own folder, the folder it
// was dropped in, and every folder. A type stands for the folder's name.
func (b *Book) keyed(c Candidate, own, above *marker, folder bool) (rules []*Rule) {
	var words []string
	if folder {
		words = append(words, wordOf(own, c.Name))
	}
	words = append(words, wordOf(above, string(c.Collection)), "")
	for i, w := range words {
		if slices.Contains(words[:i], w) || w == "" && i < len(words)-1 {
			continue
		}
		for _, k := range b.keywords {
			if k.word != w {
				continue
			}
			if folder {
				rules = append(rules, k.folders...)
			} else {
				rules = append(rules, k.files...)
			}
		}
	}
	return rules
}

func wordOf(m *marker, name string) string {
	if m != nil {
		return fold1(m.kind)
	}
	return fold1(name)
}

func unique(rules []*Rule) (out []*Rule) {
	seen := map[*Rule]bool{}
	for _, r := range rules {
		if !seen[r] {
			seen[r], out = true, append(out, r)
		}
	}
	return out
}

// Recognise asks the rules what a candidate is. Its error is about the machine alone,
// or a *layout.FileError of a rule file.
func (b *Book) Recognise(ctx context.Context, c Candidate, o Options) (*Outcome, error) {
	f, err := b.facts(ctx, c, o)
	if err != nil {
		return nil, err
	}
	rules, folderType, err := b.order(c)
	if err != nil {
		return nil, err
	}
	kind, out := f.kind, &Outcome{Kind: f.kind}
	base := f.base()
	var best *tried
	for _, r := range rules {
		if len(r.Match.Kind) > 0 && !slices.Contains(r.Match.Kind, kind) {
			continue // files and folders have rules of their own
		}
		if r.Match.everything && best != nil {
			break // it fits everything; what a rule took for something is better
		}
		t := f.try(r, base)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		out.tell(r, t)
		if t.verdict == Yes || t.verdict == Maybe && best == nil {
			best = t
		}
		if t.verdict == Yes {
			break
		}
	}
	return out, f.decide(out, best, folderType)
}

// facts begins to look at a candidate.
func (b *Book) facts(ctx context.Context, c Candidate, o Options) (*facts, error) {
	kind, err := KindFolder, error(nil)
	if c.Files == nil {
		kind, err = KindOf(c.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("recognise %s: %w", layout.EncodePath(c.Name), err)
	}
	info, err := os.Lstat(c.Path)
	if err != nil {
		return nil, fmt.Errorf("recognise %s: %w", layout.EncodePath(c.Name), err)
	}
	return &facts{ctx: ctx, c: c, lists: &b.inside, limits: o.Limits, turn: b.turn, kind: kind, size: info.Size()}, nil
}

// tried is what a rule said.
type tried struct {
	answer
	rule    *Rule
	objects []string
}

// try asks one rule.
func (f *facts) try(r *Rule, base vars) *tried {
	f.objects = nil
	a := f.fits(&r.Match, base)
	if a.verdict == Yes {
		if more := f.fits(&r.Expect, a.vars); more.verdict != Yes {
			a.verdict, a.why = Maybe, strings.TrimPrefix(a.why+"; but "+more.why, "; ")
			if more.vars != nil {
				a.vars = more.vars
			}
		} else {
			a.why, a.vars = strings.TrimPrefix(strings.Join([]string{a.why, more.why}, "; "), "; "), more.vars
		}
	}
	a.why = strings.TrimSuffix(a.why, "; ")
	if a.verdict == Yes && r.Match.everything {
		a.why = "fits everything"
	}
	if a.verdict == Yes && r.Verdict == "maybe" {
		a.verdict = Maybe
	}
	return &tried{a, r, f.objects}
}
