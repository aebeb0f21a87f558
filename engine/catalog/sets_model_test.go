package catalog_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bagpipe/engine/catalog"
	"bagpipe/engine/inbox"
	"bagpipe/layout"

	"pgregory.net/rapid"
)

// maps in folders: a TIFF, mostly with a world file and others beside it.
type sheets struct {
	*world
	keep map[string]bool // files that keep their folders from being one object
	lone map[*thing]bool // files that were an object by themselves in the folder alone
}

// alone is a folder that is one object while one map is all that it holds.
const alone = "d"

var ends = []string{".tif", ".tfw", ".prj", ".aux.xml"}

func (s sheets) dir() string {
	dir := rapid.SampledFrom([]string{"a", "b", "a/c", alone}).Draw(s.t, "in")
	s.must(os.MkdirAll(s.at(dir), 0o755))
	for at := dir; at != "." && at != alone; at = path.Dir(at) {
		if name := path.Join(at, "stays.txt"); !s.keep[name] {
			s.must(os.WriteFile(s.at(name), []byte(at), 0o644))
			s.keep[name], s.held[name] = true, &thing{}
		}
	}
	return dir
}

func (s sheets) base() string {
	return fmt.Sprintf("s%d", rapid.IntRange(1, 3).Draw(s.t, "base"))
}

func (s sheets) put(name string) {
	s.n++
	s.must(os.WriteFile(s.at(name), []byte(fmt.Sprintf("%06d", s.n)), 0o644))
	if s.held[name] == nil {
		s.held[name] = &thing{}
	}
	s.held[name].written = true
}

// add makes a whole map, or some file of one.
func (s sheets) add(*rapid.T) {
	name := path.Join(s.dir(), s.base())
	if rapid.Bool().Draw(s.t, "whole") {
		s.put(name + ".tif")
		s.put(name + ".tfw")
	}
	s.put(name + rapid.SampledFrom(ends).Draw(s.t, "end"))
}

// moveMap renames all files of a map.
func (s sheets) moveMap(*rapid.T) {
	from, to := path.Join(s.dir(), s.base()), path.Join(s.dir(), s.base())
	if from == to || slices.ContainsFunc(ends, func(end string) bool { return s.held[to+end] != nil }) {
		return // what is written over may have the size and the time of what comes there
	}
	for _, end := range ends {
		if f := s.held[from+end]; f != nil {
			s.must(os.Rename(s.at(from+end), s.at(to+end)))
			delete(s.held, from+end)
			if s.held[to+end], f.moved = f, true; path.Dir(from) == alone {
				f.item = "" // the folder may have been the object
			}
		}
	}
}

func (s sheets) remove(*rapid.T) {
	if name, _ := s.pick(); name != "" && !s.keep[name] {
		s.must(os.Remove(s.at(name)))
		delete(s.held, name)
	}
}

// expected gives the files of each object by its main one.
func (s sheets) expected() map[string][]string {
	objects := map[string][]string{}
	for name := range s.held {
		base, _, _ := strings.Cut(path.Base(name), ".")
		if base = path.Join(path.Dir(name), base); s.held[base+".tif"] != nil && s.held[base+".tfw"] != nil {
			objects[base+".tif"] = append(objects[base+".tif"], path.Base(name))
		} else {
			objects[name] = []string{path.Base(name)}
		}
	}
	return objects
}

// whole reports whether the folder of an object is it.
func whole(objects map[string][]string, main string) bool {
	return path.Dir(main) == alone && len(objects[main]) > 1 &&
		!slices.ContainsFunc(slices.Collect(maps.Keys(objects)), func(other string) bool { return other != main && path.Dir(other) == alone })
}

