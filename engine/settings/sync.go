package settings

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
	"sync/atomic"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"golang.org/x/sync/errgroup"
)

// The rules are: a settings file in the workspace and its committed version are
// brought together by the next command and, within a second, by a running engine (edits.go),
// which also looks at all of them ten times a minute.
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
// "As last shown" is remembered in .bagpipe/settings.json. A committed file that has no
// entry there, and any where the list is lost, was shown if it is as some version in its
// history, for a person's edit is in none; every other is taken for an edit. So a file that
// was removed and is put back as it was is new.

const shownFile = layout.StateDir + "/settings.json"

// shown maps a settings path to the digest of what was last written or read
// there as committed.
type shown map[string]string

// syncSettings does the above and reads the settings in force.
func (so *Source) Sync(ctx context.Context) error {
	so.syncTurn.Lock()
	defer so.syncTurn.Unlock()
	v, err := so.ledger.Store.Tip()
	if err != nil {
		return err
	}
	if !so.ledger.ReadOnly {
		if err := so.syncFiles(ctx, v); err != nil {
			return err
		}
		if v, err = so.ledger.Store.Tip(); err != nil {
			return err
		}
	}
	c, err := so.loadConfig(ctx, v)
	if err != nil {
		return err
	}
	if c.mark, err = settingsMark(v); err != nil {
		return err
	}
	so.mu.Lock()
	so.config = c
	so.mu.Unlock()
	for _, told := range so.onSettings {
		told(c)
	}
	return nil
}

// syncFiles takes in what was edited in place, and shows what is committed.
func (so *Source) syncFiles(ctx context.Context, v gitstore.View) error {
	seen, lost := so.readShown()
	before := fmt.Sprint(seen)
	paths, err := so.allSettings(v)
	if err != nil {
		return err
	}
	if err := recall(ctx, so, v, paths, seen, lost); err != nil {
		return err
	}
	last := ""
	together := &together{seen: seen}
	for _, p := range paths {
		if dir := path.Dir(p); dir != last { // files of one folder may name those of another
			if err := together.commit(ctx, so); err != nil {
				return err
			}
			last = dir
		}
		if err := so.syncFile(ctx, v, p, seen, lost, together); err != nil {
			return err
		}
	}
	if err := together.commit(ctx, so); err != nil {
		return err
	}
	if fmt.Sprint(seen) != before {
		return so.writeShown(seen)
	}
	return nil
}

// allSettings lists the settings paths committed or on disk, sorted.
func (so *Source) allSettings(v gitstore.View) ([]string, error) {
	paths, err := Paths(v)
	if err != nil {
		return nil, err
	}
	paths = append(paths, layout.SettingsFile)
	for _, dir := range settingsDirs {
		entries, err := os.ReadDir(so.ledger.Path(dir))
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

func (so *Source) syncFile(ctx context.Context, v gitstore.View, p string, seen shown, lost bool, together *together) error {
	committed, err := v.ReadFile(p)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", p, err)
	}
	onDisk, err := disk.ReadFile(so.ledger.Path(p))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", p, err)
	}
	isThere, isCommitted := onDisk != nil, committed != nil
	switch {
	case isThere && isCommitted && bytes.Equal(onDisk, committed):
		delete(so.refused, p)
		seen[p] = ledger.DigestOf(committed)
		return nil
	case !isThere && !isCommitted:
		delete(seen, p)
		return nil
	case !isThere && seen[p] == ledger.DigestOf(committed) && p != layout.SettingsFile:
		return so.commitSetting(ctx, p, committed, nil, seen, together)
	case !isThere:
		return so.showSetting(p, committed, seen)
	case !isCommitted && seen[p] == ledger.DigestOf(onDisk): // deleted by a push
		delete(seen, p)
		if lost { // it may be a person's
			so.ledger.Warn(p + " is as a commit had it, and another removed it since; the file is taken away")
		}
		return os.Remove(so.ledger.Path(p))
	case !isCommitted:
		return so.commitSetting(ctx, p, nil, onDisk, seen, together)
	case seen[p] == ledger.DigestOf(onDisk):
		return so.showSetting(p, committed, seen)
	case seen[p] == "" || seen[p] == ledger.DigestOf(committed):
		return so.commitSetting(ctx, p, committed, onDisk, seen, together)
	}
	kept := p + ".edited-" + so.ledger.Now().UTC().Format("20060102T150405Z")
	if err := disk.Rename(so.ledger.Path(p), so.ledger.Path(kept)); err != nil {
		return fmt.Errorf("keep the edited %s: %w", p, err)
	}
	so.ledger.Warn(fmt.Sprintf("%s was edited in place while another version was committed; your edit is kept as %s, the committed one is in force", p, kept))
	return so.showSetting(p, committed, seen)
}

