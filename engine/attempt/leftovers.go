package attempt

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"bagpipe/engine/folder"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// ForgetLeftovers removes from all items' folders what attempts replaced that have ended,
// and whose scratch folder, which would name them, is gone: of steps that need none, and
// after .bagpipe was deleted.
func (r *Recovery) ForgetLeftovers(ctx context.Context) error {
	var errs []error
	dirs := []string{r.ledger.Path(layout.ItemsDir)}
	for range 5 { // items/3/f/a/9/ID
		var below []string
		for _, dir := range dirs {
			entries, err := os.ReadDir(dir)
			if err != nil {
				continue // told where it is used
			}
			for _, e := range entries {
				if e.IsDir() {
					below = append(below, filepath.Join(dir, e.Name()))
				}
			}
		}
		dirs = below
	}
	for _, dir := range dirs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if item, err := layout.ParseItemID(filepath.Base(dir)); err == nil {
			errs = append(errs, r.forgetOf(item, dir))
		}
	}
	return errors.Join(errs...)
}

func (r *Recovery) forgetOf(item layout.ItemID, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // told where it is used
	}
	var errs []error
	for _, e := range entries {
		step, key, is := folder.ReplacedBy(e.Name())
		if !is {
			continue
		}
		if ended, err := r.endedAll(item, step, key); err == nil && ended {
			errs = append(errs, r.folder.ForgetReplaced(layout.AttemptRef{Item: item, Step: step, Key: key}))
		}
	}
	return errors.Join(errs...)
}

// endedAll reports whether an attempt ended, in each workflow of the item that has it.
func (r *Recovery) endedAll(item layout.ItemID, step layout.Name, key layout.AttemptKey) (bool, error) {
	_, rec, err := r.ledger.ReadTip(item, "")
	if err != nil {
		return false, err
	}
	found := false
	for _, w := range rec.Execution.Workflows {
		if s := w.Steps[step]; s != nil {
			if a, has := s.Attempts[key]; has {
				if found = true; a.State == state.InProgress {
					return false, nil
				}
			}
		}
	}
	return found, nil
}
