package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"bagpipe/engine/inbox"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// checkBytes refuses to let a robot at an item whose bytes are elsewhere.
func (e *Engine) checkBytes(ctx context.Context, rec *record) error {
	why, err := e.missing(ctx, rec.manifest, rec.execution)
	if err != nil {
		return steps.SystemFailure("look for the item's bytes: %w", err)
	}
	if why != "" {
		return steps.SystemFailure("%s, then: bagpipe step retry", why)
	}
	return nil
}

// missing says what of an item's bytes is not here; "" is nothing. An item, or a new
// version of one, that came by a push brought its records alone. What lies in the folder
// may then be an earlier version, which looks like the item and is not.
func (e *Engine) missing(ctx context.Context, m layout.Manifest, x *state.Execution) (why string, err error) {
	name, err := layout.DecodePath(m.Source.Name)
	if err != nil {
		return "", fmt.Errorf("the source's name in %s: %w", layout.ManifestJSON, err)
	}
	source := filepath.Join(e.path(layout.ItemDir(m.Item)), layout.SourceDir, name)
	_, err = os.Lstat(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bytesElsewhere(m, x), nil
	case err != nil:
		return "", err
	case m.Version < 2 || e.hasVersionDir(m.Item, m.Version-1):
		return "", nil
	}
	// Whoever took the version in here has kept the one before, or removed it since.
	sum, err := inbox.Digest(ctx, source)
	if err == nil && sum.Digest != m.Source.Digest {
		why = bytesElsewhere(m, x)
	}
	return why, err
}

// notHere says that a new version waits for the bytes of the one that it replaces: kept
// under versions/, what lies in the folder would pass for them. Asked again and again
// while a drop waits, it looks at the bytes now and then.
func (e *Engine) notHere(rec *record) string {
	const lookAgain = 30 * time.Second
	id, now := rec.manifest.Item, e.clock()
	e.away.Lock()
	defer e.away.Unlock()
	if was, there := e.away.of[id]; there && was.digest == rec.manifest.Source.Digest && now.Sub(was.at) < lookAgain {
		return was.why
	}
	delete(e.away.of, id)
	why, err := e.missing(context.Background(), rec.manifest, rec.execution)
	if err != nil {
		why = err.Error()
	}
	if why == "" {
		return ""
	}
	if e.away.of == nil {
		e.away.of = map[layout.ItemID]elsewhere{}
	}
	why = fmt.Sprintf("waits for item %s: %s", id.Short(), why)
	e.away.of[id] = elsewhere{digest: rec.manifest.Source.Digest, why: why, at: now}
	return why
}

// away is what notHere found wanting lately.
type away struct {
	sync.Mutex // guards of
	of         map[layout.ItemID]elsewhere
}

type elsewhere struct {
	digest, why string
	at          time.Time
}

// bytesElsewhere says what is missing, and where it is.
func bytesElsewhere(m layout.Manifest, x *state.Execution) string {
	what := ""
	if m.Version > 1 {
		what = fmt.Sprintf("version %d of ", m.Version)
	}
	return fmt.Sprintf("the bytes of %sitem %s are not in this workspace: its records came by a push, and %s does not hold %s/%s as it was dropped; they are in the workspace that took it in (%s). Replace %s, %s, %s and %s there by those of that workspace",
		what, m.Item.Short(), layout.ItemDir(m.Item), layout.SourceDir, m.Source.Name, takenBy(m, x),
		layout.SourceDir, layout.ContentDir, layout.DerivedDir, layout.VersionsDir)
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
