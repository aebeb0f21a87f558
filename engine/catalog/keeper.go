package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"
)

// Keeper scans the catalogs of a workspace, and tells how they stand.
type Keeper struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	intake   *intake.Intake

	// Racy is how old a change must be to be told from a later one by its time. It is set
	// before the first scan.
	Racy time.Duration

	counts counts

	looking sync.Mutex // held by ScanWanted

	mu     sync.Mutex // guards the rest
	wanted map[layout.Name]map[string]bool
	looks  bool // ScanWanted is at what was wanted
}

// New gives the keeper of a workspace's catalogs.
func New(l *ledger.Ledger, s *settings.Source, in *intake.Intake) *Keeper {
	return &Keeper{ledger: l, settings: s, intake: in, Racy: racy, counts: counts{by: map[layout.Name]counted{}}, wanted: map[layout.Name]map[string]bool{}}
}

// Want has an object looked at again: a step found it changed.
func (k *Keeper) Want(p layout.Place) {
	path, err := placeOf(p)
	if err != nil {
		return // the step says so
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wanted[p.Catalog] == nil {
		k.wanted[p.Catalog] = map[string]bool{}
	}
	k.wanted[p.Catalog][path] = true
}

func (k *Keeper) forget(name layout.Name) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.wanted, name)
}

// Wanted reports whether there are objects to be looked at again, or such a look has not ended.
func (k *Keeper) Wanted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.wanted) > 0 || k.looks
}

// ScanWanted looks at the objects that steps found changed, and at nothing else. It waits for the call before it.
func (k *Keeper) ScanWanted(ctx context.Context) error {
	k.looking.Lock()
	defer k.looking.Unlock()
	k.mu.Lock()
	wanted := k.wanted
	k.wanted, k.looks = map[layout.Name]map[string]bool{}, len(wanted) > 0
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.looks = false
	}()
	var errs []error
	for name, paths := range wanted {
		_, err := k.Scan(ctx, name, Options{only: slices.Sorted(maps.Keys(paths))})
		if !fault.Is(err, fault.Busy) && !fault.Is(err, fault.NotFound) { // another scan sees them
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
