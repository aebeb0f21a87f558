package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
)

// The rules are:
//
// What stands in an output's place is first moved aside, into the item's own folder:
//
//	items/3/f/a/9/ID/.replaced.STEP.ATTEMPT/content         what was content before
//	items/3/f/a/9/ID/.replaced.STEP.ATTEMPT/derived%2Fbag   what was derived/bag before
//	items/3/f/a/9/ID/.replaced.STEP.ATTEMPT/.absent         there was no content before
//
// Where that there was no content is all that is to be kept, it is a file:
//
//	items/3/f/a/9/ID/.replaced.STEP.ATTEMPT
//
// One round makes the outputs' bytes in scratch and what was moved aside durable. Only
// then are the outputs renamed to their places, which a second round makes durable.
//
// After the commit what was moved aside is removed. A crash before the commit, or a
// commit that is refused because another attempt has taken over, leaves it: whoever declares the
// attempt lost puts everything back first, so that the step runs again on what it
// ran on before. A crash after the commit leaves it too; who finds that attempt's
// scratch, and sees that the attempt has ended, removes it. It is not in .bagpipe,
// as that may be deleted and this may be the only copy.

const (
	replacedPrefix = ".replaced."
	absentMark     = ".absent"
)

// AsideOf is where an attempt keeps what its outputs replaced.
func (fo *Folders) AsideOf(a layout.AttemptRef) string {
	return filepath.Join(fo.path(layout.ItemDir(a.Item)), replacedPrefix+string(a.Step)+"."+a.Key.String())
}

// ReplacedBy reads the name of a folder that AsideOf gives.
func ReplacedBy(name string) (step layout.Name, key layout.AttemptKey, is bool) {
	rest, is := strings.CutPrefix(name, replacedPrefix)
	last := strings.LastIndexByte(rest, '.')
	if !is || last < 0 {
		return "", key, false
	}
	key, err := layout.ParseAttemptKey(rest[last+1:])
	return layout.Name(rest[:last]), key, err == nil
}

// Publish puts a result's outputs into the item's folder, durably. writing was begun
// before the first of them was written.
func (fo *Folders) Publish(a layout.AttemptRef, scratch string, writing *disk.Writing, res steps.Result) error {
	if err := checkOutputs(res); err != nil {
		return err
	}
	if len(res.Outputs)+len(res.Remove) == 0 {
		return nil
	}
	p := &publication{dir: fo.path(layout.ItemDir(a.Item)), aside: fo.AsideOf(a), alone: len(res.Outputs)+len(res.Remove) == 1}
	var trees, folders []string
	for _, o := range res.Outputs {
		trees = append(trees, filepath.Join(scratch, filepath.FromSlash(string(o.From))))
		if err := p.moveAside(o.To); err != nil {
			return fmt.Errorf("publish %s: %w", o.To, err)
		}
	}
	for _, r := range res.Remove {
		if err := p.moveAside(r); err != nil {
			return fmt.Errorf("remove %s: %w", r, err)
		}
		if strings.HasPrefix(string(r), layout.DerivedDir+"/") {
			continue
		}
		// By source a version is known to have been moved in; without content the source
		// would be the object.
		if err := os.Mkdir(filepath.Join(p.dir, string(r)), 0o750); err != nil {
			return fmt.Errorf("remove %s: %w", r, err)
		}
	}
	if err := writing.Durable(trees, p.changed); err != nil || len(trees) == 0 {
		return err
	}
	for i, o := range res.Outputs {
		to := filepath.Join(p.dir, filepath.FromSlash(string(o.To)))
		err := os.MkdirAll(filepath.Dir(to), 0o777)
		if err == nil {
			err = os.Rename(trees[i], to)
		}
		if err != nil {
			return fmt.Errorf("publish %s: %w", o.To, err)
		}
		folders = append(folders, disk.FoldersTo(p.dir, filepath.Dir(to))...)
	}
	return writing.Durable(nil, folders)
}

// publication is the way of one attempt's outputs into the item's folder.
type publication struct {
	dir, aside string
	alone      bool     // it has one place
	changed    []string // folders whose names moveAside changed, and a mark without a folder
}

