package sync

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// The rules are: an engine that watches takes the branches for/NAME as they come, and has the lock of
// takerLock meanwhile. It knows the history up to its tip, where another process had to look at all
// that the engine did since, with the lock of all branches meanwhile; so the hook that is told of a push lets it,
// for a while, and takes them itself where no engine has the lock.

const (
	takerLock = layout.StateDir + "/offers.taker"
	// takerLook is how often an engine looks for new branches, and a hook for what became of them.
	takerLook = 50 * time.Millisecond
	// takerRest is how often it looks at all of them, such as those that it did not see come.
	takerRest = time.Second
	// takerShare bounds the part of its time that an engine looks at branches of which it has seen none come.
	takerShare = 10
	// takerPatience is how long a hook waits for an engine that does not come to any branch; and six times that for
	// one which is at others.
	takerPatience = 10 * time.Second
)

// KeepTaking joins the branches for/NAME as they come, until the context ends, and tells what became
// of those that it looked at.
func (s *Syncer) KeepTaking(ctx context.Context, tell func([]Offered, error)) {
	lock := taker(s.ledger.Root)
	defer lock.Close()
	tick := time.NewTicker(takerLook)
	defer tick.Stop()
	var seen, rested time.Time
	var took time.Duration // by the last look
	for {
		rests := time.Since(rested) >= max(takerRest, takerShare*took)
		if rests {
			rested = time.Now()
			_, _ = lock.TryLock() // while another has it, both take; without any the hooks do
		}
		if at := gitstore.OffersAt(s.ledger.Root); !at.IsZero() && (rests || !at.Equal(seen)) {
			seen = at
			begin := time.Now()
			looked, err := s.TakeOffers(ctx, false)
			if took = time.Since(begin); len(looked) > 0 {
				took = 0 // there may be more
			}
			if ctx.Err() == nil && (len(looked) > 0 || err != nil) {
				tell(looked, err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// taker is the lock of who takes branches as they come. People of other accounts push, too.
func taker(root string) *flock.Flock {
	return flock.New(filepath.Join(root, takerLock), flock.SetPermissions(0o666))
}

// AwaitTaken waits until the engine that is at the branches for/NAME of the workspace at root took or refused all that are
// named, or does not come to them in time; false: there is no such engine, and they still wait. It opens no workspace.
func AwaitTaken(ctx context.Context, root string, branches []string) bool {
	refused := func() time.Time {
		info, err := os.Stat(filepath.Join(root, refusals))
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	lock := taker(root)
	defer lock.Close()
	var read, asked time.Time // of the refusals, and when git was asked
	begin := time.Now()
	for moved, at := begin, gitstore.OffersAt(root); time.Since(moved) < takerPatience && time.Since(begin) < 6*takerPatience && ctx.Err() == nil; time.Sleep(takerLook / 2) {
		left := false
		for _, b := range branches {
			left = left || gitstore.HasOffer(root, b)
		}
		if is := refused(); !is.Equal(read) || !left && time.Since(asked) > takerRest { // git may have packed them away
			read, asked = is, time.Now()
			if waiting(ctx, root, branches) == 0 {
				return true
			}
		}
		if free, err := lock.TryRLock(); err != nil || free {
			return false // no engine has it
		}
		if now := gitstore.OffersAt(root); !now.Equal(at) { // it is at others
			moved, at = time.Now(), now
		}
	}
	return true
}

// waiting counts the own branches of those named that stand and were not refused.
func waiting(ctx context.Context, root string, branches []string) (n int) {
	there, err := Offers(ctx, root, branches...)
	if err != nil {
		return len(branches)
	}
	for _, o := range there {
		if o.Refused == "" {
			n++
		}
	}
	return n
}
