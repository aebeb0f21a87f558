package catalog

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// force is whether a catalog that is scanned is in the settings still.
type force struct {
	name   layout.Name
	ledger *ledger.Ledger
	stop   context.CancelCauseFunc
	looked atomic.Int64 // when it was last asked for objects, in nanoseconds
}

// removedError ends a scan whose catalog was removed meanwhile.
type removedError struct{ name layout.Name }

func (r *removedError) Error() string {
	return fmt.Sprintf("catalog %s was removed while it was scanned; no more items are made for it", r.name)
}

// askedEach is how often a scan asks whether its catalog stands, while it makes items.
const askedEach = 100 * time.Millisecond

// check answers a *removedError where a catalog is no more in the settings at v, and ends the scan.
func (f *force) check(v gitstore.Reader) error {
	file, err := ledger.ReadOptional(v, fileOf(f.name))
	if err != nil || file != nil {
		return err
	}
	removed := &removedError{f.name}
	f.stop(removed)
	return removed
}

// checkNow is check at the tip, now and then.
func (f *force) checkNow() error {
	last, now := f.looked.Load(), time.Now().UnixNano()
	if now-last < int64(askedEach) || !f.looked.CompareAndSwap(last, now) {
		return nil
	}
	v, err := f.ledger.Store.Tip()
	if err != nil {
		return err
	}
	return f.check(v)
}

// fileOf is the settings file of a catalog.
func fileOf(name layout.Name) string { return layout.CatalogsDir + "/" + string(name) + ".yaml" }
