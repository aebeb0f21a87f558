package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
)

// The rules are:
//
// Outputs are synced in scratch, then put in their place by one rename each:
// where something stands already the two are exchanged, so there is no instant
// without either. What was replaced is in scratch then and goes with it, after
// the commit.
//
// A crash before the commit leaves outputs of an attempt that never ended. The
// step is resumed by the next engine, and being idempotent publishes the same
// again. A crash after the commit leaves scratch, which the next engine removes.

// publish puts a result's outputs into the item's folder, durably.
func (e *Engine) publish(id layout.ItemID, scratch string, res steps.Result) error {
	dir := e.path(layout.ItemDir(id))
	if err := checkOutputs(res); err != nil {
		return err
	}
	for _, o := range res.Outputs {
		from := filepath.Join(scratch, filepath.FromSlash(string(o.From)))
		to := filepath.Join(dir, filepath.FromSlash(string(o.To)))
		if err := disk.SyncTree(from); err != nil {
			return fmt.Errorf("publish %s: %w", o.To, err)
		}
		if err := disk.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return fmt.Errorf("publish %s: %w", o.To, err)
		}
		if err := disk.Replace(from, to); err != nil {
			return fmt.Errorf("publish %s: %w", o.To, err)
		}
	}
	for i, r := range res.Remove {
		from := filepath.Join(dir, filepath.FromSlash(string(r)))
		err := disk.Rename(from, filepath.Join(scratch, fmt.Sprintf(".removed-%d", i)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", r, err)
		}
	}
	return nil
}

// checkOutputs holds robots to what they may change: content and derived/.
func checkOutputs(res steps.Result) error {
	for _, o := range res.Outputs {
		if _, err := layout.ParseRelPath(string(o.From)); err != nil {
			return fmt.Errorf("output: %w", err)
		}
		to, err := layout.ParseRelPath(string(o.To))
		if err != nil {
			return fmt.Errorf("output: %w", err)
		}
		if to != layout.ContentDir && !strings.HasPrefix(string(to), layout.DerivedDir+"/") {
			return fmt.Errorf("output %s: expected content, or a path below derived/", o.To)
		}
	}
	for _, r := range res.Remove {
		p, err := layout.ParseRelPath(string(r))
		if err != nil || !strings.HasPrefix(string(p), layout.DerivedDir+"/") {
			return fmt.Errorf("removal %s: expected a path below derived/", r)
		}
	}
	return nil
}

// contentOf is where the object stands: content/, or, before a step published
// it, the drop itself.
func contentOf(dir string) string {
	content := filepath.Join(dir, layout.ContentDir)
	if _, err := os.Lstat(content); err == nil {
		return content
	}
	source := filepath.Join(dir, layout.SourceDir)
	entries, err := os.ReadDir(source)
	if err == nil && len(entries) == 1 && entries[0].IsDir() {
		return filepath.Join(source, entries[0].Name())
	}
	return source
}
