package recognise

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"bagpipe/layout"
)

// The rules are: a metadata.rule counts for what lies in its folder. One in the drop itself
// comes before that of the folders it lies in, the nearest first, and these before that of
// the inbox folder: the rules of each are asked in that order, and the nearest type is the
// drop's. While one of them names rules, no keyword is asked for; else the keywords of all
// these folders are, in the same order, and then those of every folder.

// ruled is a folder that says what is asked in it, or may do so.
type ruled struct {
	dir   string
	shown string
	name  string // that a type stands for
	own   bool   // it is the drop itself: what it says of files counts for it, too
	m     *marker
}

// above are the folders that a candidate was dropped in, the nearest first.
func (c Candidate) above() (all []ruled) {
	for _, of := range c.Above {
		all = append(all, ruled{dir: of.Path, shown: c.shown(of.Path, string(c.Collection)+"/"+of.Name), name: of.Name})
	}
	if c.Inbox != "" {
		all = append(all, ruled{dir: c.Inbox, shown: c.shown(c.Inbox, string(c.Collection)), name: string(c.Collection)})
	}
	return all
}

// shown is what people know a folder by; dropped: of one in an inbox.
func (c Candidate) shown(dir, dropped string) string {
	if c.InPlace {
		return strings.TrimPrefix(strings.TrimPrefix(dir, c.Inbox), "/")
	}
	return dropped
}

// Waits says why a drop must not be taken in yet: a rule file that concerns it is
// broken, or it is on a black list. "" when it may. It reads metadata.rule files and
// nothing else.
func (b *Book) Waits(c Candidate) string { return b.Look().Waits(c) }

// Look is one look at many drops: the rule file of an inbox is read once.
type Look struct {
	b       *Book
	folders map[string]error
}

// Look begins one.
func (b *Book) Look() *Look { return &Look{b, map[string]error{}} }

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
	for _, of := range c.above() {
		err, known := l.folders[of.dir]
		if !known {
			err = l.b.check(of)
			l.folders[of.dir] = err
		}
		if err != nil {
			return err
		}
	}
	if c.File {
		return nil
	}
	return l.b.check(ruled{dir: c.Path, shown: c.Name, own: true})
}

// check reads a folder's rule file and looks up the rules that it names.
func (b *Book) check(of ruled) (err error) {
	if of.m, err = readMarker(of.dir, of.shown); err != nil {
		return err
	}
	for _, folder := range []bool{true, false} {
		if _, err := b.named(of, folder); err != nil {
			return err
		}
	}
	return nil
}

// listed says why the lists keep a drop out.
func (b *Book) listed(name string) string {
	if glob := denied(b, name); glob != "" {
		return fmt.Sprintf("is not taken in: lists: drops: deny: in rules/ names %s", glob)
	}
	if len(b.drops.Allow) > 0 && !slices.ContainsFunc(b.drops.Allow, func(glob string) bool { return inside(glob, name) }) {
		return "is not taken in: lists: drops: allow: in rules/ does not name it"
	}
	return ""
}

// KeepsOut reports whether the lists of drops keep out what is called so: those that deny a name all that is in a folder of it, too,
// and those that allow some all objects of others.
func (b *Book) KeepsOut(name string, object bool) bool {
	return denied(b, name) != "" || object && b.listed(name) != ""
}

// denied gives what keeps a name out; "": nothing does.
func denied(b *Book, name string) string {
	for _, glob := range b.drops.Deny {
		if inside(glob, name) {
			return glob
		}
	}
	return ""
}

// order gives the rules for a candidate in the order in which they are asked, and
// the type that a metadata.rule gives its folder.
func (b *Book) order(c Candidate, folder bool, marks *marks) (rules []*Rule, folderType string, err error) {
	if len(b.Broken) > 0 {
		return nil, "", b.Broken[0]
	}
	all := c.above()
	if folder {
		own := ruled{dir: c.Path, shown: c.shown(c.Path, c.Name), name: c.Name, own: true}
		if c.Files != nil { // files that lie loose have no rule file of their own
			own = ruled{name: c.Name, own: true}
		}
		all = append([]ruled{own}, all...)
	}
	plugins := false
	for i := range all {
		if all[i].dir == "" {
			continue
		}
		if all[i].m, err = marks.read(all[i].dir, all[i].shown); err != nil {
			return nil, "", err
		}
		if plugins = plugins || all[i].m.plugins(); folderType == "" {
			folderType = typeOf(all[i].m)
		}
	}
	if plugins {
		for _, of := range all {
			named, err := b.named(of, folder)
			if err != nil {
				return nil, "", err
			}
			rules = append(rules, named...)
		}
	} else {
		rules = b.keyed(all, folder)
	}
	if len(rules) == 0 {
		return b.rules, folderType, nil
	}
	return unique(append(rules, b.rules...)), folderType, nil
}

func typeOf(m *marker) string {
	if m == nil {
		return ""
	}
	if _, err := layout.ParseName(m.kind); err != nil {
		return ""
	}
	return m.kind
}

// named are the rules that a metadata.rule names for what it concerns.
func (b *Book) named(of ruled, folder bool) (rules []*Rule, err error) {
	if of.m == nil {
		return nil, nil
	}
	list := of.m.files
	if of.own {
		list = slices.Concat(of.m.folders, of.m.files)
	} else if folder {
		list = of.m.folders
	}
	for _, n := range list {
		r, err := b.rule(n.name, nil)
		if err != nil {
			return nil, &layout.FileError{File: path.Join(layout.EncodePath(of.shown), MarkerName), Line: n.line, Column: n.column, Text: err.Error()}
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// keyed are the rules of the keywords that fit: the drop's own folder, the folders it
// was dropped in, and every folder. A type stands for the folder's name.
func (b *Book) keyed(all []ruled, folder bool) (rules []*Rule) {
	var words []string
	for _, of := range all {
		word := fold1(of.name)
		if of.m != nil {
			word = fold1(of.m.kind)
		}
		if word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	for _, w := range append(words, "") {
		if !b.words[w] {
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

func unique(rules []*Rule) (out []*Rule) {
	seen := map[*Rule]bool{}
	for _, r := range rules {
		if !seen[r] {
			seen[r], out = true, append(out, r)
		}
	}
	return out
}
