package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// ErrIsWorkspace refuses a folder that is to become a workspace.
var ErrIsWorkspace = errors.New("is a workspace already")

// placeFile names the site that a restored workspace is to become.
const placeFile = layout.StateDir + "/restoring"

// BecomesSite reports whether the workspace at root was restored to become the site, and did not.
func BecomesSite(root string, place layout.Name) bool {
	data, err := os.ReadFile(filepath.Join(root, placeFile))
	return err == nil && string(data) == string(place)
}

// SiteIsRestored forgets what the workspace at root was to become.
func SiteIsRestored(root string) error { return layout.RemoveIfThere(filepath.Join(root, placeFile)) }

// Restore makes the repository of a workspace at dir from its history. dir may be there with
// the folders of a backup in it, or what a killed restore left, and nothing else. The folders of bytes are the caller's to
// copy, before or after. Where the caller makes it the site place afterwards, BecomesSite knows
// until SiteIsRestored.
func Restore(ctx context.Context, history, dir string, place layout.Name, o Options) error {
	return restore(ctx, "restore", history, dir, o, func(root, git string) error {
		if place == "" {
			return nil
		}
		return disk.WriteFile(filepath.Join(root, placeFile), []byte(place), 0o600)
	})
}

// restore is Restore; first is done to the repository git before it gets its name in root. Errors begin with what is done.
func restore(ctx context.Context, what, history, dir string, o Options, first func(root, git string) error) error {
	root, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if outer, ok := enclosing(root); ok {
		if outer == root {
			return fmt.Errorf("%s %w", root, ErrIsWorkspace)
		}
		return fmt.Errorf("%s lies in the workspace %s", root, outer)
	}
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	of := []string{layout.ItemsDir, layout.InboxDir, layout.IntakeDir, layout.RejectedDir, layout.StateDir, "store", layout.RepositoryDir + ".restoring"}
	for _, e := range entries {
		if !slices.Contains(of, e.Name()) {
			return fmt.Errorf("%s holds %s: a restore wants an empty folder, or one with the folders of a backup alone (items, inbox, intake, rejected, store)", root, layout.EncodePath(e.Name()))
		}
	}
	made := entries == nil
	if err := disk.MkdirAll(root, 0o777); err != nil {
		return err
	}
	ready := func(git string) error {
		err := errors.Join(makeFolders(root), installHooks(git, o.Program))
		if err != nil {
			return err
		}
		return first(root, git)
	}
	if err := gitstore.Restore(ctx, history, root, ready); err != nil {
		if made {
			os.Remove(root) // nothing is left of a restore that was refused
		}
		return fmt.Errorf("%s %s: %w", what, root, err)
	}
	return nil
}

// makeFolders makes those of a workspace that are missing, but for items/: one that is empty
// would look as if it had been restored.
func makeFolders(root string) error {
	for dir, perm := range map[string]fs.FileMode{layout.IntakeDir: 0o750, layout.RejectedDir: 0o750, layout.StateDir: 0o750, layout.InboxDir + "/default": 0o777} {
		if err := disk.MkdirAll(filepath.Join(root, dir), perm); err != nil {
			return err
		}
	}
	return nil
}