// recall remembers of files that are not remembered, as after rm -rf .bagpipe, which were shown. The
// store is asked once for the bytes of all of them: thousands may be new.
func recall(ctx context.Context, so *Source, v gitstore.View, paths []string, seen shown, lost bool) error {
	var unknown []string
	var files [][]byte
	for _, p := range paths {
		if seen[p] != "" {
			continue
		}
		onDisk, err := os.ReadFile(so.ledger.Path(p))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", p, err)
		}
		committed, err := v.ReadFile(p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read %s: %w", p, err)
		}
		if (committed != nil || lost) && !bytes.Equal(onDisk, committed) {
			unknown, files = append(unknown, p), append(files, onDisk)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	held, err := so.ledger.Store.HoldsBlobs(files)
	if err != nil {
		return err
	}
	for i, p := range unknown {
		if held[i] {
			if err := so.rememberShown(ctx, v, p, files[i], seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// rememberShown finds out whether a file that is not remembered, and whose bytes some commit may
// hold, is what an older commit holds. It was shown then, and what was committed since must not
// be taken back by it.
func (so *Source) rememberShown(ctx context.Context, v gitstore.View, p string, onDisk []byte, seen shown) error {
	for c, err := range so.ledger.Store.History(ctx, gitstore.HistoryOptions{Path: p, From: v.Commit()}) {
		if err != nil {
			return fmt.Errorf("look for %s in the history: %w", p, err)
		}
		old, err := so.ledger.Store.At(c.Hash)
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
			seen[p] = ledger.DigestOf(onDisk)
			return nil
		}
	}
	return nil
}

// showSetting writes the committed version into the workspace. A crash before
// writeShown leaves a file that is as committed: found so at the next start.
func (so *Source) showSetting(p string, committed []byte, seen shown) error {
	if err := disk.MkdirAll(filepath.Dir(so.ledger.Path(p)), 0o777); err != nil {
		return err
	}
	if err := disk.WriteFile(so.ledger.Path(p), committed, 0o666); err != nil {
		return err
	}
	seen[p] = ledger.DigestOf(committed)
	return nil
}

// commitSetting checks an edit and commits it as the person's; a refused one is
// reported and left where it is. edited nil is a deletion.
func (so *Source) commitSetting(ctx context.Context, p string, committed, edited []byte, seen shown, together *together) error {
	verb := "changed"
	switch {
	case edited == nil:
		verb = "removed"
	case committed == nil:
		verb = "added"
	}
	refused, err := so.CheckEdit(p, edited)
	if err != nil {
		return err
	}
	if refused != nil && edited == nil {
		so.ledger.Warn(refused.Error())
		return so.showSetting(p, committed, seen)
	}
	if refused != nil {
		note := "the committed version stays in force"
		if committed == nil {
			note = "it is not in force"
		}
		if committed == nil && path.Dir(p) == layout.RulesDir {
			note = "until it is put right, or removed, all drops and deliveries wait"
		}
		if text := fmt.Sprintf("%v; %s", refused, note); so.refused[p] != text { // each look at the settings finds it again
			so.refused[p] = text
			so.ledger.Warn(text)
		}
		return nil
	}
	delete(so.refused, p)
	together.edits = append(together.edits, edit{p, committed, edited, verb})
	if independent(path.Dir(p)) {
		return nil
	}
	return together.commit(ctx, so)
}

// edit is a file that was checked, and is to be committed.
type edit struct {
	path     string
	was, now []byte // nil: there is none
	verb     string
}

// together are edits of one folder that are committed side by side, each by a commit of its own, so that
// a group of commits waits for the disk once. A crash leaves some that the next sync finds as committed.
// The commits stand in the order of the edits: each request takes the next edit as the store comes to it.
type together struct {
	seen  shown
	edits []edit
}

// independent reports whether no file of a folder says anything of another there.
func independent(dir string) bool { return dir == layout.SchedulesDir || dir == layout.QueuesDir }

// mostTogether is how many edits are handed to the store at once.
const mostTogether = 256

func (t *together) commit(ctx context.Context, so *Source) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(mostTogether)
	var taken atomic.Int64
	for range t.edits {
		group.Go(func() error {
			var mine *edit
			_, err := so.ledger.Store.Commit(gctx, func(r gitstore.Reader) (*gitstore.Change, error) {
				if mine == nil { // not again, where another writer moved the branch
					mine = &t.edits[taken.Add(1)-1]
				}
				return mine.change(so.ledger, r)
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, e := range t.edits {
		if delete(t.seen, e.path); e.now != nil {
			t.seen[e.path] = ledger.DigestOf(e.now)
		}
	}
	t.edits = nil
	return nil
}

// CheckEdit says what is wrong with an edited settings file, by itself or with
// what it says of others.
func (so *Source) CheckEdit(p string, edited []byte) (refused *layout.FileError, err error) {
	if edited != nil {
		err = so.check.checkEdit(p, edited)
	}
	if err == nil {
		var v gitstore.View
		if v, err = so.ledger.Store.Tip(); err == nil {
			var defs map[string]*state.Definition
			if defs, err = so.check.definitionsAt(v); err == nil {
				err = so.check.crossCheck(v, defs, p, edited)
			}
		}
		if err == nil {
			var was []byte
			if was, err = v.ReadFile(p); err == nil || errors.Is(err, fs.ErrNotExist) {
				err = so.check.checkPast(p, was, edited, so.ledger.Now())
			}
		}
	}
	if errors.As(err, &refused) {
		return refused, nil
	}
	return nil, err
}

// PutSetting commits one settings file, unless another writer changed it since.
func (so *Source) PutSetting(ctx context.Context, p string, was, data []byte, verb string) error {
	_, err := so.ledger.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		return (&edit{p, was, data, verb}).change(so.ledger, r)
	})
	return err
}

// change makes the commit of an edit; nil: it is committed already.
func (e *edit) change(l *ledger.Ledger, r gitstore.Reader) (*gitstore.Change, error) {
	now, err := r.ReadFile(e.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if (now == nil) == (e.now == nil) && bytes.Equal(now, e.now) {
		return nil, nil // another process committed the same edit
	}
	if (now == nil) != (e.was == nil) || !bytes.Equal(now, e.was) {
		return nil, fmt.Errorf("%s was changed by another writer just now; run the command again", e.path)
	}
	who := l.ByPerson()
	return &gitstore.Change{Files: map[string][]byte{e.path: e.now}, Author: who.Author,
		Message: ledger.Message("settings: "+e.verb+" "+e.path, "", []ledger.Trailer{{"Bagpipe-Settings", e.path}, {"Bagpipe-Agent", who.Agent}})}, nil
}

// NoteSettings asks for settings that others committed to be read; an observer.
func (so *Source) NoteSettings(a gitstore.Advance) {
	for _, c := range a.Changes {
		if isSettings(c.Path) && c.Foreign {
			so.MarkDirty()
		}
	}
}

func (so *Source) MarkDirty() {
	select {
	case so.dirty <- struct{}{}:
	default:
	}
}

// readShown reads the list; lost: it is absent or damaged, and is built anew.
func (so *Source) readShown() (seen shown, lost bool) {
	data, err := os.ReadFile(so.ledger.Path(shownFile))
	if err != nil || json.Unmarshal(data, &seen) != nil || seen == nil {
		return shown{}, true
	}
	return seen, false
}

func (so *Source) writeShown(seen shown) error {
	data, err := layout.EncodeJSON(seen)
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(so.ledger.Path(layout.StateDir), 0o777); err != nil {
		return err
	}
	return disk.WriteFile(so.ledger.Path(shownFile), data, 0o666)
}
