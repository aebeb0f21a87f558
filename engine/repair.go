package engine

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"

	"bagpipe/engine/claim"
	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// Repair replaces the damaged and missing objects of the workspace at root: from the copies of
// records in the items' folders, from its remotes, and from repositories. No engine may be at
// work. The workspace is not opened, as it may be too damaged for that.
func Repair(ctx context.Context, root string, from []string, o Options) (gitstore.Mended, error) {
	if err := CheckOwner(root); err != nil {
		return gitstore.Mended{}, err
	}
	engines, err := claim.NewObserver(root, o.Host, o.Now).Engines()
	if err != nil {
		return gitstore.Mended{}, err
	}
	for _, e := range engines {
		if e.Alive {
			return gitstore.Mended{}, fault.New(fault.Busy, fmt.Sprintf("engine %s (%s:%d) is at work; repair while none is", e.ID, e.Host, e.PID))
		}
	}
	if len(from) == 0 {
		if from, err = gitstore.Remotes(ctx, root); err != nil {
			return gitstore.Mended{}, err
		}
	}
	return gitstore.MendObjects(ctx, root, from, func(yield func(string) bool) { committedCopies(root, yield) })
}

// committedCopies names the files of a workspace that may be as they were committed.
func committedCopies(root string, yield func(string) bool) {
	bytes := map[string]bool{layout.SourceDir: true, layout.ContentDir: true, layout.DerivedDir: true, "logs": true}
	for _, dir := range []string{layout.SettingsFile, layout.ItemsDir, layout.WorkflowsDir, layout.RulesDir, layout.QueuesDir, layout.SchedulesDir, layout.CatalogsDir, layout.BatchesDir, "controls"} {
		stopped := false
		_ = filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // what cannot be read is had from elsewhere
			case d.IsDir() && bytes[d.Name()]:
				return fs.SkipDir
			case d.Type().IsRegular() && !yield(path):
				stopped = true
				return fs.SkipAll
			}
			return nil
		})
		if stopped {
			return
		}
	}
}
