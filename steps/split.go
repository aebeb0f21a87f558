package steps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"
	"bagpipe/layout"
)

// The rules are: what matches becomes a child, and what is within it goes with it. A
// child is named by its path in the object, so that the same object splits into the
// same children. They are hard links: the object stays as it is, and costs no space
// twice. Paths are matched below the folder that alone holds everything, if there is
// one, as most archives are packed so.

// splitting is how the object is split.
type splitting struct {
	objects bool // each object that a rule tells apart; the others then do not count

	files bool           // each file anywhere; else each file or folder that matches as a whole path
	by    *regexp.Regexp // what has the same first group here is one child; nil: each is its own
	match []string
	kind  string
	top   string // what paths are matched below: "", or a folder with a slash behind it
	like  Child  // what all children have in common
}

// The values of the parameter each.
const (
	eachEntry = "entry"
	eachFile  = "file"
	eachSet   = "set"
)

// split makes items of what the object holds.
func split(ctx context.Context, c *Call) (Result, error) {
	s, err := splitParams(c.With)
	if err != nil {
		return Result{}, err
	}
	if s.objects {
		return splitObjects(ctx, c, &s)
	}
	t, err := object(ctx, c)
	if err != nil {
		return Result{}, failure(err)
	}
	if err := t.CheckRegular(); err != nil {
		return Result{}, failure(err)
	}
	s.top = wrapper(t)
	chosen, err := s.choose(t)
	if err != nil {
		return Result{}, failure(err)
	}
	if len(chosen) == 0 {
		return Result{Status: Skipped, Message: "not applicable: the object holds " + s.String()}, nil
	}
	taken := partOf(t, chosen)
	dest := filepath.Join(c.Scratch, layout.ChildrenDir)
	if err := os.Mkdir(dest, 0o755); err != nil {
		return Result{}, failure(err)
	}
	if err := files.Place(ctx, taken, dest, c.mayLink()); err != nil {
		return Result{}, failure(err)
	}
	if s.by != nil {
		if chosen, err = s.gather(dest, chosen); err != nil {
			return Result{}, failure(err)
		}
	}
	children := make([]Child, len(chosen))
	for i, p := range chosen {
		children[i] = s.like
		children[i].From, children[i].Name = layout.RelPath(layout.ChildrenDir+"/"+p), p
		children[i].Label = layout.EncodePath(strings.TrimPrefix(p, s.top))
	}
	noun := "children"
	if len(children) == 1 {
		noun = "child"
	}
	return Result{Children: children,
		Message: fmt.Sprintf("%d %s: %s, %s", len(children), noun, layout.Count(len(taken.Files), "file"), layout.Count(taken.Bytes(), "byte"))}, nil
}

func splitParams(with map[string]any) (s splitting, err error) {
	each, err := stringParam(with, "each")
	if err != nil {
		return s, err
	}
	switch each {
	case "", eachEntry:
	case eachFile:
		s.files = true
	case eachSet:
		if err := s.setBy(with); err != nil {
			return s, err
		}
	case eachObject:
		s.objects = true
		for _, other := range []string{"match", "kind"} {
			if _, given := with[other]; given {
				return s, wrongParam(other, "does not go with each: %s", eachObject)
			}
		}
	default:
		return s, wrongParam("each", "want %s, %s, %s or %s, got %q", eachEntry, eachFile, eachSet, eachObject, each)
	}
	if _, given := with["by"]; given && s.by == nil {
		return s, wrongParam("by", "goes with each: %s", eachSet)
	}
	if one, isText := with["match"].(string); isText {
		s.match = []string{one}
	} else if s.match, err = stringsParam(with, "match"); err != nil {
		return s, err
	}
	if len(s.match) == 0 {
		s.match = []string{"*"}
	}
	for _, m := range s.match {
		if !layout.ValidPattern(m) || m == "" {
			return s, wrongParam("match", "%q is no pattern", m)
		}
	}
	if s.kind, err = stringParam(with, "kind"); err != nil {
		return s, err
	}
	if !slices.Contains([]string{"", "folder", "bag", "archive", "file"}, s.kind) {
		return s, wrongParam("kind", "want folder, bag, archive or file, got %q", s.kind)
	}
	for key, to := range map[string]*layout.Name{"collection": &s.like.Collection, "workflow": &s.like.Workflow, "lane": &s.like.Lane} {
		text, err := stringParam(with, key)
		if err != nil {
			return s, err
		}
		if *to, err = layout.ParseName(text); text != "" && err != nil {
			return s, wrongParam(key, "%v", err)
		}
	}
	return s, nil
}

// String says what was looked for and is not there.
func (s *splitting) String() string {
	what := "nothing"
	if s.kind != "" {
		what = "no " + s.kind
	}
	if !slices.Contains(s.match, "*") {
		what += " that matches " + strings.Join(s.match, ", ")
	}
	return what
}

