package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// Find looks for the workspace from dir upward.
func Find(dir string) (root string, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", abs)
	}
	for d := abs; ; d = filepath.Dir(d) {
		if isWorkspace(d) {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fault.New(fault.NotFound, fmt.Sprintf("no workspace in %s or above it; is it mounted?", abs), fault.Remedy{Verb: fault.Init})
		}
	}
}

// orClone says of a clone of a workspace that it is one: made bare, as a repository that is
// none would have to be, it would be a second workspace with all records and no bytes.
func orClone(root string, err error) error {
	var with *gitstore.NotBare
	if !errors.As(err, &with) || with.Origin == "" {
		return err
	}
	if _, there := os.Lstat(filepath.Join(root, layout.StateDir)); there == nil {
		return err
	}
	return &fault.Error{Kind: fault.Refused, Text: fmt.Sprintf("%s is a clone of a workspace, to edit its settings in and push them; the workspace is where it was cloned from: %s", root, with.Origin),
		Remedies: []fault.Remedy{{Verb: fault.CheckSettings, Name: root}}}
}

// CheckOwner answers a *ledger.Foreign where the workspace root belongs to another account than
// this process acts as.
func CheckOwner(root string) error { return ledger.CheckOwner(root) }

// isWorkspace wants both the repository and a sign of Bagpipe, as a repository
// alone is anybody's; bagpipe.yaml may have been deleted by hand.
func isWorkspace(dir string) bool {
	if info, err := os.Stat(filepath.Join(dir, layout.RepositoryDir)); err != nil || !info.IsDir() {
		return false
	}
	for _, sign := range []string{layout.SettingsFile, layout.InboxDir, layout.ItemsDir} {
		if _, err := os.Stat(filepath.Join(dir, sign)); err == nil {
			return true
		}
	}
	return false
}