// moveAside keeps what stands at rel, or notes that there is no content.
func (p *publication) moveAside(rel layout.RelPath) error {
	from, to := filepath.Join(p.dir, filepath.FromSlash(string(rel))), filepath.Join(p.aside, url.PathEscape(string(rel)))
	_, err := os.Lstat(from)
	absent := errors.Is(err, fs.ErrNotExist)
	switch {
	case absent && rel != layout.ContentDir:
		return nil // what only this step makes stands in nobody's way
	case err != nil && !absent:
		return err
	}
	p.changed = append(p.changed, p.dir, p.aside, filepath.Dir(from))
	if absent && p.alone {
		return disk.Overwrite(p.aside, nil, 0o666)
	}
	if err := os.Mkdir(p.aside, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if absent {
		return disk.Overwrite(filepath.Join(p.aside, absentMark), nil, 0o666)
	}
	return os.Rename(from, to)
}

// PutBack undoes publish for an attempt that did not end. Its caller holds the
// step's claim, so that nobody publishes meanwhile. A crash in it leaves the rest
// to the next call: what was replaced is moved back last, by one rename.
func (fo *Folders) PutBack(a layout.AttemptRef) error {
	dir, aside := fo.path(layout.ItemDir(a.Item)), fo.AsideOf(a)
	info, err := os.Lstat(aside)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && info.Mode().IsRegular():
		err = disk.RemoveTree(filepath.Join(dir, layout.ContentDir))
	default:
		err = putAllBack(dir, aside)
	}
	if err != nil {
		return fmt.Errorf("put back what attempt %s replaced: %w", a.Key, err)
	}
	return fo.ForgetReplaced(a)
}

func putAllBack(dir, aside string) error {
	entries, err := os.ReadDir(aside)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == absentMark {
			if err := disk.RemoveTree(filepath.Join(dir, layout.ContentDir)); err != nil {
				return err
			}
			continue
		}
		rel, err := url.PathUnescape(entry.Name())
		if err != nil {
			return err
		}
		place := filepath.Join(dir, filepath.FromSlash(rel))
		if err := disk.RemoveTree(place); err != nil {
			return err
		}
		if err := disk.Rename(filepath.Join(aside, entry.Name()), place); err != nil {
			return err
		}
	}
	return nil
}

// ForgetReplaced removes what an attempt that has ended replaced.
func (fo *Folders) ForgetReplaced(a layout.AttemptRef) error {
	aside := fo.AsideOf(a)
	if err := disk.RemoveTree(aside); err != nil {
		return fmt.Errorf("remove what attempt %s replaced: %w", a.Key, err)
	}
	return nil
}

// checkOutputs holds robots to what they may change: content and derived/.
func checkOutputs(res steps.Result) error {
	for _, o := range res.Outputs {
		if _, err := layout.ParseRelPath(string(o.From)); err != nil {
			return fmt.Errorf("output: %w", err)
		}
		to, err := layout.ParseRelPath(string(o.To))
		if err != nil {
			return fmt.Errorf("output: %w", err)
		}
		if to != layout.ContentDir && !strings.HasPrefix(string(to), layout.DerivedDir+"/") {
			return fmt.Errorf("output %s: expected content, or a path below derived/", o.To)
		}
	}
	for _, r := range res.Remove {
		p, err := layout.ParseRelPath(string(r))
		if err != nil || p != layout.SourceDir && p != layout.ContentDir && !strings.HasPrefix(string(p), layout.DerivedDir+"/") {
			return fmt.Errorf("removal %s: expected source, content, or a path below derived/", r)
		}
	}
	return nil
}

// ContentOf is where the object stands: content/, or, before a step published
// it, the drop itself. An empty content is one that was removed.
func ContentOf(dir string) string {
	content := filepath.Join(dir, layout.ContentDir)
	if _, err := os.Lstat(content); err == nil {
		return content
	}
	source := filepath.Join(dir, layout.SourceDir)
	entries, err := os.ReadDir(source)
	if err == nil && len(entries) == 1 && entries[0].IsDir() {
		return filepath.Join(source, entries[0].Name())
	}
	return source
}
