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

	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
)

// moveChild moves a child's content from scratch to its item's folder; the caller syncs.
// sweep has removed what dead attempts left, so a folder in the way belongs to an engine
// that lost its claim and does not know yet.
func (cs *children) moveChild(c *child) error {
	dir := cs.ledger.Path(layout.ItemDir(c.id))
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

// sweep removes the folders that earlier attempts at the step left of children they did
// not register. The caller has the step's claim.
func (cs *children) sweep(ctx context.Context) error {
	a := cs.attempt
	dir := cs.ledger.Path(layout.ItemDir(a.Item))
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
		if err := cs.sweepJournal(ctx, filepath.Join(dir, entry.Name())); err != nil {
			return fmt.Errorf("remove what an attempt before left of its children: %w", err)
		}
	}
	return nil
}

// sweepJournal removes the folders of a journal's children that are no items. A crash in
// it leaves the journal, and the next call goes on.
func (cs *children) sweepJournal(ctx context.Context, journal string) error {
	data, err := os.ReadFile(journal)
	if err != nil {
		return err
	}
	if err := cs.ledger.Store.Refresh(ctx); err != nil { // what the dead engine committed
		return err
	}
	for line := range bytes.Lines(data) {
		id, err := layout.ParseItemID(strings.TrimSpace(string(line)))
		if err != nil {
			continue
		}
		if registered, err := cs.ledger.Exists(id); err != nil || registered {
			if err != nil {
				return err
			}
			continue
		}
		child := cs.ledger.Path(layout.ItemDir(id))
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
