package recognise

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/layout"
)

// The rules are: files that lie loose side by side are one object where a rule with sets
// would take a folder that holds them alone; the rules are asked in the order in which
// such a folder's are. Of a rule's other conditions those count that ask for names: what
// stands in files is read once they are taken. A rule of which several sets make one
// object (min: 2) joins nothing.

// Together is files that belong together.
type Together struct {
	Name  string   // of a folder that holds them alone
	Files []string // the one that names the set first, then by name
	Rule  string   // FILE/RULE
	Lacks string   // the pattern of a file that is wanted and not there; "": they are one object
}

// Together finds them among the names of the files in one folder, that of the collection
// in the inbox or of a batch in it. Files that are not yet an object come last.
func (b *Book) Together(ctx context.Context, collection layout.Name, dir, inbox string, names []string) []Together {
	c := Candidate{Path: dir, Collection: collection, Inbox: inbox}
	if dir != inbox && inbox != "" {
		c.Above = []Folder{{dir, filepath.Base(dir)}}
	}
	return b.together(ctx, c, names)
}

// together finds them among the files of the folder c.Path, which is one of c.Above or c.Inbox.
func (b *Book) together(ctx context.Context, c Candidate, names []string) []Together {
	var whole, partial []Together
	left := slices.DeleteFunc(slices.Sorted(slices.Values(names)), func(name string) bool {
		return b.listed(name) != "" || name == MarkerName
	})
	c.Files = left
	rules := b.joining(c)
	for _, incomplete := range []bool{false, true} {
		for _, r := range rules {
			found, taken := b.join(ctx, r, c.Collection, c.Path, left, incomplete)
			if incomplete {
				partial = append(partial, found...)
			} else {
				whole = append(whole, found...)
			}
			left = slices.DeleteFunc(left, func(name string) bool { return taken[name] })
		}
	}
	return append(whole, partial...)
}

// HasCompanions reports whether a loose file, by its name alone, may be the first of several
// that belong together: the main file of a set, or one that fits a pattern of a set by its
// ending. What only fits as map.* does map.txt is as likely to have none.
func (b *Book) HasCompanions(collection layout.Name, name string) bool {
	low := strings.ToLower(layout.EncodePath(name))
	return slices.ContainsFunc(b.rules, func(r *Rule) bool {
		if !joins(r, collection) {
			return false
		}
		s := r.Match.Sets
		if _, main := s.main.match(layout.EncodePath(name)); main {
			return true
		}
		return slices.ContainsFunc(slices.Concat(s.Required, s.Optional), func(glob string) bool {
			return s.names(glob) && endsLike(glob, low)
		})
	})
}

// endsLike reports whether a name in lower case ends as one of a pattern's alternatives does,
// after the last variable and sign.
func endsLike(glob, low string) bool {
	for one := range strings.SplitSeq(strings.ToLower(glob), "|") {
		if i := strings.LastIndexAny(one, "}*?]"); i >= 0 {
			one = one[i+1:]
		}
		if one != "" && strings.HasSuffix(low, one) {
			return true
		}
	}
	return false
}

// joining are the rules that can join loose files.
func (b *Book) joining(c Candidate) []*Rule {
	rules, _, err := b.order(c, true, nil)
	if err != nil { // all that lies there is held for it
		rules = b.rules
	}
	return slices.DeleteFunc(slices.Clone(rules), func(r *Rule) bool { return !joins(r, c.Collection) })
}

func joins(r *Rule, collection layout.Name) bool {
	m := &r.Match
	return m.Sets != nil && r.Verdict != "no" && (m.Sets.Min == nil || *m.Sets.Min <= 1) &&
		(len(m.Kind) == 0 || slices.Contains(m.Kind, KindFolder)) &&
		(len(m.Collection) == 0 || slices.Contains(m.Collection, string(collection)))
}

// join finds what one rule joins: what is whole, or else what lacks something.
func (b *Book) join(ctx context.Context, r *Rule, collection layout.Name, dir string, names []string, incomplete bool) (found []Together, taken map[string]bool) {
	f := &facts{c: Candidate{Path: dir, Collection: collection, Files: names}, lists: &b.inside, turn: b.turn, kind: KindFolder, namesOnly: true}
	sh, ok := r.Match.Sets.share(ctx, f.listing(ctx), f.base())
	if !ok {
		return nil, nil
	}
	taken = map[string]bool{}
	for _, p := range sh.parts {
		if (p.lacks != "") != incomplete || len(p.files) < 2 {
			continue
		}
		t := Together{Name: sh.title(p), Files: mainFirst(p), Rule: r.ID(), Lacks: p.lacks}
		if !incomplete && !b.takes(ctx, r, collection, dir, t) {
			continue
		}
		for _, name := range t.Files {
			taken[name] = true
		}
		found = append(found, t)
	}
	return found, taken
}

