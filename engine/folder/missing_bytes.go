package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/inbox"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Missing says what of an item's bytes is not here; "" is nothing. An item, or a new
// version of one, that came by a push brought its records alone. What lies in the folder
// may then be an earlier version, which looks like the item and is not.
func (fo *Folders) Missing(ctx context.Context, m layout.Manifest, x *state.Execution) (why string, err error) {
	if m.Source.Place != nil || m.Source.Bare() { // PlaceChanged tells; there are none
		return "", nil
	}
	name, err := layout.DecodePath(m.Source.Name)
	if err != nil {
		return "", fmt.Errorf("the source's name in %s: %w", layout.ManifestJSON, err)
	}
	source := filepath.Join(fo.path(layout.ItemDir(m.Item)), layout.SourceDir, name)
	_, err = os.Lstat(source)
	switch {
	case errors.Is(err, fs.ErrNotExist) && fo.recovered(m, x):
		return "", nil
	case errors.Is(err, fs.ErrNotExist):
		return bytesElsewhere(m, x), nil
	case err != nil:
		return "", err
	case m.Version < 2 || fo.HasVersionDir(m.Item, m.Version-1):
		return "", nil
	}
	// Whoever took the version in here has kept the one before, or removed it since.
	sum, err := inbox.Digest(ctx, source)
	if err == nil && sum.Digest != m.Source.Digest {
		why = bytesElsewhere(m, x)
	}
	return why, err
}

// RecoveredBy begins the message of a step that ended by a recovery from deposits.
const RecoveredBy = "recovered from "

// recovered reports whether the item's object was brought back from a deposit, which does not
// bring back the archive that it was unpacked from.
func (fo *Folders) recovered(m layout.Manifest, x *state.Execution) bool {
	_, err := os.Lstat(filepath.Join(fo.path(layout.ItemDir(m.Item)), layout.ContentDir))
	return err == nil && lastSaid(x, m.Since, RecoveredBy) != ""
}

// Freed is what was said when the source of the item's present version was removed, as it
// had been deposited; empty: it was not.
func Freed(m layout.Manifest, x *state.Execution) string {
	return lastSaid(x, m.Since, "removed "+layout.SourceDir)
}

// lastSaid is what the last completed attempt said, of workflows begun since then, whose
// message begins so; empty: none did.
func lastSaid(x *state.Execution, since time.Time, begin string) (said string) {
	var last time.Time
	for _, w := range x.Workflows {
		if w.Created.Before(since) {
			continue
		}
		for _, s := range w.Steps {
			for _, a := range s.Attempts {
				if a.State == state.Completed && strings.HasPrefix(a.Message, begin) && !a.Ended.Before(last) {
					last, said = a.Ended, a.Message
				}
			}
		}
	}
	return said
}

// bytesElsewhere says what is missing, and where it may be. Whether the records came by a
// push they do not tell.
func bytesElsewhere(m layout.Manifest, x *state.Execution) string {
	what, since := "", m.Created
	if m.Version > 1 {
		what, since = fmt.Sprintf("version %d of ", m.Version), m.Since
	}
	kept := ""
	if at, _, _ := strings.Cut(lastSaid(x, time.Time{}, "deposited "), ";"); at != "" {
		kept = bagKept + at
	}
	if freed := Freed(m, x); freed != "" {
		return fmt.Sprintf("the bytes of item %s were removed from this workspace once they were deposited (%s)%s; the steps before that need them put back into %s/%s",
			m.Item.Short(), freed, kept, layout.ItemDir(m.Item), layout.SourceDir)
	}
	return fmt.Sprintf("the bytes of %sitem %s"+absent+"%s does not hold %s/%s as it was dropped%s. It was taken in at %s by %s: if that was here, they were deleted, or not restored; if the records came by a push, they are in the workspace that took it in. Put %s, %s, %s and %s back from there, or from a backup",
		what, m.Item.Short(), layout.ItemDir(m.Item), layout.SourceDir, m.Source.Name, kept, layout.FormatTime(since), takenBy(m, x),
		layout.SourceDir, layout.ContentDir, layout.DerivedDir, layout.VersionsDir)
}

// What a step says whose item's bytes are not in the workspace.
const (
	absent  = " are not in this workspace: "
	bagKept = "; its bag is kept, "
	// NotHere is what a step says that waits for the bytes of another site's item.
	NotHere = "the item's bytes are not here"
)

// SaysAbsent reports whether a step's message is that the item's bytes are not in the workspace.
func SaysAbsent(message string) bool {
	return strings.Contains(message, NotHere) || strings.Contains(message, absent)
}

// FromDeposit names the item's deposited bag among the places that bytes come from.
const FromDeposit = "deposit"

// KeptAt is FromDeposit where a step's message says that the item's bag is kept; empty: it does not.
func KeptAt(message string) string {
	if strings.Contains(message, bagKept) {
		return FromDeposit
	}
	return ""
}

// takenBy is who registered the version that an item is at, as HOST:PID.
func takenBy(m layout.Manifest, x *state.Execution) string {
	for _, name := range x.Names() {
		w := x.Workflows[name]
		if w.Created.Before(m.Since) {
			continue
		}
		for _, s := range w.Steps {
			for _, a := range s.Attempts {
				if a.Claimed.IsZero() && a.Started.Equal(w.Created) && a.Runner != "" {
					return a.Runner
				}
			}
		}
	}
	return "unknown"
}

func (fo *Folders) HasVersionDir(item layout.ItemID, n int) bool {
	_, err := os.Lstat(fo.path(layout.VersionDir(item, n)))
	return err == nil
}

// HasBytes reports whether an item's folder holds what was dropped, or what became of it.
func (fo *Folders) HasBytes(item layout.ItemID) bool { return hasBytes(fo.path(layout.ItemDir(item))) }

func hasBytes(dir string) bool {
	for _, part := range []string{layout.ContentDir, layout.SourceDir} {
		if _, err := os.Lstat(filepath.Join(dir, part)); err == nil {
			return true
		}
	}
	return false
}

// AwaitsBytes reports whether a step with that message, of an item with that folder, waits for bytes that are at another site.
func AwaitsBytes(message, dir string) bool {
	return strings.Contains(message, NotHere) && !hasBytes(dir)
}
