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
// Outputs are synced in scratch, then put in their place by rename. What stood
// there is first moved aside, into the item's own folder:
//
//	items/3/f/a/9/ID/.replaced.STEP.ATTEMPT/content         what was content before
//	items/3/f/a/9/ID/.replaced.STEP.ATTEMPT/derived%2Fbag   what was derived/bag before
//	items/3/f/a/9/ID/.replaced.STEP.ATTEMPT/.absent         there was no content before
//
// After the commit it is removed. A crash before the commit, or a commit that is
// refused because another attempt has taken over, leaves it: whoever declares the
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

// Publish puts a result's outputs into the item's folder, durably.
func (fo *Folders) Publish(a layout.AttemptRef, scratch string, res steps.Result) error {
	if err := checkOutputs(res); err != nil {
		return err
	}
	dir, aside := fo.path(layout.ItemDir(a.Item)), fo.AsideOf(a)
	for _, o := range res.Outputs {
		from := filepath.Join(scratch, filepath.FromSlash(string(o.From)))
		if err := disk.SyncTree(from); err != nil {
			return fmt.Errorf("publish %s: %w", o.To, err)
		}
		if err := moveAside(dir, aside, o.To); err != nil {
			return fmt.Errorf("publish %s: %w", o.To, err)
		}
		to := filepath.Join(dir, filepath.FromSlash(string(o.To)))
		if err := disk.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return fmt.Errorf("publish %s: %w", o.To, err)
		}
		if err := disk.Rename(from, to); err != nil {
			return fmt.Errorf("publish %s: %w", o.To, err)
		}
	}
	for _, r := range res.Remove {
		if err := moveAside(dir, aside, r); err != nil {
			return fmt.Errorf("remove %s: %w", r, err)
		}
	}
	return nil
}

// moveAside keeps what stands at rel, or notes that there is no content.
func moveAside(dir, aside string, rel layout.RelPath) error {
	from, to := filepath.Join(dir, filepath.FromSlash(string(rel))), filepath.Join(aside, url.PathEscape(string(rel)))
	_, err := os.Lstat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist) && rel == layout.ContentDir:
		if err := disk.MkdirAll(aside, 0o777); err != nil {
			return err
		}
		return disk.WriteFile(filepath.Join(aside, absentMark), nil, 0o666)
	case errors.Is(err, fs.ErrNotExist):
		return nil // what only this step makes stands in nobody's way
	case err != nil:
		return err
	}
	if err := disk.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	return disk.Rename(from, to)
}

// PutBack undoes publish for an attempt that did not end. Its caller holds the
// step's claim, so that nobody publishes meanwhile. A crash in it leaves the rest
// to the next call: what was replaced is moved back last, by one rename.
func (fo *Folders) PutBack(a layout.AttemptRef) error {
	dir, aside := fo.path(layout.ItemDir(a.Item)), fo.AsideOf(a)
	if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := putAllBack(dir, aside); err != nil {
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
		if err != nil || !strings.HasPrefix(string(p), layout.DerivedDir+"/") {
			return fmt.Errorf("removal %s: expected a path below derived/", r)
		}
	}
	return nil
}

// ContentOf is where the object stands: content/, or, before a step published
// it, the drop itself.
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
