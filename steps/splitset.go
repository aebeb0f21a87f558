package steps

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"bagpipe/layout"
)

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
