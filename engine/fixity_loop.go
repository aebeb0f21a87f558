package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"bagpipe/engine/ask"
	"bagpipe/engine/fixity"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

const (
	fixityLook  = 30 * time.Second // how often a run looks whether copies are due
	fixityYield = time.Second      // between looks whether steps are ready
	// fixityPatience is how long the next copy waits for steps: a workspace that is never idle has
	// its copies looked at, slowly, all the same.
	fixityPatience = 15 * time.Minute
)

// keepFixity looks at the copies that are due while the run watches, and mends them; one engine of a
// machine does. It begins with no copy while steps are ready.
func (r *run) keepFixity(ctx context.Context) {
	tick := time.NewTicker(fixityLook)
	defer tick.Stop()
	last := ""
	for {
		if r.e.Fixity.Asked() {
			said := ""
			if err := r.fixityOnce(ctx); err != nil && ctx.Err() == nil {
				said = err.Error()
			}
			if said != "" && said != last {
				r.tellGrave("fixity: " + said)
			}
			last = said
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (r *run) fixityOnce(ctx context.Context) (err error) {
	at := r.e.Ledger.Path(layout.StateDir + "/fixity.lock")
	if err := disk.MkdirAll(r.e.Ledger.Path(layout.StateDir), 0o750); err != nil {
		return err
	}
	lock := flock.New(at)
	if got, err := lock.TryLock(); err != nil || !got {
		return err // another engine does it
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if err := r.e.Index.Load(ctx); err != nil {
		return err
	}
	_, err = fixity.ByEngine(r.e.Fixity).Due(ctx, true, r.yield, func(found fixity.Result) {
		if failed := found.Failed(); len(failed) > 0 {
			r.tellGrave(fmt.Sprintf("damaged: %s %s/%s: %s: %s", found.Item.Short(), found.Collection, found.Label, strings.Join(failed, ", "), found.Copies[failed[0]].Message))
		}
	})
	return err
}

// yield waits while steps are ready.
func (r *run) yield(ctx context.Context) {
	tick := time.NewTicker(fixityYield)
	defer tick.Stop()
	for began := r.e.Ledger.Clock(); r.e.Ledger.Clock().Sub(began) < fixityPatience; {
		row, err := r.e.Ask.CountQueue(ask.QueueAsk{For: ask.Robots})
		if err != nil || row.Ready == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