// takes asks a rule's conditions about names of a folder that holds a set alone.
func (b *Book) takes(ctx context.Context, r *Rule, collection layout.Name, dir string, t Together) bool {
	f := &facts{c: Candidate{Path: dir, Name: t.Name, Collection: collection, Files: t.Files}, lists: &b.inside, turn: b.turn, kind: KindFolder, namesOnly: true}
	m := r.Match
	m.Size, m.MIME, m.Magic, m.XML, m.JSON, m.All, m.Any, m.Not = nil, nil, nil, nil, nil, nil, nil, nil
	m.Count = slices.DeleteFunc(slices.Clone(m.Count), func(c Count) bool { return len(c.MIME) > 0 })
	return questions{f}.fits(ctx, &m, f.base()).verdict != No
}

func mainFirst(p *part) []string {
	files := slices.Sorted(slices.Values(p.files))
	at := slices.Index(files, p.mains[0])
	return slices.Insert(slices.Delete(files, at, at+1), 0, p.mains[0])
}

// The rules are: files that lie side by side below a known folder are one object where they would be one as a drop
// that is split: a rule's sets have them together by their names, all that is wanted is there, and the rules take a folder
// that holds them alone.

// MayHaveSets reports whether rules may have files of the folder together, by how the names in it and below end.
func (h *Shelf) MayHaveSets() bool {
	rules, err := h.setRules()
	return err == nil && len(rules) > 0
}

// setRules are the rules that may have files of the folder together, in their order.
func (h *Shelf) setRules() ([]*Rule, error) {
	asks, err := h.other()
	if err != nil {
		return nil, err
	}
	l := h.known(h.path)
	var rules []*Rule
	for _, r := range asks.rules {
		if !joins(r, h.root.Collection) || l != nil && slices.ContainsFunc(h.b.sieve.needs[r], func(wanted Endings) bool { return !l.Endings().meets(wanted) }) {
			continue
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// Sets finds the files of the folder that belong together, among these names, which are sorted. A *TooManyError says that they
// are not told.
func (h *Shelf) Sets(ctx context.Context, names []string) (all []Together, err error) {
	rules, err := h.setRules()
	if err != nil {
		return nil, err
	}
	var ends Endings
	for _, name := range names {
		h.b.EndsOf(name, &ends)
	}
	for _, r := range rules {
		if slices.ContainsFunc(h.b.sieve.needs[r], func(wanted Endings) bool { return !ends.meets(wanted) }) {
			continue // what it asks for lies in folders inside
		}
		if len(names) > maxNames {
			return nil, &TooManyError{fmt.Sprintf("more than %d files lie in it: which belong together is not told", maxNames)}
		}
		found, taken := h.b.join(ctx, r, h.root.Collection, h.dir, names, false)
		all = append(all, found...)
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return taken[name] })
	}
	return all, ctx.Err()
}

// Set recognises files of the folder as if they were alone in a folder of their name.
func (h *Shelf) Set(ctx context.Context, t Together) (*Outcome, error) {
	c := h.above
	c.Path, c.Name, c.Files = h.dir, t.Name, t.Files
	return h.b.Recognise(ctx, c, h.o)
}

// holdsSets reports whether rules have the files that lie directly in a folder together as several objects.
func holdsSets(ctx context.Context, f *facts, rules []*Rule) bool {
	l := f.listing(ctx)
	if f.c.Files != nil || l.err != nil || l.cut || l.top != "" {
		return false
	}
	names := slices.DeleteFunc(slices.Clone(l.files), func(name string) bool { return strings.Contains(name, "/") })
	b, sets := &Book{inside: *f.lists, turn: f.turn}, 0
	for _, r := range rules {
		if sets < 2 && joins(r, f.c.Collection) {
			found, taken := b.join(ctx, r, f.c.Collection, f.c.Path, names, false)
			sets += len(found)
			names = slices.DeleteFunc(names, func(name string) bool { return taken[name] })
		}
	}
	return sets > 1
}
