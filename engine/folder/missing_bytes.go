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
	name, err := layout.DecodePath(m.Source.Name)
	if err != nil {
		return "", fmt.Errorf("the source's name in %s: %w", layout.ManifestJSON, err)
	}
	source := filepath.Join(fo.path(layout.ItemDir(m.Item)), layout.SourceDir, name)
	_, err = os.Lstat(source)
	switch {
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

// depositOf is what the last deposit of an item said; empty: nothing was deposited.
func depositOf(x *state.Execution) (said string) {
	var last time.Time
	for _, w := range x.Workflows {
		for _, s := range w.Steps {
			for _, a := range s.Attempts {
				if a.State == state.Completed && strings.HasPrefix(a.Message, "deposited ") && !a.Ended.Before(last) {
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
	why := fmt.Sprintf("the bytes of %sitem %s are not in this workspace: %s does not hold %s/%s as it was dropped. It was taken in at %s by %s: if that was here, they were deleted, or not restored; if the records came by a push, they are in the workspace that took it in. Put %s, %s, %s and %s back from there, or from a backup",
		what, m.Item.Short(), layout.ItemDir(m.Item), layout.SourceDir, m.Source.Name, layout.FormatTime(since), takenBy(m, x),
		layout.SourceDir, layout.ContentDir, layout.DerivedDir, layout.VersionsDir)
	if at := depositOf(x); at != "" {
		why += "; what was deposited is kept: " + at
	}
	return why
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
				if a.Started.Equal(w.Created) && a.Runner != "" {
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
