package engine

import (
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

// OnlyClone refuses, in a clone of a workspace, what only the workspace can do; nil: root is
// none. Made bare, as a repository that is none would have to be, a clone would be a second
// workspace with all records and no bytes.
func OnlyClone(dir string) error {
	root, err := Find(dir)
	if err != nil {
		return nil
	}
	of := gitstore.CloneOf(root)
	if of == "" {
		return nil
	}
	return &fault.Error{Kind: fault.Refused, Text: fmt.Sprintf("%s is a clone of a workspace: look, act on items and edit settings here, and push; what else changes the workspace is done there, in %s", root, layout.EncodePath(of)),
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
