package roots

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"bagpipe/layout"
)

// Outside refuses a place that is a catalog's root or lies in one: nothing is written there. The place need not be there
// yet; links on the way to it are followed, and mounts are seen through.
func Outside(all map[layout.Name]*Catalog, place string) error {
	if len(all) == 0 {
		return nil
	}
	abs, err := filepath.Abs(place)
	if err != nil {
		return err
	}
	at := Locate(abs)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if root := all[name].Root; at.LiesIn(root) {
			return fmt.Errorf("%s lies in %s, the root of catalog %s, where nothing is written", layout.EncodePath(place), layout.EncodePath(root), name)
		}
	}
	return nil
}

// Within reports whether a clean path is dir, or lies below it.
func Within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Alone refuses a catalog whose root holds the workspace or another catalog's root, or lies in one of them.
func (c *Catalog) Alone(workspace string, catalogs map[layout.Name]*Catalog) error {
	home, err := filepath.Abs(workspace)
	if err != nil {
		return err
	}
	all := readMounts()
	for _, dir := range append(layout.KeptDirs(), "", layout.InboxDir) { // a folder of it may be mounted there from elsewhere
		if all.nested(c.Root, filepath.Join(home, dir)) {
			return fmt.Errorf("%s and the workspace lie in one another", layout.EncodePath(c.Root))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(catalogs)) {
		if name != c.Name && all.nested(c.Root, catalogs[name].Root) {
			return fmt.Errorf("%s and the root of catalog %s lie in one another", layout.EncodePath(c.Root), name)
		}
	}
	return nil
}

// nested reports whether one of two folders is the other, or lies in it.
func (all mounts) nested(a, b string) bool {
	return all.located(a).LiesIn(b) || all.located(b).LiesIn(a)
}

// passes reports whether dir is on the way to a path, under whatever name.
func passes(path, dir string) bool {
	at, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for {
		if on, err := os.Stat(path); err == nil && os.SameFile(on, at) {
			return true
		}
		up := filepath.Dir(path)
		if up == path {
			return false
		}
		path = up
	}
}

// mostLinks is how many links are followed that lead to what is not there, as the system does.
const mostLinks = 40

// Resolve follows the links of as much of a full path as is there.
func Resolve(path string) string {
	rest := ""
	for links := 0; ; {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		if to, err := os.Readlink(path); err == nil && links < mostLinks { // a file that is made through it is made there
			if links++; !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(path), to)
			}
			path = to
			continue
		}
		if path == filepath.Dir(path) {
			return filepath.Join(path, rest)
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}

// Of reads the catalogs of a workspace as its files are, for those who do not open it. A file that cannot be read is told
// of by those who do.
func Of(workspace string) map[layout.Name]*Catalog {
	all := map[layout.Name]*Catalog{}
	files, _ := filepath.Glob(filepath.Join(workspace, layout.CatalogsDir, "*.yaml")) // the pattern is sound
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if c, err := Parse(file, data); err == nil {
			all[c.Name] = c
		}
	}
	return all
}