// scan is a deep one; after it everything must be right.
func (s sheets) scan(*rapid.T) {
	o := catalog.Options{AcceptGone: true, Full: rapid.Bool().Draw(s.t, "full")}
	r, err := s.e.Catalog.Scan(context.Background(), "c", o)
	s.must(err)
	s.versions()
	if r.Away != "" {
		return
	}
	known, parts := map[string]layout.ItemID{}, map[string]string{}
	s.must(s.e.Catalog.Entries("c", catalog.Which{All: true}, func(e catalog.Entry) {
		switch {
		case e.Kind == "folder" && e.Path == alone && e.State == catalog.Present && e.Verdict == "yes":
			known[e.Path] = e.Item
		case e.Kind != "file" || e.State != catalog.Present || e.Verdict == "part":
		case e.Verdict == "with":
			parts[e.Path] = strings.TrimPrefix(e.Why, "part of ")
		default:
			known[e.Path] = e.Item
		}
	}))
	objects, seen := s.expected(), map[layout.ItemID]string{}
	for main, files := range objects {
		at, folder := main, whole(objects, main)
		if folder {
			at = alone
		}
		item := known[at]
		if item == "" {
			s.t.Fatalf("%s is no item; known: %v, parts: %v", main, known, parts)
		}
		if other := seen[item]; other != "" {
			s.t.Fatalf("%s and %s are one item", main, other)
		}
		seen[item] = main
		slices.SortFunc(files, func(a, b string) int {
			if mainFirst := strings.Compare(fmt.Sprint(a != path.Base(main)), fmt.Sprint(b != path.Base(main))); mainFirst != 0 {
				return mainFirst
			}
			return strings.Compare(a, b)
		})
		p := s.was[item].Source.Place
		with := files[1:]
		if folder {
			with = nil
		}
		if p.Path != at || !slices.Equal(p.With, with) && len(p.With)+len(with) > 0 {
			s.t.Fatalf("item %s is at %s with %v, not %s with %v", item, p.Path, p.With, at, with)
		}
		sum, err := inbox.Digest(s.t.Context(), s.at(main))
		if len(files) > 1 {
			sum, err = inbox.DigestFiles(s.t.Context(), filepath.Dir(s.at(main)), files)
		}
		s.must(err)
		if m := s.was[item]; m.Source.Digest != sum.Digest || m.Source.Files != len(files) {
			s.t.Fatalf("%s (item %s, version %d) has other bytes than its item's record says", main, item, m.Version)
		}
		for _, name := range with {
			name = path.Join(path.Dir(main), name)
			if parts[name] != main {
				s.t.Fatalf("%s is part of %q, not %s", name, parts[name], main)
			}
			delete(parts, name)
		}
		if path.Dir(main) == alone && len(files) == 1 {
			s.lone[s.held[main]] = true // by itself it is another object than the folder
		}
		if f := s.held[main]; !s.lone[f] && f.item != "" && f.item != item && !(f.moved && f.written) {
			s.t.Fatalf("%s was item %s, and is %s", main, f.item, item)
		}
		s.held[main].item = item
		delete(known, at)
	}
	if len(known)+len(parts) > 0 {
		s.t.Fatalf("not there, and not gone: %v, %v", known, parts)
	}
	for f := range maps.Values(s.held) {
		f.moved, f.written = false, false
	}
}

// Files that belong together are one item each, whatever happens to them, and to scans.
func TestFilesTogetherAgainstAModel(t *testing.T) {
	check(t, 15)
	rapid.Check(t, func(r *rapid.T) {
		s := sheets{newWorld(r), map[string]bool{}, map[*thing]bool{}}
		acts := map[string]func(*rapid.T){"add": s.add, "add too": s.add, "write": s.write, "touch": s.touch, "save": s.save, "moveMap": s.moveMap, "remove": s.remove,
			"forget": s.forget, "interrupted": s.interrupted, "scan": s.scan, "scan too": s.scan}
		names := slices.Sorted(maps.Keys(acts))
		for range rapid.IntRange(5, 40).Draw(r, "acts") {
			acts[rapid.SampledFrom(names).Draw(r, "act")](r)
		}
		s.scan(r)
	})
}
