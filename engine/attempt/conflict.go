package attempt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"bagpipe/engine/folder"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"

	"github.com/tidwall/gjson"
)

// The rules are: steps of an item that run side by side may both add, and none overwrites
// what another made meanwhile. What an attempt is about to replace (content, something below
// derived/, a key of the metadata) is held against what its robot was given: where another
// attempt that ended since has changed it, this one fails and leaves it as it is. Who
// replaces files holds the lock of the item's folder from that look until its end is
// committed, so of two one is first; the other sees what it changed, or, after a crash, that
// somebody did who has not ended, and comes again later.

// given is an item as the robot of an attempt was given it.
type given struct {
	manifest, execution []byte // as committed; nil: not known
	places              map[layout.RelPath]os.FileInfo
	since               time.Time    // of an attempt that an engine before prepared: what changed later is another's
	lock                func() error // ends that of the item's folder, held while its files are replaced; nil: not held
}

// conflictError is how an attempt fails that would overwrite what another made meanwhile.
type conflictError struct{ with, what string }

func (e *conflictError) Error() string {
	return fmt.Sprintf("in conflict with %s: %s was changed meanwhile; nothing of it was overwritten", e.with, e.what)
}

// look notes how the item stands.
func (g *given) look(dir string, step layout.Name, manifest, execution []byte) {
	g.manifest, g.execution, g.places = manifest, execution, map[layout.RelPath]os.FileInfo{}
	note := func(rel string) {
		if info, err := os.Lstat(filepath.Join(dir, rel)); err == nil {
			g.places[layout.RelPath(rel)] = info
		}
	}
	note(layout.ContentDir)
	for _, below := range []string{layout.DerivedDir, layout.DerivedDir + "/" + string(step)} {
		if below != layout.DerivedDir && g.places[layout.RelPath(below)] == nil {
			break
		}
		names, err := disk.Names(filepath.Join(dir, below))
		if err != nil {
			continue // there is nothing that could be overwritten
		}
		for _, n := range names {
			note(below + "/" + n.Name)
		}
	}
}

// changed gives what stands at to, where that is not what stood there; else nil.
func (g *given) changed(dir string, to layout.RelPath) os.FileInfo {
	now, err := os.Lstat(filepath.Join(dir, looked(to)))
	if err != nil {
		return nil
	}
	was := g.places[layout.RelPath(looked(to))]
	if was == nil || !os.SameFile(was, now) || !was.ModTime().Equal(now.ModTime()) || !g.since.IsZero() && putThere(now).After(g.since) {
		return now
	}
	return nil
}

// looked is the part of a place that look notes.
func looked(to layout.RelPath) string {
	parts := strings.Split(string(to), "/")
	return strings.Join(parts[:min(len(parts), 3)], "/")
}

// putThere is when what stands somewhere was put there: an attempt's end gives it its name.
func putThere(info os.FileInfo) time.Time {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctim.Unix())
	}
	return time.Time{}
}

// lockFolder waits until no other attempt replaces files of the item.
func (g *given) lockFolder(dir string) (err error) {
	if g.lock, err = disk.LockDir(dir); errors.Is(err, fs.ErrNotExist) {
		return nil // there is nothing in it that could be overwritten
	}
	return err
}

func (g *given) unlock() {
	if g.lock != nil {
		_ = g.lock() // nothing was written
		g.lock = nil
	}
}

// check holds what the result of an attempt replaces against what its robot was given; from then
// on the item's folder is locked.
func (g *given) check(l *ledger.Ledger, own layout.AttemptRef, result steps.Result) error {
	dir := l.Path(layout.ItemDir(own.Item))
	if g.places == nil || len(result.Outputs)+len(result.Remove) == 0 {
		return nil
	}
	if err := g.lockFolder(dir); err != nil {
		return err
	}
	places := slices.Clone(result.Remove)
	for _, o := range result.Outputs {
		places = append(places, o.To)
	}
	for _, to := range places {
		now := g.changed(dir, to)
		if to == layout.SourceDir || now == nil {
			continue
		}
		_, rec, err := l.ReadTip(own.Item, own.Workflow)
		if err != nil {
			return err
		}
		with := g.endedSince(rec.Execution, own, to, putThere(now))
		if with == "" {
			return &steps.Later{Reason: fmt.Sprintf("%s was changed meanwhile by who has not ended", to)}
		}
		return steps.SystemFailure("%w", &conflictError{with, string(to)})
	}
	return nil
}

