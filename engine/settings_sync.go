package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The rules are: a settings file in the workspace and its committed version are
// brought together by the next command and, ten times a minute, by a running
// engine.
//
//	on disk                 committed               then
//	as committed            -                       nothing
//	as last shown           changed (a push)        the file is rewritten
//	edited                  as last shown           checked; committed, or refused and left
//	edited                  changed                 the edit is kept as NAME.edited-TIME, reported; the file rewritten
//	new                     absent                  checked; committed, or refused and left
//	deleted                 as last shown           the deletion is committed (bagpipe.yaml is restored)
//	missing, never shown    there                   the file is written
//
// "As last shown" is remembered in .bagpipe/settings.json. Without that entry a
// file that is as some version in its history was shown then, for a person's
// edit is in no history; any other is taken for an edit.

const shownFile = layout.StateDir + "/settings.json"

// shown maps a settings path to the digest of what was last written or read
// there as committed.
type shown map[string]string

// syncSettings does the above and reads the settings in force.
func (e *Engine) syncSettings(ctx context.Context) error {
	e.syncTurn.Lock()
	defer e.syncTurn.Unlock()
	v, err := e.store.Tip()
	if err != nil {
		return err
	}
	if !e.o.ReadOnly {
		if err := e.syncFiles(ctx, v); err != nil {
			return err
		}
		if v, err = e.store.Tip(); err != nil {
			return err
		}
	}
	c, err := e.loadConfig(ctx, v)
	if err != nil {
		return err
	}
	if c.mark, err = settingsMark(v); err != nil {
		return err
	}
	e.mu.Lock()
	e.config = c
	e.mu.Unlock()
	for _, told := range e.onSettings {
		told(c)
	}
	return nil
}

// syncFiles takes in what was edited in place, and shows what is committed.
func (e *Engine) syncFiles(ctx context.Context, v gitstore.View) error {
	seen := e.readShown()
	before := fmt.Sprint(seen)
	paths, err := e.allSettings(v)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if err := e.syncFile(ctx, v, p, seen); err != nil {
			return err
		}
	}
	if fmt.Sprint(seen) != before {
		return e.writeShown(seen)
	}
	return nil
}

