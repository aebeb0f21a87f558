package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode"

	"bagpipe/engine/recognise"
	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

// The rules are: files of one folder that the sets of rules have together are one object, which is the item that its main
// file's entry names. Its other files are with that one, and each keeps the item that it was by itself, until it is by
// itself again. Which files are together is found out anew in folders with a change alone, and where the rules are asked anew.
// An object of which one file changed, came or went has changed.

// mainText is how the entry of a file names the main file that it is with: without white space.
func mainText(name string) string {
	var b strings.Builder
	for _, r := range encodeName(name) {
		if !unicode.IsSpace(r) {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// partOf says of which object a file is that is with the one that text names, in a folder.
func partOf(dir, text string) string {
	if name, err := layout.DecodePath(text); err == nil {
		text = name
	}
	return "part of " + layout.EncodePath(join(dir, text))
}

// sets gives the names of the files in a folder that are with others, by the names of these as mainText has them.
func (n *node) sets() (of map[string][]string) {
	for i := range n.all() {
		if e := &n.all()[i]; e.verdict == with && e.isThere() {
			if of == nil {
				of = map[string][]string{}
			}
			of[n.reasons[e.name]] = append(of[n.reasons[e.name]], e.name)
		}
	}
	return of
}

// together finds the files of a folder that are one object together, and says of each what it is.
func together(ctx context.Context, s *scan, shelf *recognise.Shelf, n *node, again bool) (sets map[string]recognised, err error) {
	var was map[string][]string
	if old := s.old[n.path]; old != nil {
		was = old.sets()
	}
	sets = map[string]recognised{}
	if len(was) == 0 && !shelf.MayHaveSets() {
		return sets, nil
	}
	found, err := shelf.Sets(ctx, mayBeTogether(s, n))
	if err != nil {
		many := (*recognise.TooManyError)(nil)
		if errors.As(err, &many) {
			s.problem(n.path, many.Error())
		} else if n.state != Unread && waits(err) != nil || ctx.Err() != nil {
			return nil, err
		}
		for _, name := range slices.Concat(slices.Collect(maps.Values(n.sets()))...) { // until that is put right
			sets[name] = recognised{verdict: with, stays: true}
		}
		return sets, nil
	}
	for _, t := range found {
		if err := objectOf(ctx, s, shelf, n, t, was, again, sets); err != nil {
			return nil, err
		}
	}
	for text := range was {
		name, err := layout.DecodePath(text)
		if err != nil {
			continue
		}
		main := n.find(name)
		if _, is := sets[name]; main != nil && main.isThere() && !is {
			main.fresh = true // it is less than it was
		}
	}
	return sets, nil
}

// mayBeTogether gives the names of the files that rules may have together.
func mayBeTogether(s *scan, n *node) (names []string) {
	if n.path != "" && slices.ContainsFunc(strings.Split(n.path, "/"), s.passed) {
		return nil
	}
	for i := range n.all() {
		if e := &n.all()[i]; e.kind == file && e.isThere() && e.name != recognise.MarkerName && !s.passed(e.name) && !s.book.KeepsOut(e.name, true) {
			names = append(names, e.name)
		}
	}
	return names
}

// objectOf says what files are that belong together by their names; was says which were together.
func objectOf(ctx context.Context, s *scan, shelf *recognise.Shelf, n *node, t recognise.Together, was map[string][]string, again bool, sets map[string]recognised) error {
	main, others := n.find(t.Files[0]), t.Files[1:]
	text := mainText(main.name)
	changed := !slices.Equal(was[text], others)
	for _, name := range t.Files {
		e := n.find(name)
		changed = changed || e.fresh || e.moved || e.back
	}
	stay := func(names ...string) {
		for _, name := range names {
			sets[name] = recognised{verdict: n.find(name).verdict, stays: true}
		}
	}
	if !again && !changed && main.verdict.isWhole() && !main.waits {
		stay(t.Files...)
		return nil
	}
	o, err := shelf.Set(ctx, t)
	r, err := heard(s, n.path, main, o, err)
	switch {
	case err != nil:
		return err
	case r.vanished:
		stay(t.Files...)
	case r.waits != "":
		sets[main.name] = r
		stay(others...)
	case r.verdict.isObject():
		inherit(n, main, others, was)
		inheritAbove(s, n, main, t.Files)
		r.whole, sets[main.name] = nil, r
		main.fresh = main.fresh || changed
		for _, name := range others {
			if e := n.find(name); e.verdict != with || n.reasons[name] != text {
				n.changed = true
			}
			sets[name] = recognised{verdict: with, of: text}
		}
	}
	return nil
}

// inherit has the main file of an object be the item that the object was, where another file was its main one.
func inherit(n *node, main *entry, others []string, was map[string][]string) {
	if main.item != "" {
		return
	}
	for _, name := range others {
		if e := n.find(name); e.item != "" && e.verdict.isObject() && was[mainText(name)] != nil {
			main.item, e.item = e.item, ""
			return
		}
	}
}

// inheritAbove has the main file of an object be the item that its folder was, which held nothing else and is no object any
// more, as something came to it.
func inheritAbove(s *scan, n *node, main *entry, files []string) {
	up, old := s.now[parentOf(n.path)], s.old[n.path]
	if main.item != "" || n.path == "" || up == nil || old == nil {
		return
	}
	had := false
	alone := old.each(func(e *entry) bool {
		now := n.find(e.name)
		had = had || e.name == main.name && !e.gone
		return e.gone || now == nil || !now.isThere() || slices.Contains(files, e.name)
	})
	is := up.findOf(n.path[strings.LastIndexByte(n.path, '/')+1:], folder)
	if had && alone && is != nil && is.item != "" && !is.verdict.isWhole() {
		main.item, is.item, up.changed = is.item, "", true
	}
}

// inheritBelow has a folder that is an object be the item that files in it were together, where there is nothing else in it.
func inheritBelow(s *scan, path string, e *entry) {
	n := s.now[path]
	if n == nil || e.item != "" || !e.verdict.isObject() || s.open[path] {
		return
	}
	var main *entry
	others := 0
	for i := range n.all() {
		switch in := &n.all()[i]; {
		case !in.isThere():
		case in.verdict == with:
			others++
		case in.fresh && in.item == "": // it came to it
		case in.verdict.isObject() && in.kind == file && in.item != "" && main == nil:
			main = in
		default:
			return
		}
	}
	if main != nil && others > 0 {
		e.item, e.moved, main.item, n.changed = main.item, true, "", true
	}
}

// heard is what the rules said of an entry, or why they were not asked.
func heard(s *scan, dir string, e *entry, o *recognise.Outcome, err error) (recognised, error) {
	var broken *layout.FileError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return recognised{verdict: e.verdict, vanished: true}, nil
	case ofStore(err):
		why := "could not be looked into: " + plainText(err)
		s.problem(join(dir, e.name), why)
		return waiting(s, join(dir, e.name), e, why), nil
	case errors.As(err, &broken):
		noteFault(s, *broken)
		return waiting(s, join(dir, e.name), e, "waits: "+err.Error()), nil
	case err != nil:
		return recognised{}, err
	}
	r := recognised{verdict: verdictOf(o, e.kind), workflow: o.Workflow}
	if o.Whole {
		r.whole = o
	}
	return r, nil
}

// ownErrors are of this process and its machine, whatever it reads.
var ownErrors = []unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOSPC, unix.EDQUOT, unix.EINTR}

// ofStore reports whether the store, or the way to it, would not give what was asked of it: a damaged or hung file system has many
// words for that, and the rest of it is catalogued all the same.
func ofStore(err error) bool {
	no := unix.Errno(0)
	return errors.As(err, &no) && !slices.Contains(ownErrors, no)
}
