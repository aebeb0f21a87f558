package disposal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/steps/target"
)

// errDeliveries is a target where items are delivered: those are taken back, not removed.
var errDeliveries = errors.New("no bags are deposited there")

// target opens a target by the settings in force. One that is to have a copy is not made anew
// where its folder is not there.
func (k *Keeper) target(name layout.Name, has bool) (target.Target, error) {
	set := k.Settings.Current().Settings
	config, is := set.Target(k.Ledger.Root, string(name), set.StoreDir(k.Ledger.Root))
	if !is {
		return nil, fmt.Errorf("the settings do not have it any more, and it has a copy")
	}
	if !config.Deposits() {
		return nil, errDeliveries
	}
	if has && config.Kind == target.KindFolder {
		if err := mounted(config.Path); err != nil {
			return nil, err
		}
	}
	return k.Targets.Take(name, config)
}

// mounted refuses a folder without the mark of a target: what it holds is elsewhere.
func mounted(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, layout.StoreFile)); err != nil {
		return &target.Down{Err: fmt.Errorf("the folder %s has no %s: is it mounted?", layout.EncodePath(dir), layout.StoreFile)}
	}
	return nil
}

func (k *Keeper) storeAt(own string) target.Config {
	return target.Config{Kind: target.KindFolder, Path: settings.Below(k.Ledger.Root, own)}
}

// reachable asks a target for a copy, without reading it. A copy that is not in its place may
// be anywhere, and keeps the item.
func reachable(ctx context.Context, t target.Target, c layout.DepositCopy) error {
	_, _, err := t.Check(ctx, c, target.Exists)
	var wrong *target.Damage
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("its copy is not in its place; if it is lost, a check that mends makes it again")
	case errors.As(err, &wrong): // it goes all the same
		return nil
	}
	return err
}

// isAway reports whether a target could not be asked.
func isAway(err error) bool {
	var down *target.Down
	return errors.As(err, &down)
}
