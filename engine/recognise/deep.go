package recognise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/bags/archive"
)

// The rules are: a drop is split where a rule with split: deep fits it and no other rule takes it
// for one object. Each folder in it is asked for, with the names of the folders above as keywords:
// one that is an object is not entered. In the others the files that belong together are asked
// for, then each file that is left. A bag that no rule takes is not entered, as it would be torn.

// split tries the rules that split a candidate, and gives the first that fits.
func (f *facts) split(ctx context.Context, rules []*Rule, o Options, out *Outcome) *tried {
	if o.Within || f.kind == KindFile || o.Particular && f.isFolder() { // a catalog looks at any depth by itself
		return nil
	}
	for _, r := range rules {
		if r.Split == "" || !r.isFor(f.kind) {
			continue
		}
		t := f.try(ctx, r, f.base())
		f.ask(ctx, o, t)
		out.tell(r, t)
		if t.verdict >= Maybe {
			return t
		}
	}
	return nil
}

func (r *Rule) isFor(kind string) bool {
	return len(r.Match.Kind) == 0 || slices.Contains(r.Match.Kind, kind)
}

// Splits reports whether the rule FILE/RULE has objects looked for at any depth.
func (b *Book) Splits(rule string) bool {
	r := b.byName[rule]
	return r != nil && r.Split != ""
}

// search is one for objects at any depth.
type search struct {
	*facts
	b     *Book
	o     Options
	root  *os.Root
	seen  int // names
	names map[string]bool
	out   Objects
}

// deep searches a folder. An archive is searched once it is unpacked.
func (b *Book) deep(ctx context.Context, f *facts, o Options) (_ Objects, err error) {
	s := &search{facts: f, b: b, o: o, names: map[string]bool{}, out: Objects{Known: true, Deep: true}}
	if !f.isFolder() {
		return s.out, nil
	}
	s.o.Within = true
	if s.root, err = os.OpenRoot(f.c.Path); err != nil {
		return s.out, err
	}
	err = s.folder(ctx, "", f.kind == KindBag)
	return s.out, errors.Join(err, s.root.Close())
}

// folder searches a folder that is no object; in a torn one nothing is asked for.
func (s *search) folder(ctx context.Context, at string, torn bool) error {
	if strings.Count(at, "/") >= maxLevels {
		return &TooManyError{fmt.Sprintf("folders lie in one another more than %d deep", maxLevels)}
	}
	folders, files, err := s.list(ctx, at)
	if err != nil {
		return err
	}
	in := s.c
	in.Path, in.Above = filepath.Join(s.c.Path, filepath.FromSlash(at)), slices.Concat(FoldersTo(s.c.Path, at), []Folder{{s.c.Path, s.c.Name}}, s.c.Above)
	for _, name := range folders {
		object, err := s.isObject(ctx, in, name, nil, torn)
		if err != nil {
			return err
		}
		if object {
			s.found(at, name, []string{name}, true)
			continue
		}
		_, err = s.root.Lstat(path.Join(at, name, "bagit.txt"))
		if err := s.folder(ctx, path.Join(at, name), torn || err == nil); err != nil {
			return err
		}
	}
	if !torn {
		if files, err = s.sets(ctx, at, in, files); err != nil {
			return err
		}
	}
	for _, name := range files {
		object, err := s.isObject(ctx, in, name, nil, torn)
		switch {
		case err != nil:
			return err
		case object:
			s.found(at, name, []string{name}, false)
		default:
			s.out.Left = append(s.out.Left, path.Join(at, name))
		}
	}
	return nil
}

// list gives the names in a folder that are looked at.
func (s *search) list(ctx context.Context, at string) (folders, files []string, err error) {
	entries, err := readDir(s.root, at)
	if err == nil {
		err = ctx.Err()
	}
	for _, e := range entries {
		switch p := path.Join(at, e.Name()); {
		case s.denied(p) || e.Name() == MarkerName:
			continue
		case e.IsDir():
			folders = append(folders, e.Name())
		case e.Type().IsRegular() && s.allowed(p):
			files = append(files, e.Name())
		}
		if s.seen++; s.seen > maxNames {
			return nil, nil, &TooManyError{fmt.Sprintf("more than %d names inside: which are objects is not told", maxNames)}
		}
	}
	return folders, files, err
}

// sets finds the files of a folder that are one object together, and gives the others.
func (s *search) sets(ctx context.Context, at string, in Candidate, files []string) ([]string, error) {
	var all []Together
	for _, p := range archive.Parts(files) {
		all = append(all, Together{Name: p.Name, Files: p.Files, Lacks: p.Lacks})
	}
	all = append(all, s.b.together(ctx, in, files)...)
	for _, t := range all {
		if t.Lacks != "" || slices.ContainsFunc(t.Files, func(name string) bool { return !slices.Contains(files, name) }) {
			continue
		}
		object, err := s.isObject(ctx, in, t.Name, t.Files, false)
		if err != nil {
			return nil, err
		}
		if object {
			files = slices.DeleteFunc(slices.Clone(files), func(name string) bool { return slices.Contains(t.Files, name) })
			s.found(at, t.Name, t.Files, false)
		}
	}
	return files, nil
}

// isObject asks the rules of what lies in a folder: of a name, or of files as if they were alone in
// a folder of this name.
func (s *search) isObject(ctx context.Context, in Candidate, name string, files []string, torn bool) (bool, error) {
	if torn {
		return false, nil
	}
	if in.Name, in.Files = name, files; files == nil {
		in.Path = filepath.Join(in.Path, name)
	}
	o, err := s.b.Recognise(ctx, in, s.o)
	return err == nil && o.Verdict >= Maybe && o.Rule != "" && o.Refused == "", err
}

// found notes an object, under a name that no other has.
func (s *search) found(at, name string, files []string, whole bool) {
	o := Object{Name: path.Join(at, name), Whole: whole}
	for _, file := range files {
		o.Files = append(o.Files, path.Join(at, file))
	}
	slices.Sort(o.Files)
	if folded := strings.ToLower(o.Name); s.names[folded] {
		o.Name = o.Files[0]
	} else {
		s.names[folded] = true
	}
	s.out.Objects = append(s.out.Objects, o)
}