// choose gives the paths that become children, in the order of the walk.
func (s *splitting) choose(t *files.Tree) (chosen []string, err error) {
	picked := map[string]bool{}
	pick := func(p string, folder bool) error {
		if len(p) <= len(s.top) || !s.fits(p) || under(p, picked) {
			return nil
		}
		ok, err := s.isKind(t, p, folder)
		if ok {
			picked[p], chosen = true, append(chosen, p)
		}
		return err
	}
	if !s.files {
		for i := range t.Folders { // parents before what is in them
			if err := pick(t.Folders[i].Path, true); err != nil {
				return nil, err
			}
		}
	}
	for i := range t.Files {
		if err := pick(t.Files[i].Path, false); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

func (s *splitting) fits(p string) bool {
	if s.by != nil {
		if at := strings.TrimPrefix(p, s.top); strings.Contains(at, "/") || s.setOf(at) == "" {
			return false
		}
	}
	return slices.ContainsFunc(s.match, func(m string) bool {
		subject := strings.TrimPrefix(p, s.top)
		if s.files && !strings.Contains(m, "/") {
			subject = path.Base(p)
		}
		return layout.MatchPattern(m, subject)
	})
}

// isKind tells files, archives, folders and bags apart as recognition does.
func (s *splitting) isKind(t *files.Tree, p string, folder bool) (bool, error) {
	at := t.At(p)
	switch {
	case s.kind == "":
		return true, nil
	case folder:
		_, err := os.Lstat(filepath.Join(at, "bagit.txt"))
		return s.kind == map[bool]string{true: "bag", false: "folder"}[err == nil], nil
	case s.kind == "folder" || s.kind == "bag":
		return false, nil
	}
	format, err := archive.Sniff(at)
	return (format != archive.None) == (s.kind == "archive"), err
}

// wrapper is the folder that alone holds everything, with a slash behind it; "" when
// there is none. A bag is an object, and no wrapper.
func wrapper(t *files.Tree) (top string) {
	holds := map[string]int{} // entries by their folder
	only := map[string]string{}
	bag := map[string]bool{}
	for i := range t.Files {
		dir, name := path.Split(t.Files[i].Path)
		holds[dir]++
		bag[dir] = bag[dir] || name == "bagit.txt"
	}
	for i := range t.Folders {
		dir, name := path.Split(t.Folders[i].Path)
		if holds[dir]++; holds[dir] == 1 {
			only[dir] = dir + name + "/"
		}
	}
	for holds[top] == 1 && only[top] != "" && !bag[only[top]] && holds[only[top]] > 0 {
		top = only[top]
	}
	return top
}

// under tells whether something above p is among the paths.
func under(p string, paths map[string]bool) bool {
	for i := len(p) - 1; i > 0; i-- {
		if p[i] == '/' && paths[p[:i]] {
			return true
		}
	}
	return false
}

// partOf is the part of a tree that holds the chosen paths, and the folders above
// them.
func partOf(t *files.Tree, chosen []string) *files.Tree {
	picked, above := make(map[string]bool, len(chosen)), map[string]bool{}
	for _, p := range chosen {
		picked[p] = true
		for d := path.Dir(p); d != "." && !above[d]; d = path.Dir(d) {
			above[d] = true
		}
	}
	part := &files.Tree{Dir: t.Dir, Stands: t.Stands}
	for i := range t.Folders {
		if p := t.Folders[i].Path; picked[p] || above[p] || under(p, picked) {
			part.Folders = append(part.Folders, t.Folders[i])
		}
	}
	for i := range t.Files {
		if p := t.Files[i].Path; picked[p] || under(p, picked) {
			part.Files = append(part.Files, t.Files[i])
		}
	}
	return part
}

// Sets of files: what stands at the top and has the same beginning becomes one child, a
// folder of that name, with the files under the names they had. A folder that is alone
// in its set is the child itself.

const maxBy = 2000

func (s *splitting) setBy(with map[string]any) error {
	text, err := stringParam(with, "by")
	if err != nil {
		return err
	}
	if text == "" {
		return wrongParam("by", "each: %s needs by:, a regular expression with a group, as in ^([a-z]+)", eachSet)
	}
	if len(text) > maxBy {
		return wrongParam("by", "%d bytes; at most %d", len(text), maxBy)
	}
	if s.by, err = regexp.Compile(text); err != nil || s.by.NumSubexp() == 0 {
		return wrongParam("by", "want a regular expression with a group, as in ^([a-z]+), got %q", text)
	}
	return nil
}

// setOf is the set that an entry at the top belongs to; "": none.
func (s *splitting) setOf(name string) string {
	found := s.by.FindStringSubmatch(name)
	if found == nil || !fs.ValidPath(found[1]) || found[1] == "." || path.Base(found[1]) != found[1] {
		return ""
	}
	return found[1]
}

// gather moves the entries of each set, which stand in dest, into a folder of its own,
// and gives the folders in the order of their first entries.
func (s *splitting) gather(dest string, chosen []string) (sets []string, err error) {
	members := map[string][]string{}
	for _, p := range chosen {
		set := s.setOf(path.Base(p))
		if members[set] == nil {
			sets = append(sets, set)
		}
		members[set] = append(members[set], path.Base(p))
	}
	for i, set := range sets {
		if sets[i], err = s.gatherOne(dest, set, members[set]); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

func (s *splitting) gatherOne(dest, set string, members []string) (string, error) {
	from := filepath.Join(dest, filepath.FromSlash(s.top))
	if len(members) == 1 {
		return s.top + members[0], nil
	}
	aside, err := os.MkdirTemp(from, ".set-")
	if err != nil {
		return "", fmt.Errorf("gather %s: %w", layout.EncodePath(set), err)
	}
	for _, name := range members {
		if err := os.Rename(filepath.Join(from, name), filepath.Join(aside, name)); err != nil {
			return "", fmt.Errorf("gather %s: %w", layout.EncodePath(set), err)
		}
	}
	to := filepath.Join(from, set)
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return "", ContentFailure("the set %s has the name of something else in the object", layout.EncodePath(set))
	}
	if err := errors.Join(os.Chmod(aside, 0o755), os.Rename(aside, to)); err != nil {
		return "", fmt.Errorf("gather %s: %w", layout.EncodePath(set), err)
	}
	return s.top + set, nil
}
