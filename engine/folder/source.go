package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/inbox"
	"bagpipe/layout"
)

// The rules are: source/ holds the drop, and nothing else, with the digest that the
// manifest has. The digest is the judge. Files that bear the stamp which they had before
// they were read the last time are not read again, nor are files that a step has given
// further names since, all of them: the bag that shares them is held against their digests.
// A step that follows at once on another finds change times too young to tell anything by;
// of names alone the modification times tell, which are the drop's.
// Stamps are kept in memory: a new engine reads the files once more.

// changedText parts a source's name from its change, in the failure of a step.
const changedText = " changed after it was taken in: "

// ChangeText words a change that SourceChanged found, for the failure of a step.
func ChangeText(m layout.Manifest, change string) string {
	return layout.SourceDir + "/" + m.Source.Name + changedText + change
}

// ChangedSource is the source that a step failed for, relative to the item's folder; ok
// reports whether the step failed for that.
func ChangedSource(failure string) (path string, ok bool) {
	path, _, ok = strings.Cut(failure, changedText)
	if !ok || !strings.HasPrefix(path, layout.SourceDir+"/") {
		return "", false
	}
	path, err := layout.DecodePath(path)
	return path, err == nil
}

// verifiedSources are the stamps of sources that had their digest.
type verifiedSources struct {
	sync.Mutex // guards of
	of         map[string]verifiedSource
}

// verifiedSource is a stamp from before the source was read.
type verifiedSource struct {
	inbox.Stamp
	proves bool // a source with the same stamp has the same bytes; else Linked alone may be asked
}

// mostVerified bounds the stamps that are kept: 8 MB.
const mostVerified = 64 << 10

// SourceChanged says how an item's source differs from what was taken in; "" is not at
// all. committed is the item's inventory, nil where there is none: it tells which file.
func (fo *Folders) SourceChanged(ctx context.Context, m layout.Manifest, committed []byte) (change string, err error) {
	if m.Source.Bare() {
		return "", nil
	}
	name, err := layout.DecodePath(m.Source.Name)
	if err != nil {
		return "", fmt.Errorf("the source's name in %s: %w", layout.ManifestJSON, err)
	}
	dir := filepath.Join(fo.path(layout.ItemDir(m.Item)), layout.SourceDir)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", nil // Missing judges whether it may be
	}
	stamp, proves, err := inbox.StampOf(ctx, dir, fo.now())
	if err != nil {
		return "", err
	}
	known := dir + "\t" + m.Source.Digest
	now := verifiedSource{stamp, proves}
	if was, ok := fo.verified.stamp(known); ok && (proves && was == now || was.Linked(stamp)) {
		if proves {
			fo.verified.note(known, now)
		}
		return "", nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.Name() != name {
			return fmt.Sprintf("source/%s came to it", layout.EncodePath(e.Name())), nil
		}
	}
	sum, err := inbox.Digest(ctx, filepath.Join(dir, name))
	var bad *inbox.BadError
	switch {
	case errors.As(err, &bad) && bad.Rule != inbox.RuleUnreadable:
		return bad.Error(), nil
	case errors.Is(err, inbox.ErrChanged):
		return "a program writes to it", nil
	case err != nil:
		return "", err
	case sum.Digest == m.Source.Digest:
		if proves || stamp.ProvesLinked() {
			fo.verified.note(known, now)
		}
		return "", nil
	}
	return howChanged(ctx, filepath.Join(dir, name), m, committed, sum)
}

func (v *verifiedSources) stamp(known string) (verifiedSource, bool) {
	v.Lock()
	defer v.Unlock()
	was, ok := v.of[known]
	return was, ok
}

func (v *verifiedSources) note(known string, s verifiedSource) {
	v.Lock()
	defer v.Unlock()
	if v.of == nil || len(v.of) >= mostVerified {
		v.of = map[string]verifiedSource{}
	}
	v.of[known] = s
}

// howChanged words the difference: the first file that differs, and the totals.
func howChanged(ctx context.Context, path string, m layout.Manifest, committed []byte, sum inbox.Sum) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		if sum.Bytes != m.Source.Bytes {
			return fmt.Sprintf("it has %d bytes, and had %d", sum.Bytes, m.Source.Bytes), nil
		}
		return fmt.Sprintf("its digest is %s, and was %s", sum.Digest, m.Source.Digest), nil
	}
	was := layout.Inventory{}
	if committed != nil {
		if was, err = layout.DecodeInventory(committed); err != nil {
			return "", err
		}
	}
	totals := fmt.Sprintf("%d bytes (files: %d) are there, %d (files: %d) were taken in", sum.Bytes, sum.Files, m.Source.Bytes, m.Source.Files)
	var first string
	if len(was.Files) == m.Source.Files && was.Bytes() == m.Source.Bytes { // the content is what was dropped
		first, err = firstChange(ctx, path, was.Files)
	} else {
		first, err = lastWritten(path, m.Source.Taken)
	}
	if first != "" {
		totals = first + "; " + totals
	}
	return totals, err
}

// firstChange finds the first file below dir that is not as the inventory has it.
func firstChange(ctx context.Context, dir string, was map[string]layout.InventoryFile) (change string, err error) {
	seen := map[string]bool{}
	err = eachFile(dir, func(rel string, info fs.FileInfo) error {
		name := layout.EncodePath(rel)
		seen[name] = true
		f, ok := was[name]
		switch {
		case !ok:
			change = name + " came to it"
		case f.Size != info.Size():
			change = fmt.Sprintf("%s has %d bytes, and had %d", name, info.Size(), f.Size)
		default:
			sum, err := inbox.Digest(ctx, filepath.Join(dir, rel))
			if err != nil || sum.Digest == "sha256:"+f.SHA256 {
				return err
			}
			change = name + " has other bytes"
		}
		return fs.SkipAll
	})
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if change == "" && err == nil && !seen[name] {
			return name + " is gone", nil
		}
	}
	return change, err
}

// lastWritten finds the file below dir that was written to last, after it was taken in.
func lastWritten(dir string, taken time.Time) (change string, err error) {
	err = eachFile(dir, func(rel string, info fs.FileInfo) error {
		if info.ModTime().After(taken) {
			change, taken = layout.EncodePath(rel)+" was written to", info.ModTime()
		}
		return nil
	})
	return change, err
}

func eachFile(dir string, do func(rel string, info fs.FileInfo) error) error {
	return filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return do(at[len(dir)+1:], info)
	})
}
