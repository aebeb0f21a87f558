package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bagpipe/engine/inbox"
	"bagpipe/layout"
	"bagpipe/steps"
)

// checkBytes refuses to let a robot at an item whose bytes are elsewhere: an item, or a
// new version of one, that came by a push brought its records alone. What lies in the
// folder may then be an earlier version, which looks like the item and is not.
func (e *Engine) checkBytes(ctx context.Context, rec *record) error {
	m := rec.manifest
	name, err := layout.DecodePath(m.Source.Name)
	if err != nil {
		return steps.SystemFailure("the source's name in %s: %w", layout.ManifestJSON, err)
	}
	source := filepath.Join(e.path(layout.ItemDir(m.Item)), layout.SourceDir, name)
	_, err = os.Lstat(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return e.bytesElsewhere(rec)
	case err != nil:
		return steps.SystemFailure("look at the source: %w", err)
	case m.Version < 2 || e.hasVersionDir(m.Item, m.Version-1):
		return nil
	}
	// Whoever took the version in here has kept the one before, or removed it since.
	sum, err := inbox.Digest(ctx, source)
	if err != nil {
		return steps.SystemFailure("verify the source: %w", err)
	}
	if sum.Digest != m.Source.Digest {
		return e.bytesElsewhere(rec)
	}
	return nil
}

// bytesElsewhere says what is missing, and where it is.
func (e *Engine) bytesElsewhere(rec *record) error {
	m, what := rec.manifest, ""
	if m.Version > 1 {
		what = fmt.Sprintf("version %d of ", m.Version)
	}
	return steps.SystemFailure("the bytes of %sitem %s are not in this workspace: its records came by a push, and %s does not hold %s/%s as it was dropped; they are in the workspace that took it in (%s). Replace %s, %s, %s and %s there by those of that workspace, then: bagpipe step retry",
		what, m.Item.Short(), layout.ItemDir(m.Item), layout.SourceDir, m.Source.Name, takenBy(rec),
		layout.SourceDir, layout.ContentDir, layout.DerivedDir, layout.VersionsDir)
}

// takenBy is who registered the version that an item is at, as HOST:PID.
func takenBy(rec *record) string {
	for _, name := range rec.execution.Names() {
		w := rec.execution.Workflows[name]
		if w.Created.Before(rec.manifest.Since) {
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