// endedSince names the attempt of another step that ended since the robot was given the item, and
// first after what stands at to was put there, which is at: one of the step that derived/STEP/ is
// named after, else any. Where the clocks do not tell, or at is zero, all that ended since.
func (g *given) endedSince(now *state.Execution, own layout.AttemptRef, to layout.RelPath, at time.Time) string {
	before, err := state.Decode(g.execution)
	if err != nil {
		return ""
	}
	var all []string
	first, ended, named := "", time.Time{}, false
	for _, name := range now.Names() {
		for step, s := range now.Workflows[name].Steps {
			if name == own.Workflow && step == own.Step {
				continue
			}
			for key, a := range s.Attempts {
				_, was := before.Find(name, step)
				if a.Ended.IsZero() || was != nil && !was.Attempts[key].Ended.IsZero() {
					continue
				}
				text := fmt.Sprintf("%s of attempt %s", step, key)
				all = append(all, text)
				during := !at.IsZero() && a.State == state.Completed && !at.Before(a.Started.Add(-clockGrain)) && !at.After(a.Ended.Add(clockGrain))
				its := strings.HasPrefix(string(to)+"/", layout.DerivedDir+"/"+string(step)+"/")
				if during && (first == "" || its && !named || its == named && a.Ended.Before(ended)) {
					first, ended, named = text, a.Ended, its
				}
			}
		}
	}
	if first != "" {
		return first
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// clockGrain is how far the times of a file system may be from those of records.
const clockGrain = 10 * time.Millisecond

// setBy names the attempt that set a value of an item's manifest last, or whoever did; "": the
// history does not tell.
func (a *Attempts) setBy(ctx context.Context, item layout.ItemID, path string) (with string, err error) {
	file, value := layout.ItemDir(item)+"/"+layout.ManifestJSON, ""
	for c, err := range a.ledger.Store.History(ctx, gitstore.HistoryOptions{Path: file}) {
		if err != nil {
			return "", err
		}
		v, err := a.ledger.Store.At(c.Hash)
		if err != nil {
			return "", err
		}
		data, err := v.ReadFile(file)
		if err != nil {
			return "", err
		}
		now := gjson.GetBytes(data, path).Raw
		if now == "" || with != "" && now != value {
			break
		}
		said := map[string]string{}
		for _, t := range c.Trailers {
			said[t.Key] = t.Value
		}
		with, value = c.Author.Name, now
		if said["Bagpipe-Attempt"] != "" {
			with = said["Bagpipe-Step"] + " of attempt " + said["Bagpipe-Attempt"]
		}
	}
	return with, nil
}

// checkMetadata holds the metadata that a result sets against what the robot was given. It is
// asked in the commit of the attempt's end.
func (g *given) checkMetadata(rec *ledger.Record, own layout.AttemptRef, sets map[string]any) error {
	if g.manifest == nil || len(sets) == 0 || bytes.Equal(g.manifest, rec.Committed.Manifest) {
		return nil
	}
	was, err := layout.DecodeManifest(g.manifest)
	if err != nil {
		return err
	}
	key := overwritten("", was.Metadata, rec.Manifest.Metadata, sets)
	if key == "" {
		return nil
	}
	with := g.endedSince(rec.Execution, own, "", time.Time{})
	if with == "" {
		with = "a person's change"
	}
	return &conflictError{with, "metadata." + key}
}

// overwritten is the first key that sets would give another value, and that has another one
// now than it had; "": none.
func overwritten(under string, was, now, sets map[string]any) string {
	for _, key := range slices.Sorted(maps.Keys(sets)) {
		is, there := now[key]
		if !there || reflect.DeepEqual(is, was[key]) || reflect.DeepEqual(is, sets[key]) {
			continue
		}
		isBelow, one := is.(map[string]any)
		setBelow, two := sets[key].(map[string]any)
		if one && two {
			wasBelow, _ := was[key].(map[string]any)
			if found := overwritten(under+key+".", wasBelow, isBelow, setBelow); found != "" {
				return found
			}
			continue
		}
		return under + key
	}
	return ""
}

// putBack puts back what a dead attempt replaced, while no other replaces files of the item.
func putBack(fo *folder.Folders, dir string, a layout.AttemptRef) error {
	var g given
	defer g.unlock()
	return errors.Join(g.lockFolder(dir), fo.PutBack(a))
}
