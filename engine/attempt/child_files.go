package attempt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"bagpipe/engine/folder"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
)

// moveChild moves a child's content from scratch to its item's folder; its caller
// syncs. What is in the way there is not this attempt's: sweepChildren has removed what
// dead ones left, so it is that of an engine that lost its claim and does not know yet.
func (at *Attempts) moveChild(c *child) error {
	dir := at.ledger.Path(layout.ItemDir(c.id))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	source := filepath.Join(dir, layout.SourceDir)
	if err := os.Mkdir(source, 0o777); errors.Is(err, fs.ErrExist) {
		return &steps.Later{Reason: fmt.Sprintf("%s is there already, and its item is not registered", source)}
	} else if err != nil {
		return err
	}
	return os.Rename(c.taken.Path, filepath.Join(source, c.taken.Name))
}

// sweepChildren removes what earlier attempts at the step left of children that they
// did not register. Its caller has the step's claim.
func (at *Attempts) sweepChildren(ctx context.Context, a *folder.Attempt) error {
	dir := at.ledger.Path(layout.ItemDir(a.Item))
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		key, ours := strings.CutPrefix(entry.Name(), childrenPrefix+a.Workflow+"."+string(a.Step)+".")
		if _, err := layout.ParseAttemptKey(key); !ours || err != nil {
			continue
		}
		if err := at.sweepJournal(ctx, filepath.Join(dir, entry.Name())); err != nil {
			return fmt.Errorf("remove what an attempt before left of its children: %w", err)
		}
	}
	return nil
}

// sweepJournal removes the folders of the children a journal names that are no items.
// A crash in it leaves the journal, and the next call goes on.
func (at *Attempts) sweepJournal(ctx context.Context, journal string) error {
	data, err := os.ReadFile(journal)
	if err != nil {
		return err
	}
	if err := at.ledger.Store.Refresh(ctx); err != nil { // what the dead engine committed
		return err
	}
	for line := range bytes.Lines(data) {
		id, err := layout.ParseItemID(strings.TrimSpace(string(line)))
		if err != nil {
			continue
		}
		if registered, err := at.ledger.Exists(id); err != nil || registered {
			if err != nil {
				return err
			}
			continue
		}
		child := at.ledger.Path(layout.ItemDir(id))
		if err := disk.RemoveTree(filepath.Join(child, layout.SourceDir)); err != nil {
			return err
		}
		if err := os.Remove(child); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
	}
	return removeJournal(journal)
}

func removeJournal(journal string) error {
	if err := os.Remove(journal); err != nil {
		return fmt.Errorf("forget the children: %w", err)
	}
	return disk.SyncDir(filepath.Dir(journal))
}