// allSettings lists the settings paths committed or on disk, sorted.
func (e *Engine) allSettings(v gitstore.View) ([]string, error) {
	paths, err := settingsPaths(v)
	if err != nil {
		return nil, err
	}
	paths = append(paths, layout.SettingsFile)
	for _, dir := range []string{layout.WorkflowsDir, layout.RulesDir, layout.QueuesDir} {
		entries, err := os.ReadDir(e.path(dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look for settings: %w", err)
		}
		for _, entry := range entries {
			if p := dir + "/" + entry.Name(); entry.Type().IsRegular() && isSettings(p) {
				paths = append(paths, p)
			}
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	// Workflows first, as the others name them.
	slices.SortStableFunc(paths, func(a, b string) int {
		return cmp.Compare(strings.Count(b, layout.WorkflowsDir+"/"), strings.Count(a, layout.WorkflowsDir+"/"))
	})
	return paths, nil
}

func (e *Engine) syncFile(ctx context.Context, v gitstore.View, p string, seen shown) error {
	committed, err := v.ReadFile(p)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", p, err)
	}
	onDisk, err := os.ReadFile(e.path(p))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", p, err)
	}
	isThere, isCommitted := onDisk != nil, committed != nil
	if isThere && seen[p] == "" && !bytes.Equal(onDisk, committed) {
		if err := e.rememberShown(ctx, v, p, onDisk, seen); err != nil {
			return err
		}
	}
	switch {
	case isThere && isCommitted && bytes.Equal(onDisk, committed):
		seen[p] = digestOf(committed)
		return nil
	case !isThere && !isCommitted:
		delete(seen, p)
		return nil
	case !isThere && seen[p] == digestOf(committed) && p != layout.SettingsFile:
		return e.commitSetting(ctx, p, committed, nil, seen)
	case !isThere:
		return e.showSetting(p, committed, seen)
	case !isCommitted && seen[p] == digestOf(onDisk): // deleted by a push
		delete(seen, p)
		return os.Remove(e.path(p))
	case !isCommitted:
		return e.commitSetting(ctx, p, nil, onDisk, seen)
	case seen[p] == digestOf(onDisk):
		return e.showSetting(p, committed, seen)
	case seen[p] == "" || seen[p] == digestOf(committed):
		return e.commitSetting(ctx, p, committed, onDisk, seen)
	}
	kept := p + ".edited-" + e.o.Now().UTC().Format("20060102T150405Z")
	if err := disk.Rename(e.path(p), e.path(kept)); err != nil {
		return fmt.Errorf("keep the edited %s: %w", p, err)
	}
	e.o.Warn(fmt.Sprintf("%s was edited in place while another version was committed; your edit is kept as %s, the committed one is in force", p, kept))
	return e.showSetting(p, committed, seen)
}

// rememberShown finds out whether a file that is not remembered, as after
// rm -rf .bagpipe, is what an older commit holds. It was shown then, and what was
// committed since must not be taken back by it.
func (e *Engine) rememberShown(ctx context.Context, v gitstore.View, p string, onDisk []byte, seen shown) error {
	if known, err := e.store.HoldsBlob(onDisk); err != nil || !known {
		return err
	}
	for c, err := range e.store.History(ctx, gitstore.HistoryOptions{Path: p, From: v.Commit()}) {
		if err != nil {
			return fmt.Errorf("look for %s in the history: %w", p, err)
		}
		old, err := e.store.At(c.Hash)
		if err != nil {
			return err
		}
		data, err := old.ReadFile(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s at %s: %w", p, c.Hash, err)
		}
		if bytes.Equal(data, onDisk) {
			seen[p] = digestOf(onDisk)
			return nil
		}
	}
	return nil
}

// showSetting writes the committed version into the workspace. A crash before
// writeShown leaves a file that is as committed: found so at the next start.
func (e *Engine) showSetting(p string, committed []byte, seen shown) error {
	if err := disk.MkdirAll(filepath.Dir(e.path(p)), 0o777); err != nil {
		return err
	}
	if err := disk.WriteFile(e.path(p), committed, 0o666); err != nil {
		return err
	}
	seen[p] = digestOf(committed)
	return nil
}

// commitSetting checks an edit and commits it as the person's; a refused one is
// reported and left where it is. edited nil is a deletion.
func (e *Engine) commitSetting(ctx context.Context, p string, committed, edited []byte, seen shown) error {
	verb := "changed"
	switch {
	case edited == nil:
		verb = "removed"
	case committed == nil:
		verb = "added"
	}
	refused, err := e.checkEdit(p, edited)
	if err != nil {
		return err
	}
	if refused != nil && edited == nil {
		e.o.Warn(refused.Error())
		return e.showSetting(p, committed, seen)
	}
	if refused != nil {
		note := "the committed version stays in force"
		if committed == nil {
			note = "it is not in force"
		}
		if committed == nil && path.Dir(p) == layout.RulesDir {
			note = "until it is put right, or removed, all drops wait"
		}
		e.o.Warn(fmt.Sprintf("%v; %s", refused, note))
		return nil
	}
	if err := e.putSetting(ctx, p, committed, edited, verb); err != nil {
		return err
	}
	delete(seen, p)
	if edited != nil {
		seen[p] = digestOf(edited)
	}
	return nil
}

// checkEdit says what is wrong with an edited settings file, by itself or with
// what it says of others.
func (e *Engine) checkEdit(p string, edited []byte) (refused *layout.FileError, err error) {
	if edited != nil {
		err = e.checkFile(p, edited)
	}
	if err == nil {
		var v gitstore.View
		if v, err = e.store.Tip(); err == nil {
			err = e.crossCheck(v, p, edited)
		}
	}
	if errors.As(err, &refused) {
		return refused, nil
	}
	return nil, err
}

// putSetting commits one settings file, unless another writer changed it since.
func (e *Engine) putSetting(ctx context.Context, p string, was, data []byte, verb string) error {
	_, err := e.store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		now, err := r.ReadFile(p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if (now == nil) == (data == nil) && bytes.Equal(now, data) {
			return nil, nil // another process committed the same edit
		}
		if (now == nil) != (was == nil) || !bytes.Equal(now, was) {
			return nil, fmt.Errorf("%s was changed by another writer just now; run the command again", p)
		}
		who := e.byPerson()
		return &gitstore.Change{Files: map[string][]byte{p: data}, Author: who.author,
			Message: message("settings: "+verb+" "+p, "", []trailer{{"Bagpipe-Settings", p}, {"Bagpipe-Agent", who.agent}})}, nil
	})
	return err
}

// noteSettings asks for settings that others committed to be read; an observer.
func (e *Engine) noteSettings(a gitstore.Advance) {
	for _, c := range a.Changes {
		if isSettings(c.Path) && c.Foreign {
			e.markDirty()
		}
	}
}

func (e *Engine) markDirty() {
	select {
	case e.dirty <- struct{}{}:
	default:
	}
}

func (e *Engine) readShown() shown {
	seen := shown{}
	data, err := os.ReadFile(e.path(shownFile))
	if err != nil || json.Unmarshal(data, &seen) != nil {
		return shown{} // absent or damaged: rebuilt
	}
	return seen
}

func (e *Engine) writeShown(seen shown) error {
	data, err := layout.EncodeJSON(seen)
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(e.path(layout.StateDir), 0o777); err != nil {
		return err
	}
	return disk.WriteFile(e.path(shownFile), data, 0o666)
}

// Workflows lists the definitions in force by name.
func (e *Engine) Workflows() []string {
	c := e.current()
	names := make([]string, 0, len(c.workflows))
	for n := range c.workflows {
		names = append(names, n)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
